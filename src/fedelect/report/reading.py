"""A run as it is read: its curves, its figures, its oracle and the theorem's bounds; for page and figures alike."""

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedelect.equations.intervals import Interval, mean_interval
from fedelect.equations.metrics import last_present
from fedelect.errors import ConfigurationError
from fedelect.records import (
    RunRecords,
    SelectorSummary,
    TargetSummary,
    best_fixed,
    follow_run,
    opinion_curves,
    regret_curves,
    running_mean_curves,
    summarise,
    tabulate,
)
from fedelect.report.gather import RunAccumulator, RunData
from fedelect.report.theorem import Bound, Oracle, bounds_of, oracle_of
from fedelect.vocabulary import Floats

Source = RunRecords | str | os.PathLike[str]
"""What a report is written of: a run in memory, or the folder of one."""

OPINION, RUNNING_MEAN, REGRET = "opinion", "running mean", "regret"


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """One run, ready to be shown.

    Attributes:
        run: What was gathered from its records.
        best: Label of the best fixed cohort; None if the run has none.
        oracle: What the regret is measured against; None before the first opinion.
        bounds: The theorem's bound of each selector that has one, at the slots at which curves are drawn.
        curves: `OPINION`, `RUNNING_MEAN` and, with an oracle, `REGRET` -> label -> (trials, T).
        summaries: The figures of each selector; `targets` are reached by the running mean.
        gaps: Label -> by how much opinion a slot the oracle is ahead; paired by slot if it is a fixed cohort.
        by_opinion: Label -> the same targets reached by the opinion of a single slot.
    """

    run: RunData
    best: str | None
    oracle: Oracle | None
    bounds: tuple[Bound, ...]
    curves: dict[str, dict[str, Floats]]
    summaries: tuple[SelectorSummary, ...]
    gaps: dict[str, Interval]
    by_opinion: dict[str, tuple[TargetSummary, ...]]


def gather_all(sources: Sequence[Source]) -> list[RunData]:
    """Each source's records, gathered in one pass over them.

    Raises:
        ConfigurationError: There is no source.
        SchemaError, RunError: A folder holds no run that can be read, or a record does not fit its run.
    """
    if not sources:
        raise ConfigurationError("a report needs at least one run; got none")
    names = unique_names([_name(source) for source in sources])
    return [_gather(source, name, len(sources)) for source, name in zip(sources, names, strict=True)]


def _gather(source: Source, name: str, runs: int) -> RunData:
    if isinstance(source, RunRecords):
        tabulate(source)  # for its check that the records fit their header
        header, records = source.header, iter(source.records)
    else:
        follower = follow_run(source)
        header, records = follower.header, follower.fresh()
    gathering = RunAccumulator(header, name=name, runs=runs)
    for record in records:
        gathering.add(record)
    return gathering.result()


def _name(source: Source) -> str:
    if isinstance(source, RunRecords):
        name = source.header.scenario.get("name")
        return name if isinstance(name, str) and name else "run"
    return name_of_folder(source)


def name_of_folder(folder: str | os.PathLike[str]) -> str:
    """What the run in `folder` is called: the folder's own name.

    >>> name_of_folder("runs/first/")
    'first'
    """
    return Path(os.path.abspath(folder)).name or "run"


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that occurred before; the least one that makes a name of its own.

    >>> unique_names(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    >>> unique_names(["a", "a (2)", "a"])
    ['a', 'a (2)', 'a (3)']
    """
    given = set(names)
    found: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        found.append(name if name not in found else next(one for one in numbered if one not in given.union(found)))
    return found


def read_all(runs: Sequence[RunData], targets: Sequence[float] | None = None) -> list[Reading]:
    """Each run's figures. Targets that are not given are chosen from all runs together."""
    chosen = tuple(targets) if targets is not None else choose_targets([running_means(run) for run in runs])
    return [_read(run, chosen) for run in runs]


def running_means(run: RunData) -> list[float]:
    """The final running mean of each selector, over all trials; those without an opinion are left out."""
    ends = (mean_interval(last_present(curve)).mean for curve in running_mean_curves(run.table).values())
    return [end for end in ends if not math.isnan(end)]


def choose_targets(ends: Sequence[Sequence[float]], count: int = 3) -> tuple[float, ...]:
    """Round opinions between the worst and the best of all selectors, at most `count`, the highest.

    >>> choose_targets([[0.646, 0.72, 0.888]])
    (0.75, 0.8, 0.85)
    """
    values = [end for run in ends for end in run]
    if not values:
        return ()
    low, high = min(values), max(values)
    for inverse in (20, 50, 100, 200):
        first, last = math.ceil(low * inverse), math.floor(high * inverse)
        if last - first + 1 >= count:
            break
    return tuple(level / inverse for level in range(max(last - count + 1, 0), last + 1) if level > 0)


def _read(run: RunData, targets: tuple[float, ...]) -> Reading:
    table, oracle = run.table, oracle_of(run)
    curves = {OPINION: opinion_curves(table), RUNNING_MEAN: running_mean_curves(table)}
    if oracle is not None:
        curves[REGRET] = regret_curves(table, oracle.value)
    summaries = tuple(summarise(table, oracle=None if oracle is None else oracle.value, targets=targets))
    by_opinion = summarise(table, targets=targets, target_by="opinion")
    return Reading(
        run=run,
        best=best_fixed(table),
        oracle=oracle,
        bounds=tuple(bounds_of(run, oracle, run.thinning.curve_slots)),
        curves=curves,
        summaries=summaries,
        gaps={one.label: _gap(one, oracle) for one in summaries},
        by_opinion={one.label: one.targets for one in by_opinion},
    )


def _gap(one: SelectorSummary, oracle: Oracle | None) -> Interval:
    if one.gap_to_best_fixed is not None:
        return one.gap_to_best_fixed
    value = math.nan if oracle is None else oracle.value
    return Interval(value - one.running_mean.mean, one.running_mean.half_width, one.running_mean.count)
