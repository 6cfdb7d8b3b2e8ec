"""Every figure and table of the paper by its label, and some of our own: what each needs, in a few lines.

An experiment states the series that it is drawn from (`requests`), its other measurements (`measurements`), and the
name of the drawing. It runs nothing; see `runner.py`, `measurements/` and `figures/`.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fedelect.errors import ConfigurationError
from paper.series import RunRequest, Series, World

PaperPart = Literal["figure", "table", "ours"]

TRIALS = 100
"""Monte Carlo trials of the paper."""

FEWER_TRIALS = 25
"""Trials of `Pre2Slot`, and of the runs that only explain."""

TARGETS = (0.75, 0.78, 0.82, 0.85)
"""Accuracies of the paper's Table I."""

CLIENT_COUNTS = (20, 40, 60, 80, 100)
UPLOAD_PROBABILITIES = (1.0, 0.75, 0.5)
BUDGETS = (5, 10, 15, 20)

MAIN = World()
"""The paper's main world: N = 20, K = 5, theta = 1."""

OPTIMAL = Series(selector="fixed:cohort=0,1,2,3,4")
LAST_FIVE = Series(selector="fixed:cohort=15,16,17,18,19")
RANDOM = Series(selector="random")
ROUND_ROBIN = Series(selector="round-robin")
SUBSET_UCB = Series(selector="subset-ucb")


def random_of(budget: int) -> Series:
    """Random selection of that many clients."""
    return Series(selector="random", world=World(budget=budget))


def quick_init(world: World = MAIN) -> Series:
    """Quick-Init UCB with the paper's mu = 1."""
    return Series(selector="quick-init-ucb:exploration=1.0", kept_as="quick-init-ucb", world=world)


def frugal_quick_init(world: World = MAIN) -> Series:
    """Quick-Init UCB with the mu = 0.01 that the paper gives to BP-UCB, so that both explore equally."""
    return Series(selector="quick-init-ucb:exploration=0.01", world=world)


def bp_ucb(world: World = MAIN) -> Series:
    """BP-UCB with the paper's mu = 0.01."""
    return Series(selector="bp-ucb", framework="da", world=world)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """How much of an experiment is run.

    Attributes:
        name: Its name.
        trials: Most trials; None for all.
        slots: Most slots; None for all.
        block: Trials in a block.
        folder: Where its results are kept unless told otherwise.
    """

    name: str
    trials: int | None
    slots: int | None
    block: int
    folder: str

    def on_atlas(self) -> "Preset":
        """The same for runs on an atlas, whose results are kept apart."""
        return dataclasses.replace(
            self, name=f"{self.name}, on the atlas", folder=str(Path(self.folder).with_name("on-atlas"))
        )


