"""Selectors in the users' worlds: clean accuracy, closure of the oracle's gap, and harm where nobody is flawed.

Each world is a run in a folder of its own, so it can be resumed and reported on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedelect._processes import run_tasks, worker_count
from fedelect._text import suggest
from fedelect.bench.user_worlds import SLOTS, USER_WORLDS
from fedelect.equations.closure import Closure, is_clear, mean_closure
from fedelect.equations.intervals import Interval
from fedelect.errors import ConfigurationError
from fedelect.records import ORACLE, RANDOM, Measured, MeasureSummary, read_table
from fedelect.scenario import ScenarioConfig, change_scenario
from fedelect.seeds import derive
from fedelect.selectors import SelectorSpec
from fedelect.selectors.catalogue import AUTO
from fedelect.simulator import Plan, simulate, specify_selectors
from fedelect.simulator.plan import build_world
from fedelect.vocabulary import Progress, ignore_progress

CYCLE = "cycle"
BASELINES = (CYCLE, RANDOM, ORACLE)
"""Selectors that play in every world."""

CLAIM_TRIALS = 20
"""Fewest trials for a claim about selectors."""


@dataclass(frozen=True, kw_only=True)
class WorldFigures:
    """Figures of the selectors in one world.

    Attributes:
        name: The world.
        what: What is special about it.
        flawed: Whether clients are flawed there.
        oracle_gap: Final accuracy of the oracle minus that of random.
        clear: Whether that is clearly more than one point; else closure is not stated.
        selectors: Label -> figures.
    """

    name: str
    what: str
    flawed: bool
    oracle_gap: Interval
    clear: bool
    selectors: dict[str, MeasureSummary]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A selector over all worlds.

    Attributes:
        label: The selector.
        closure: Mean over the flawed worlds with a clear gap; None for baselines that define it, and without such a
            world.
        harm: The lowest difference to random in a world where nobody is flawed; None for random, and without such a
            world.
        harm_world: That world.
    """

    label: str
    closure: Closure | None
    harm: Interval | None
    harm_world: str | None


@dataclass(frozen=True, kw_only=True)
class UsersBenchmark:
    """All worlds and selectors.

    Attributes:
        slots: T.
        trials: Trials in each world.
        seed: The one seed.
        worlds: The figures of each world.
        averaged: The flawed worlds that the mean closure is over.
        unclear: The flawed worlds that it leaves out, for the oracle is not clearly more than one point ahead.
        verdicts: One for each selector.
    """

    slots: int
    trials: int
    seed: int
    worlds: tuple[WorldFigures, ...]
    averaged: tuple[str, ...]
    unclear: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


def bench_users(
    out_dir: Path,
    *,
    selectors: Sequence[str] = (AUTO,),
    worlds: Sequence[str] = (),
    trials: int = 10,
    slots: int = SLOTS,
    seed: int = 1,
    workers: int | None = None,
    progress: Progress = ignore_progress,
) -> UsersBenchmark:
    """Play selectors in the users' worlds, with shuffled cycles, random and the oracle for comparison.

    Args:
        out_dir: Folder for the runs; the same call resumes them.
        selectors: Specifications of the selectors. If one of them needs contributions, the worlds have a validation
            share at the server (`reserve_validation`), for all selectors of the run.
        worlds: Names of worlds; all if empty.
        trials: Trials in each world, each with its own draw; within a trial all selectors share world and draws.
        slots: T.
        seed: The one seed.
        workers: Processes to spread the worlds over; one for each core if None. It changes no figure.
        progress: Called with (finished, total) worlds when the benchmark begins and whenever a world is finished.

    Raises:
        ConfigurationError: A world, selector or number that cannot be used.
        RunMismatchError: A folder holds a run of other versions.
    """
    unknown = [name for name in worlds if name not in USER_WORLDS]
    if unknown:
        similar = suggest(unknown[0], USER_WORLDS)
        raise ConfigurationError(
            f"there is no users' world {unknown[0]!r}{similar}; there are {', '.join(USER_WORLDS)}"
        )
    names = [name for name in USER_WORLDS if not worlds or name in worlds]
    texts = tuple(dict.fromkeys([*selectors, *BASELINES]))
    game = _Game(out_dir, texts, slots, trials, seed)
    game.check(names[0])
    progress(0, len(names))
    for finished, _ in enumerate(run_tasks(game.play, [(name,) for name in names], workers=worker_count(workers)), 1):
        progress(finished, len(names))
    return judge_worlds({name: read_table(game.folder(name)).measured for name in names}, texts)


