"""Series of results: one selector in one variant of the calibrated scenario."""

import re
from dataclasses import dataclass

import msgspec

from fedelect.errors import ConfigurationError
from fedelect.loop import FrameworkName
from fedelect.scenario import ChannelConfig, ScenarioConfig


@dataclass(frozen=True, kw_only=True, order=True)
class World:
    """A variant of the base scenario; the defaults are the paper's main one.

    Attributes:
        clients: N.
        budget: K.
        upload_probability: theta, the same for all clients.
    """

    clients: int = 20
    budget: int = 5
    upload_probability: float = 1.0

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"N{self.clients}-K{self.budget}-theta{self.upload_probability:g}"

    def config(self, base: ScenarioConfig) -> ScenarioConfig:
        """The base scenario with these three changed.

        Raises:
            ConfigurationError: The base starts warm, or redraws its world.
        """
        if base.start != "cold" or base.redraw_every:
            raise ConfigurationError(
                f"start, redraw_every: got {base.start!r} and {base.redraw_every}; results are kept for a cold start "
                f"in one world only; use `fedelect run` for others"
            )
        return msgspec.structs.replace(
            base,
            clients=self.clients,
            budget=self.budget,
            channel=ChannelConfig(upload_probability=self.upload_probability),
        )


@dataclass(frozen=True, kw_only=True, order=True)
class Series:
    """One selector in one world.

    Attributes:
        selector: Its text, as `fedelect run --selector` takes it.
        framework: "fa" or "da". Selectors that do not listen choose and train the same under both; they are run
            under "fa" once.
        world: The world.
        kept_as: Name of the selector in its results, where they were made under another one: the default that
            `quick-init-ucb` had then was the paper's mu = 1.
    """

    selector: str
    framework: FrameworkName = "fa"
    world: World = World()
    kept_as: str | None = None

    @property
    def name(self) -> str:
        """Name of the selector in its results."""
        return self.kept_as or self.selector

    @property
    def folder(self) -> str:
        """Where its results are kept, below the folder of all results."""
        return f"{self.world.name}/{re.sub(r'[^A-Za-z0-9.]+', '-', self.name)}"

    def __str__(self) -> str:
        return f"{self.selector} ({self.world.name}, FL&{self.framework.upper()})"


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A series with numbers of trials and slots.

    Attributes:
        series: The series.
        trials: Monte Carlo trials.
        slots: T.
    """

    series: Series
    trials: int
    slots: int

    def at_most(self, *, trials: int | None, slots: int | None) -> "RunRequest":
        """Return it with at most these numbers of trials and slots."""
        return RunRequest(
            series=self.series,
            trials=min(self.trials, trials or self.trials),
            slots=min(self.slots, slots or self.slots),
        )
