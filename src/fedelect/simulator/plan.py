"""What is to be simulated: a scenario, a framework, the selectors, and how long and how often."""

import contextlib
import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np

import fedelect
from fedelect.analytics import Opinion, accuracy
from fedelect.errors import ConfigurationError
from fedelect.loop import FrameworkName, check_fits
from fedelect.naming import imported
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector, SelectorSpec
from fedelect.simulator.network import LinkConditions
from fedelect.simulator.peer_election import PeerElection

PEERS = "peers"
"""Selector name under which BP-UCB is elected by simulated peers, message by message."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A simulation to run.

    Attributes:
        config: The world.
        framework: "fa" or "da".
        selectors: The competitors, with different texts.
        slots: T.
        trials: How many Monte Carlo trials; within one all selectors share batch orders and upload luck.
        seed: The run's seed.
    """

    config: ScenarioConfig
    framework: FrameworkName
    selectors: tuple[SelectorSpec, ...]
    slots: int
    trials: int
    seed: int

    def __post_init__(self) -> None:
        if not self.selectors:
            raise ConfigurationError("no selector is named; give at least one, for example --selector random")
        texts = [spec.text for spec in self.selectors]
        repeated = sorted({text for text in texts if texts.count(text) > 1})
        if repeated:
            raise ConfigurationError(f"selector {repeated[0]!r} is named twice; name each once")
        for name, value in (("slots", self.slots), ("trials", self.trials)):
            if value < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {value}")

    def build(self, spec: SelectorSpec, scenario: Scenario, trial: int) -> AbstractSelector:
        """The selector that `spec` names, for one trial in one world."""
        seed = derive(self.seed, "selection", trial)
        extras: dict[str, Any] = {"scenario": scenario} if spec.make is elected_by_peers else {}
        selector = spec.build(clients=scenario.clients, budget=scenario.budget, seed=seed, **extras)
        check_fits(selector, self.framework, spec.text)
        return selector

    def draw(self, trial: int) -> int:
        """Which draw of the world a trial lives in; trials share one unless the scenario redraws it."""
        return trial // (self.config.redraw_every or self.trials)

    @property
    def can_travel(self) -> bool:
        """Whether another process can make the same selectors, opinions and models from their texts."""
        named = (self.config.opinion, self.config.model.kind, self.config.model.loss)
        if any(name.startswith("__main__:") for name in named):
            return False
        try:
            remade = parse_selectors([spec.text for spec in self.selectors])
        except ConfigurationError:
            return False
        return all(
            spec.make is other.make and spec.parameters == other.parameters and spec.make.__module__ != "__main__"
            for spec, other in zip(self.selectors, remade, strict=True)
        )


def elected_by_peers(
    *,
    scenario: Scenario,
    seed: int,
    exploration: float = 0.01,
    loss: float = 0.0,
    repetition: float = 0.0,
    longest_delay_s: float = 0.05,
    faults: int = 0,
    lying: bool = False,
    slot_s: float = 60.0,
) -> PeerElection:
    """BP-UCB elected by simulated peers along the scenario's graph, message by message.

    Args:
        scenario: Graph and belief settings.
        seed: Fixes cold-start groups, ties and the luck of the links.
        exploration: mu.
        loss: Probability that a message is lost.
        repetition: Probability that a message arrives twice.
        longest_delay_s: Longest delay of a message in virtual seconds; the shortest is a fifth of it.
        faults: How many peers may fail in a slot; the graph must stay connected without them.
        lying: Whether those may lie, or only crash: with it, a certificate takes more signatures.
        slot_s: Virtual seconds after which the peers give a slot up.
    """
    conditions = LinkConditions(
        shortest_delay_s=longest_delay_s / 5, longest_delay_s=longest_delay_s, loss=loss, repetition=repetition
    )
    return PeerElection.from_scenario(
        scenario,
        exploration=exploration,
        seed=seed,
        faults=faults,
        lying=lying,
        slot_s=slot_s,
        conditions=conditions,
    )


def parse_selectors(texts: Sequence[str]) -> tuple[SelectorSpec, ...]:
    """Selector specifications from their texts; see `fedelect.selectors.SelectorSpec.parse`."""
    return tuple(SelectorSpec.parse(text, extra={PEERS: elected_by_peers}) for text in texts)


def load_opinion(name: str) -> Opinion:
    """The function by which clients score a model: "accuracy", or your own as "module:function"."""
    return accuracy if name == "accuracy" else imported(name, what="opinion")


def plain(config: ScenarioConfig) -> dict[str, Any]:
    """The configuration as plain values, for the record."""
    return cast("dict[str, Any]", msgspec.to_builtins(config))


def versions_of(engine: str) -> dict[str, str]:
    """The versions of all that decides over the last bit of a run's numbers, given what its engine is called."""
    libraries = ["numba"] if engine.startswith("stacked") else ["torch"] if engine.startswith("torch") else []
    versions = {"fedelect": fedelect.__version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in libraries:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
