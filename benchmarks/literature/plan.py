"""What is tuned and played for the table of docs/results/literature.md: methods, settings, worlds, budget.

Every method gets the same budget: at most `SETTINGS` settings of its parameters, of which its published default is the
first, in the same tuning worlds, trials and slots. No tuning world is in the table: its worlds have other sizes, flaws,
shares and seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.selector_report import worlds as cold_worlds
from benchmarks.warm_selector.worlds import DESIGN, DESIGN_SEED, REPORT_SEED

from fedelect.bench.user_worlds import USER_WORLDS
from fedelect.datasets import load_dataset
from fedelect.scenario import Dataset, ScenarioConfig

SETTINGS, TUNING_TRIALS, TUNING_SLOTS = 3, 2, 60
TRIALS, COLD_SLOTS = 10, 80

RANDOM, ORACLE = "random", "oracle"

GRIDS: dict[str, tuple[str, ...]] = {
    RANDOM: ("",),
    "cycle": ("",),
    ORACLE: ("",),
    "quick-init-ucb": ("", "exploration=0.1", "exploration=0.01"),
    "set-gp": ("", "exploration=1.5", "forgetting=0.95"),
    "sound-cycle": ("",),
    "power-of-choice": ("", "candidates=8", "candidates=20"),
    "active-fl": ("", "left_out=0.5", "sharpness=0.1"),
    "oort": ("", "penalty=0.0", "window=10"),
    "pyramid-fl": ("", "penalty=0.0", "overcommit=1.0"),
    "fedcor": ("", "warm_up=10,interval=5", "discount=0.8"),
    "divfl": ("",),
    "clustered-by-size": ("",),
    "clustered-by-similarity": ("",),
    "favor": ("", "exploration=0.3", "rate=1.0"),
    "s-fedavg": ("", "keep=0.9,gain=10.0", "keep=0.9,gain=100.0"),
    "greedyfed": ("", "memory=0.5", "memory=0.9"),
    "client-ucb": ("", "exploration=0.1", "exploration=0.01"),
    "client-thompson": ("", "sharpness=10.0", "sharpness=100.0"),
    "additive-thompson": ("", "noise=0.02", "noise=0.2"),
    "context-ucb": ("", "exploration=0.1", "exploration=0.01"),
    "tifl": ("", "tiers=3", "interval=5"),
    "fedcs": ("", "candidates=8", "candidates=12"),
    "data-size": ("",),
    "best-channel": ("",),
    "e3cs": ("", "fairness=0.8", "rate=0.1"),
    "proportional-fair": ("",),
    "rbcs-f": ("", "patience=5.0", "patience=100.0"),
    "fair-ucb": ("", "patience=1.0", "exploration=1.0"),
}
"""Settings tried of each method; the first is its default."""

assert all(len(grid) <= SETTINGS and grid[0] == "" for grid in GRIDS.values())


@dataclass(frozen=True)
class TableWorld:
    """A world to tune or to play in.

    Attributes:
        name: Its name.
        config: The scenario.
        load: Loads its data.
        seed: Seed of the runs.
    """

    name: str
    config: ScenarioConfig
    load: Callable[[], Dataset]
    seed: int


def _digits() -> Dataset:
    return load_dataset("digits")


def _warm(names: tuple[str, ...]) -> tuple[TableWorld, ...]:
    return tuple(
        TableWorld(world.name, world.config(DESIGN_SEED), world.load, DESIGN_SEED)
        for world in DESIGN
        if world.name in names
    )


def _cold(worlds: tuple[cold_worlds.BenchWorld, ...], names: tuple[str, ...]) -> tuple[TableWorld, ...]:
    return tuple(
        TableWorld(world.name, world.config, _digits, world.config.seed) for world in worlds if world.name in names
    )


TUNING = {
    "users": _warm(("d-random", "d-flipped", "d-none")),
    "paper": _cold(cold_worlds.TUNING, ("t-labels2-N20-K5", "t-dir02-N20-K5")),
}
"""Kind of world -> where settings are chosen."""

PLAYED = {
    "users": tuple(
        TableWorld(name, world.config(REPORT_SEED), world.load, REPORT_SEED) for name, world in USER_WORLDS.items()
    ),
    "paper": _cold(cold_worlds.REPORTING, ("r-labels2-N20-K5", "r-dir02-N20-K5")),
}
"""Kind of world -> the worlds of the table: those of `fedelect bench users`, and two like the paper's."""

UNFLAWED = tuple(name for name, world in USER_WORLDS.items() if not world.flawed)