PRESETS = {
    "quick": Preset(
        name="quick",
        trials=8,
        slots=60,
        block=4,
        folder="runs/paper-quick/trained",
    ),
    "paper": Preset(
        name="paper",
        trials=None,
        slots=None,
        block=25,
        folder="paper/results/trained",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or table.

    Attributes:
        name: The paper's label of it, or ours.
        part: What it is.
        title: What it shows, in a line.
        requests: The series it is drawn from, at full size.
        measurements: Names of what is measured besides.
    """

    name: str
    part: PaperPart
    title: str
    requests: tuple[RunRequest, ...] = ()
    measurements: tuple[str, ...] = ()

    @property
    def in_main_world(self) -> bool:
        """Whether it is drawn from runs in the paper's main world alone, so that an atlas of that serves."""
        return bool(self.requests) and all(request.series.world == MAIN for request in self.requests)

    def at(self, preset: Preset) -> tuple[RunRequest, ...]:
        """The requests, cut to the preset."""
        return tuple(request.at_most(trials=preset.trials, slots=preset.slots) for request in self.requests)


def _requests(*series: Series, slots: int, trials: int = TRIALS) -> tuple[RunRequest, ...]:
    return tuple(RunRequest(series=one, trials=trials, slots=slots) for one in series)


def _both(worlds: Iterable[World]) -> list[Series]:
    return [make(world) for world in worlds for make in (quick_init, bp_ucb)]


_BY_THETA = tuple(World(upload_probability=theta) for theta in UPLOAD_PROBABILITIES)
_BY_CLIENTS = tuple(World(clients=clients) for clients in CLIENT_COUNTS)

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="network",
        part="figure",
        title="Where the server and the N = 20 clients are, and who is linked to whom",
    ),
    Experiment(
        name="comparison_table",
        part="table",
        title="Slots until the running mean of opinions reaches 0.75, 0.78, 0.82, 0.85; T = 500",
        # The fixed cohort is stationary and reaches its targets early or never: 200 slots tell.
        requests=(*_requests(OPTIMAL, slots=200), *_requests(RANDOM, quick_init(), bp_ucb(), slots=500)),
    ),
    Experiment(
        name="cen_performance",
        part="figure",
        title="Average accuracy under FL&FA against the slot, five selection methods, T = 200",
        requests=_requests(OPTIMAL, quick_init(), SUBSET_UCB, ROUND_ROBIN, RANDOM, slots=200),
    ),
    Experiment(
        name="decen_performance",
        part="figure",
        title="Average accuracy under FL&DA against the slot, T = 200 (Quick-Init UCB from FL&FA, same seeds)",
        requests=_requests(OPTIMAL, bp_ucb(), quick_init(), ROUND_ROBIN, RANDOM, slots=200),
    ),
    Experiment(
        name="cen_selected_time",
        part="figure",
        title="How often Quick-Init UCB elects each client in T = 500 slots",
        requests=_requests(quick_init(), slots=500),
    ),
    Experiment(
        name="BP_value",
        part="figure",
        title="Beliefs of the first five clients against the slot, BP-UCB",
        requests=_requests(bp_ucb(), slots=200),
    ),
    Experiment(
        name="1_2",
        part="figure",
        title="(a) training loss and (b) accuracy with 5, 10, 15, 20 clients; (c) accuracy of four client sets",
        requests=(
            *_requests(*map(random_of, BUDGETS), slots=50),
            *_requests(OPTIMAL, LAST_FIVE, slots=50),
        ),
        measurements=("losses", "optimum"),
    ),
    Experiment(
        name="PreTheta",
        part="figure",
        title="Average accuracy at T = 200 with upload probability 1, 0.75, 0.5",
        requests=(
            *_requests(*_both(_BY_THETA), slots=200),
            *_requests(*map(frugal_quick_init, _BY_THETA), slots=200, trials=FEWER_TRIALS),
        ),
    ),
    Experiment(
        name="PreNum",
        part="figure",
        title="Average accuracy at T = 200 with N = 20, 40, 60 clients",
        requests=(
            *_requests(*_both(_BY_CLIENTS[:3]), slots=200),
            *_requests(*map(frugal_quick_init, _BY_CLIENTS[:3]), slots=200, trials=FEWER_TRIALS),
        ),
    ),
    Experiment(
        name="Pre2Slot",
        part="figure",
        title="Accuracy at T = 500 with N = 20 to 100 clients, Quick-Init UCB at N = 100 included",
        requests=_requests(*_both(_BY_CLIENTS), *map(frugal_quick_init, _BY_CLIENTS), slots=500, trials=FEWER_TRIALS),
    ),
    Experiment(
        name="regret",
        part="ours",
        title="Measured regret under the bounds of Theorems 1 and 3, in the paper's world and in a small one",
        measurements=("regret",),
    ),
    Experiment(
        name="sensitivity",
        part="ours",
        title="Quick-Init UCB and BP-UCB against exploration (0.01, 0.1, 1) and the rule for ties",
        measurements=("sensitivity",),
    ),
    Experiment(
        name="convergence",
        part="ours",
        title="The convergence conditions of Theorem 2 against what belief propagation did",
        measurements=("convergence",),
    ),
    Experiment(
        name="complexity",
        part="ours",
        title="The paper's complexity formulas beside the measured cost of a decision",
        measurements=("complexity",),
    ),
)


def experiment(name: str) -> Experiment:
    """The experiment called `name`.

    Raises:
        ConfigurationError: There is no such experiment.
    """
    for one in EXPERIMENTS:
        if one.name == name:
            return one
    names = ", ".join(one.name for one in EXPERIMENTS)
    raise ConfigurationError(
        f"unknown experiment {name!r}; known are {names}, all, list, losses, optimum, calibration and document"
    )
