"""Analyse a run for the page and the figures: curves, summaries, oracle and the theorem's bounds."""

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedelect.equations.intervals import mean_interval
from fedelect.equations.metrics import last_present, running_mean
from fedelect.errors import ConfigurationError
from fedelect.records import (
    RANDOM,
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
from fedelect.report.run_data import RunAccumulator, RunData
from fedelect.report.theorem import Bound, Oracle, compute_bounds, find_oracle
from fedelect.vocabulary import Floats

Source = RunRecords | str | os.PathLike[str]
"""A run in memory, or the folder of one."""

OPINION, RUNNING_MEAN, REGRET = "opinion", "running mean", "regret"
ACCURACY, DIFFERENCE, LOW_ACCURACY, FLAWED = "accuracy", "accuracy minus random", "low accuracy", "flawed share"


@dataclass(frozen=True, eq=False, kw_only=True)
class RunAnalysis:
    """Analysis of one run.

    Attributes:
        run: Data of its records.
        best: Label of the best fixed cohort; None if the run has none.
        oracle: Reference of the regret; None before the first opinion.
        bounds: The theorem's bound of each selector that has one, at the slots at which curves are drawn.
        curves: `OPINION`, `RUNNING_MEAN` and, with an oracle, `REGRET` -> label -> (trials, T). Where measured, also
            `ACCURACY`, `LOW_ACCURACY`, `FLAWED` (mean so far) and, beside random, `DIFFERENCE`, for those labels only.
        summaries: The figures of each selector; `targets` are reached by the running mean.
        by_opinion: Label -> the same targets reached by the opinion of a single slot.
    """

    run: RunData
    best: str | None
    oracle: Oracle | None
    bounds: tuple[Bound, ...]
    curves: dict[str, dict[str, Floats]]
    summaries: tuple[SelectorSummary, ...]
    by_opinion: dict[str, tuple[TargetSummary, ...]]


def load_runs(sources: Sequence[Source]) -> list[RunData]:
    """Load each source's records in one pass.

    Raises:
        ConfigurationError: There is no source.
        SchemaError, RunError: A folder holds no run that can be read, or a record does not fit its run.
    """
    if not sources:
        raise ConfigurationError("a report needs at least one run; got none")
    names = make_unique([_name(source) for source in sources])
    return [_load_run(source, name, len(sources)) for source, name in zip(sources, names, strict=True)]


def _load_run(source: Source, name: str, runs: int) -> RunData:
    if isinstance(source, RunRecords):
        tabulate(source)  # for its check that the records fit their header
        header, records = source.header, iter(source.records)
    else:
        follower = follow_run(source)
        header, records = follower.header, follower.fresh()
    accumulator = RunAccumulator(header, name=name, runs=runs)
    for record in records:
        accumulator.add(record)
    return accumulator.result()


def _name(source: Source) -> str:
    if isinstance(source, RunRecords):
        name = source.header.scenario.get("name")
        return name if isinstance(name, str) and name else "run"
    return folder_name(source)


def folder_name(folder: str | os.PathLike[str]) -> str:
    """Name of the run in `folder`: the folder's own name.

    >>> folder_name("runs/first/")
    'first'
    """
    return Path(os.path.abspath(folder)).name or "run"


def make_unique(names: Sequence[str]) -> list[str]:
    """Append to names that occurred before the least number that makes them unique.

    >>> make_unique(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    >>> make_unique(["a", "a (2)", "a"])
    ['a', 'a (2)', 'a (3)']
    """
    given = set(names)
    found: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        found.append(name if name not in found else next(one for one in numbered if one not in given.union(found)))
    return found


def analyse_runs(runs: Sequence[RunData], targets: Sequence[float] | None = None) -> list[RunAnalysis]:
    """Analyse each run; targets that are not given are chosen from all runs together."""
    chosen = tuple(targets) if targets is not None else choose_targets([running_means(run) for run in runs])
    return [_analyse(run, chosen) for run in runs]


def running_means(run: RunData) -> list[float]:
    """Final running mean of each selector, over all trials; those without an opinion are left out."""
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


def _analyse(run: RunData, targets: tuple[float, ...]) -> RunAnalysis:
    table, oracle = run.table, find_oracle(run)
    curves = {OPINION: opinion_curves(table), RUNNING_MEAN: running_mean_curves(table)}
    if oracle is not None:
        curves[REGRET] = regret_curves(table, oracle.value)
    curves |= _measured_curves(run)
    summaries = tuple(summarise(table, oracle=None if oracle is None else oracle.value, targets=targets))
    by_opinion = summarise(table, targets=targets, target_by="opinion")
    return RunAnalysis(
        run=run,
        best=best_fixed(table),
        oracle=oracle,
        bounds=tuple(compute_bounds(run, oracle, run.thinning.curve_slots)),
        curves=curves,
        summaries=summaries,
        by_opinion={one.label: one.targets for one in by_opinion},
    )


def _measured_curves(run: RunData) -> dict[str, dict[str, Floats]]:
    """The curves of what was measured; a name without a value is left out."""
    measured = run.table.measured.curves
    found = {
        ACCURACY: {label: one.accuracy for label, one in measured.items()},
        LOW_ACCURACY: {label: one.low_accuracy for label, one in measured.items()},
        FLAWED: {label: running_mean(one.flawed_share) for label, one in measured.items()},
    }
    if RANDOM in measured:
        others = {label: one.accuracy for label, one in measured.items() if label != RANDOM}
        found[DIFFERENCE] = {label: curve - measured[RANDOM].accuracy for label, curve in others.items()}
    present = {name: any(not np.isnan(curve).all() for curve in curves.values()) for name, curves in found.items()}
    return {name: curves for name, curves in found.items() if present[name]}