def judge_worlds(runs: Mapping[str, Measured], selectors: Sequence[str]) -> UsersBenchmark:
    """Summarise the figures of selectors in some of the users' worlds.

    Args:
        runs: World -> the measures of its run, in which all selectors and the baselines play; at least one.
        selectors: Labels of the selectors.
    """
    worlds = tuple(_world_figures(name, measured, selectors) for name, measured in runs.items())
    flawed = [world for world in worlds if world.flawed]
    averaged = tuple(world.name for world in flawed if world.clear)
    header = next(iter(runs.values())).header
    return UsersBenchmark(
        slots=header.slots,
        trials=header.trials,
        seed=header.seed,
        worlds=worlds,
        averaged=averaged,
        unclear=tuple(world.name for world in flawed if not world.clear),
        verdicts=tuple(_verdict(label, worlds, [runs[name] for name in averaged]) for label in selectors),
    )


@dataclass(frozen=True)
class _Game:
    """The runs of all worlds; sent to worker processes."""

    out_dir: Path
    texts: tuple[str, ...]
    slots: int
    trials: int
    seed: int

    def plan(self, name: str) -> Plan:
        specs = specify_selectors(self.texts)
        config = USER_WORLDS[name].config(self.seed)
        return Plan(
            config=reserve_validation(config) if any(map(_needs_contributions, specs)) else config,
            framework="fa",
            selectors=specs,
            slots=self.slots,
            trials=self.trials,
            seed=self.seed,
        )

    def folder(self, name: str) -> Path:
        """The run folder of a world; another for other selectors, slots, trials or seeds."""
        return self.out_dir / f"{name}-{derive(self.seed, *self.texts, self.slots, self.trials):016x}"

    def check(self, name: str) -> None:
        """Refuse a selector that cannot be built before anything is played."""
        plan = self.plan(name)
        world = build_world(plan.config, USER_WORLDS[name].load())
        for spec in plan.selectors:
            plan.build_selector(spec, world, 0)

    def play(self, name: str) -> None:
        command = f"fedelect bench users --world {name}"
        simulate(self.plan(name), USER_WORLDS[name].load(), self.folder(name), command=command, workers=1)


def reserve_validation(config: ScenarioConfig) -> ScenarioConfig:
    """Return a users' world in which the server holds a tenth of the training samples, which no client has."""
    return change_scenario(config, {"validation": {"share": 0.1}})


def _needs_contributions(spec: SelectorSpec) -> bool:
    return "contributions" in getattr(spec.make, "needs", ())


def _world_figures(name: str, measured: Measured, selectors: Sequence[str]) -> WorldFigures:
    gap = measured.oracle_gap()
    summaries = {label: measured.summary(label) for label in selectors}
    assert gap is not None  # both baselines play everywhere
    return WorldFigures(
        name=name,
        what=USER_WORLDS[name].what,
        flawed=USER_WORLDS[name].flawed,
        oracle_gap=gap,
        clear=is_clear(gap),
        selectors={label: summary for label, summary in summaries.items() if summary is not None},
    )


def _verdict(label: str, worlds: Sequence[WorldFigures], averaged: Sequence[Measured]) -> Verdict:
    finals = [found for measured in averaged if (found := measured.paired_finals(label)) is not None]
    differences = {world.name: world.selectors[label].difference for world in worlds if not world.flawed}
    known = {name: one for name, one in differences.items() if one is not None and not math.isnan(one.mean)}
    worst = min(known, key=lambda name: known[name].mean, default=None)
    return Verdict(
        label=label,
        closure=mean_closure(finals) if finals else None,
        harm=None if worst is None else known[worst],
        harm_world=worst,
    )
