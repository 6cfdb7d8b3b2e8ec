"""Where the published comparison is played: atlases, worlds trained on demand, and the warm one, live."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from benchmarks.build_worlds import LARGE, atlas_path
from benchmarks.selector_report.on_demand import OnDemand
from benchmarks.selector_report.search import climb
from benchmarks.selector_report.worlds import REPORTING, BenchWorld

from fedelect.atlas import AtlasEngine, load_atlas, shipped_atlases, table_truth
from fedelect.bench import Elections, Environment, default_specs, play_together, specify_fixed
from fedelect.datasets import load_dataset
from fedelect.federation import make_engine
from fedelect.scenario import build_scenario
from fedelect.vocabulary import Cohort, Floats

SLOTS = 200
SEED = 1

Tick = Callable[[int], None]
"""Told the number of each slot that is finished."""


class Arena(ABC):
    """A world, its default_specs, and what the cohorts that they elect are worth.

    Attributes:
        name: The world's name.
        kind: "atlas", "on demand" or "warm".
        environment: Where they play.
        texts: Specifications of the selectors.
        trials: How many each.
        together: Whether they are played side by side, which saves training.
    """

    kind: str
    together = False

    def __init__(self, name: str, environment: Environment, trials: int, *, full: bool, losses: bool = True) -> None:
        self.name, self.environment, self.trials = name, environment, trials
        world = environment.world
        self.texts = default_specs(clients=world.clients, budget=world.budget, full=full, losses=losses)

    def play(self, texts: Sequence[str], tick: Tick = lambda slot: None) -> list[Elections]:
        """Play these selectors."""
        return play_together(self.environment, texts, slots=SLOTS, trials=self.trials, seed=SEED, progress=tick)

    @abstractmethod
    def best(self, played: dict[str, Elections]) -> tuple[Cohort, float]:
        """The best known cohort and what it is worth, after all have played."""

    @abstractmethod
    def values(self, elections: Elections) -> Floats:
        """(trials, T) what the cohort elected in each slot is worth."""


class AtlasArena(Arena):
    """Every cohort is known."""

    kind = "atlas"

    def __init__(self, path: Path, *, full: bool, trials: int) -> None:
        atlas = load_atlas(path)
        environment = Environment(atlas.world, AtlasEngine(atlas))
        super().__init__(atlas.config.name, environment, trials, full=full, losses=atlas.losses is not None)
        self._truth = table_truth(atlas)
        self._best = atlas.cohort(self._truth.best)

    def best(self, played: dict[str, Elections]) -> tuple[Cohort, float]:
        """The best of the table."""
        return self._best, self._truth.optimum.mean

    def values(self, elections: Elections) -> Floats:
        """Means over the table's seeds."""
        return self._truth.of(elections.cohorts)


class OnDemandArena(Arena):
    """Cohorts are trained when they are first elected; the best known is the best of them and of all its exchanges."""

    kind = "on demand"
    together = True

    def __init__(self, world: BenchWorld, *, full: bool, trials: int) -> None:
        scenario = build_scenario(world.config, load_dataset(world.config.data.source))
        self.engine = OnDemand(scenario, make_engine("auto", world.config), LARGE / f"{world.name}.on-demand.npz")
        super().__init__(world.name, Environment(scenario, self.engine), trials, full=full)

    def play(self, texts: Sequence[str], tick: Tick = lambda slot: None) -> list[Elections]:
        """Play these selectors; save what was trained."""
        elections = super().play(texts, tick)
        self.engine.save()
        return elections

    def best(self, played: dict[str, Elections]) -> tuple[Cohort, float]:
        """The best of all that were ever trained, improved by exchange of members."""
        known = self.engine.known
        start = known[int(np.argmax(self.engine.worth(known)))]
        found = climb(self.engine.worth, start, self.environment.world.clients)
        self.engine.save()
        return found

    def values(self, elections: Elections) -> Floats:
        """The one training of each cohort."""
        cohorts = list(map(tuple, elections.cohorts.reshape(-1, elections.cohorts.shape[2]).tolist()))
        return self.engine.worth(cohorts).reshape(elections.cohorts.shape[:2])


class WarmArena(Arena):
    """Trained live, for what a cohort is worth depends on all before it: a slot is worth the opinion it ended with.

    The best known is the fixed cohort that ends best after `SEARCHED` slots, sought by exchange of members from the
    first K clients; its value is the mean of the last tenth of its slots.
    """

    kind = "warm"
    together = True
    SEARCHED = 25

    def __init__(self, world: BenchWorld, *, full: bool, trials: int) -> None:
        scenario = build_scenario(world.config, load_dataset(world.config.data.source))
        environment = Environment(scenario, make_engine("auto", world.config))
        super().__init__(world.name, environment, trials, full=full)

    def best(self, played: dict[str, Elections]) -> tuple[Cohort, float]:
        """The fixed cohort, and the mean of its last tenth over all trials."""
        cohort, _ = climb(self._ends, tuple(range(self.environment.world.budget)), self.environment.world.clients)
        (elections,) = self.play([specify_fixed(cohort)])
        return cohort, float(elections.rewards[:, -SLOTS // 10 :].mean())

    def values(self, elections: Elections) -> Floats:
        """The mean opinion at the end of each slot."""
        return elections.rewards

    def _ends(self, cohorts: Sequence[Cohort]) -> Floats:
        texts = [specify_fixed(cohort) for cohort in cohorts]
        played = play_together(self.environment, texts, slots=self.SEARCHED, trials=1, seed=SEED)
        return np.array([one.rewards[0, -5:].mean() for one in played])


def names() -> list[str]:
    """All worlds that figures are published for: the reporting worlds, and the paper's atlas."""
    return [*(world.name for world in REPORTING), "paper"]


def arena(name: str, *, full: bool, trials: int) -> Arena:
    """The arena of that name."""
    if name == "paper":
        return AtlasArena(shipped_atlases()["paper"], full=full, trials=trials)
    (world,) = [world for world in REPORTING if world.name == name]
    if world.plan is not None:
        return AtlasArena(atlas_path(name), full=full, trials=trials)
    if world.config.start == "warm":
        return WarmArena(world, full=full, trials=trials)
    return OnDemandArena(world, full=full, trials=trials)
