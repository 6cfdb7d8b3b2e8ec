"""A run in a few figures for each selector, with 95 % intervals over trials."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedelect.equations import metrics
from fedelect.equations.intervals import Interval, mean_interval
from fedelect.records.measures import Measured, MeasureSummary
from fedelect.records.reader import RunRecords
from fedelect.records.table import (
    CurveName,
    RunTable,
    SelectorTable,
    gaps_to_best,
    group_shares,
    regret_curves,
    running_mean_curves,
    tabulate,
    time_to_target,
)
from fedelect.vocabulary import Floats


@dataclass(frozen=True, kw_only=True)
class TargetSummary:
    """How fast a target was reached.

    Attributes:
        target: The value to reach.
        slots: Slots it took; T in trials that never got there.
        value: The curve at that slot.
        reached: In how many trials it was reached.
        trials: Out of how many that have a record.
    """

    target: float
    slots: Interval
    value: Interval
    reached: int
    trials: int


@dataclass(frozen=True, kw_only=True)
class SelectorSummary:
    """One selector's run in a few figures; intervals are over trials that have a record.

    Attributes:
        label: Its name in the run.
        kind: Its class.
        trials: How many trials have at least one record.
        done: Slots trained and told, over all trials; likewise `abandoned` and `skipped`.
        abandoned: Slots from which nothing was learnt.
        skipped: Slots in which nobody was elected.
        final_opinion: Mean opinion in the last slot that has one.
        running_mean: Mean opinion over all slots.
        running_mean_with_untrained: The same with the untrained model as first term; None if not on record.
        gap_to_best: Mean opinion by which the best cohort known is ahead (`gaps_to_best`); None without one.
        regret: Opinion lost to the oracle up to the last slot; None without one.
        group_shares: Group -> share of all elections, in [0, 1].
        jain_index: Fairness of the elections, in (0, 1].
        never_chosen: How many clients were never elected.
        upload_failures: Share of attempted uploads that did not arrive, in [0, 1].
        selections: (N,) mean over trials of how often each client was elected.
        targets: One for each target asked for.
        measured: What its slots achieved and cost; None if no slot was measured.
    """

    label: str
    kind: str
    trials: int
    done: int
    abandoned: int
    skipped: int
    final_opinion: Interval
    running_mean: Interval
    running_mean_with_untrained: Interval | None
    gap_to_best: Interval | None
    regret: Interval | None
    group_shares: dict[str, Interval]
    jain_index: Interval
    never_chosen: Interval
    upload_failures: Interval
    selections: tuple[float, ...]
    targets: tuple[TargetSummary, ...]
    measured: MeasureSummary | None = None


def summarise(
    run: RunRecords | RunTable,
    *,
    oracle: float | Floats | None = None,
    targets: Sequence[float] = (),
    target_by: CurveName = "running mean",
    confidence: float = 0.95,
) -> list[SelectorSummary]:
    """Each selector's run in a few figures, in the order of the header.

    Args:
        run: The run, finished or not.
        oracle: What the best cohort would earn in a slot (a number, or an array that broadcasts to (trials, T));
            None takes the optimum of the header, and leaves the regret out if there is none.
        targets: Values to be reached.
        target_by: The curve that is to reach them.
        confidence: Level of the intervals, between 0 and 1.
    """
    table = tabulate(run)
    if oracle is None and table.header.optimum is not None:
        oracle = table.header.optimum.value
    view = _View(
        running=running_mean_curves(table),
        counted=None if table.untrained is None else running_mean_curves(table, with_untrained=True),
        gaps=gaps_to_best(table),
        losses=None if oracle is None else regret_curves(table, oracle),
        shares=group_shares(table),
        measured=table.measured,
        times=[(target, time_to_target(table, target, by=target_by)) for target in targets],
        joined=table.joined,
        confidence=confidence,
    )
    return [_summary(one, view) for one in table.selectors.values()]


@dataclass(frozen=True, kw_only=True)
class _View:
    """What is computed for all selectors at once; keyed by label."""

    running: dict[str, Floats]
    counted: dict[str, Floats] | None
    gaps: dict[str, Floats] | None
    losses: dict[str, Floats] | None
    shares: dict[str, dict[str, Floats]]
    measured: Measured
    times: list[tuple[float, dict[str, metrics.TimeToTarget]]]
    joined: int | None
    confidence: float


def _summary(one: SelectorTable, view: _View) -> SelectorSummary:
    label = one.entry.label
    begun = np.asarray(one.recorded.any(axis=-1))

    def over_trials(values: Floats) -> Interval:
        return mean_interval(values, confidence=view.confidence)

    def at_end(curves: dict[str, Floats] | None) -> Interval | None:
        return None if curves is None else over_trials(metrics.last_present(curves[label]))

    lost = metrics.failure_share(one.arrivals.sum(axis=-1), one.attempts.sum(axis=-1))
    mean_selections: list[float] = (one.selections.sum(axis=0) / max(int(begun.sum()), 1)).tolist()
    return SelectorSummary(
        label=label,
        kind=one.entry.kind,
        trials=int(begun.sum()),
        done=one.done,
        abandoned=one.abandoned,
        skipped=one.skipped,
        final_opinion=over_trials(metrics.last_present(one.opinion)),
        running_mean=over_trials(metrics.last_present(view.running[label])),
        running_mean_with_untrained=at_end(view.counted),
        gap_to_best=None if view.gaps is None else over_trials(view.gaps[label]),
        regret=at_end(view.losses),
        group_shares={group: over_trials(share) for group, share in view.shares[label].items()},
        jain_index=over_trials(metrics.jain_index(one.selections[:, : view.joined])),
        never_chosen=over_trials(np.where(begun, metrics.never_chosen(one.selections[:, : view.joined]), np.nan)),
        upload_failures=over_trials(lost),
        selections=tuple(mean_selections),
        targets=tuple(_target(target, times[label], begun, view.confidence) for target, times in view.times),
        measured=view.measured.summary(label, confidence=view.confidence),
    )


def _target(
    target: float,
    times: metrics.TimeToTarget,
    begun: NDArray[np.bool_],
    confidence: float,
) -> TargetSummary:
    slots = np.where(begun, times.slot, np.nan)
    return TargetSummary(
        target=target,
        slots=mean_interval(slots, confidence=confidence),
        value=mean_interval(times.value, confidence=confidence),
        reached=int(times.reached.sum()),
        trials=int(begun.sum()),
    )
