"""Builders of measures: figures computed from the results for claims, as means over trials with intervals.

Two series are compared in each trial that both have, and the differences are averaged: a trial shares all draws.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from fedelect.equations.intervals import Interval, mean_band, mean_interval, share_interval
from fedelect.vocabulary import Floats
from paper.blocks import Curves
from paper.catalogue import TRIALS
from paper.claims.claim import Measure, exactly
from paper.evidence import Evidence, elections, final_accuracy, slots_to_target, subtract_paired
from paper.series import Series

CurveStatistic = Callable[[Curves], Floats]
"""Curves -> one value for each trial, shape (R,)."""


def mean_of(series: Series, reading: CurveStatistic, *, slots: int, trials: int = TRIALS) -> Measure:
    """Mean over trials of a reading."""

    def measure(evidence: Evidence) -> Interval | None:
        curves = evidence.curves(series, slots=slots, trials=trials)
        return None if curves is None else mean_interval(reading(curves))

    return measure


def mean_difference(
    one: Series,
    other: Series,
    reading: CurveStatistic,
    *,
    slots: int,
    trials: int = TRIALS,
    other_slots: int | None = None,
) -> Measure:
    """Mean over common trials of the reading of `one` less that of `other`."""

    def measure(evidence: Evidence) -> Interval | None:
        first = evidence.curves(one, slots=slots, trials=trials)
        second = evidence.curves(other, slots=other_slots or slots, trials=trials)
        if first is None or second is None:
            return None
        return mean_interval(subtract_paired(first, second, reading))

    return measure


def accuracy(series: Series, *, slots: int = 200, trials: int = TRIALS) -> Measure:
    """Average accuracy at the last slot."""
    return mean_of(series, final_accuracy, slots=slots, trials=trials)


def accuracy_gain(one: Series, other: Series, *, slots: int = 200, trials: int = TRIALS) -> Measure:
    """By how much the average accuracy of `one` at the last slot is above that of `other`."""
    return mean_difference(one, other, final_accuracy, slots=slots, trials=trials)


def difference_of_declines(one: tuple[Series, Series], other: tuple[Series, Series], *, slots: int = 200) -> Measure:
    """(accuracy of one[0] less that of one[1]) less the same for `other`, trial by trial."""

    def measure(evidence: Evidence) -> Interval | None:
        found = [evidence.curves(series, slots=slots) for series in (*one, *other)]
        curves = [each for each in found if each is not None]
        if len(curves) < len(found):
            return None
        values = [dict(zip(each.trials.tolist(), final_accuracy(each).tolist(), strict=True)) for each in curves]
        common = sorted(set.intersection(*(set(each) for each in values)))
        return mean_interval([values[0][n] - values[1][n] - (values[2][n] - values[3][n]) for n in common])

    return measure


def slots_to(target: float, *, never: int | None = None) -> CurveStatistic:
    """Slots until the average accuracy reaches the target; where it never does, `never`, or T if that is None."""

    def reading(curves: Curves) -> Floats:
        when = slots_to_target(curves, target)
        return np.where(when.reached, when.slot, when.slot if never is None else never).astype(np.float64)

    return reading


def accuracy_at(target: float) -> CurveStatistic:
    """Average accuracy where it reaches the target; at T where it never does."""
    return lambda curves: slots_to_target(curves, target).value


def share_reaching(series: Series, target: float, *, slots: int) -> Measure:
    """Share of the trials that reach the target."""

    def measure(evidence: Evidence) -> Interval | None:
        curves = evidence.curves(series, slots=slots)
        if curves is None:
            return None
        reached = slots_to_target(curves, target).reached
        return share_interval(int(reached.sum()), reached.size)

    return measure


def elections_of(members: Sequence[int]) -> CurveStatistic:
    """How often one of `members` was elected, on average over them."""
    return lambda curves: np.asarray(elections(curves)[:, list(members)].mean(axis=1))


def excess_over_others(members: Sequence[int], times: float = 1.0) -> CurveStatistic:
    """By how much a member is elected more often than `times` one of the others, in elections."""

    def reading(curves: Curves) -> Floats:
        counts = elections(curves)
        others = [client for client in range(counts.shape[1]) if client not in members]
        return np.asarray(counts[:, list(members)].mean(axis=1) - times * counts[:, others].mean(axis=1))

    return reading


def least_over_most(members: Sequence[int]) -> CurveStatistic:
    """Elections of the least elected member, less those of the most elected other client.

    Both are chosen in odd trials for even ones, and in even trials for odd ones: chosen in the same trials, the
    extremes would be biased.
    """

    def reading(curves: Curves) -> Floats:
        counts, even = elections(curves), curves.trials % 2 == 0
        others = sorted(set(range(counts.shape[1])) - set(members))
        apart = np.full(len(counts), np.nan)
        for valued, choosing in ((even, ~even), (~even, even)):
            if choosing.any():
                means = counts[choosing].mean(axis=0)
                least = min(members, key=lambda client: float(means[client]))
                most = max(others, key=lambda client: float(means[client]))
                apart[valued] = counts[valued, least] - counts[valued, most]
        return apart

    return reading


def late_share(members: Sequence[int], *, slots: int = 100) -> CurveStatistic:
    """Share of the last `slots` slots in which exactly `members` were elected."""

    def reading(curves: Curves) -> Floats:
        hits = (np.sort(curves.cohorts[:, -slots:], axis=-1) == np.sort(np.asarray(members))).all(axis=-1)
        return np.asarray(hits.mean(axis=1))

    return reading


def new_share() -> CurveStatistic:
    """Share of the slots in which a cohort is elected that was not elected before."""

    def reading(curves: Curves) -> Floats:
        ordered = np.sort(curves.cohorts, axis=-1)
        return np.array([len(np.unique(trial, axis=0)) / len(trial) for trial in ordered])

    return reading


def late_gain(*, early: int = 20, late: int = 100) -> CurveStatistic:
    """Mean opinion of the last `late` slots less that of the first `early` after the cold start."""

    def reading(curves: Curves) -> Floats:
        begin = cold_start_slots(curves)
        return _mean_over_slots(curves.opinions[:, -late:]) - _mean_over_slots(
            curves.opinions[:, begin : begin + early]
        )

    return reading


def cold_start_opinion(curves: Curves) -> Floats:
    """Mean opinion in the cold start, whose cohorts are a random partition of the clients: what a random one is worth.

    nan where the run is shorter than the cold start.
    """
    begin = cold_start_slots(curves)
    complete = curves.opinions.shape[1] >= begin
    return _mean_over_slots(curves.opinions[:, : begin if complete else 0])


def members_after_cold_start(members: Sequence[int]) -> CurveStatistic:
    """How many of `members` a cohort has, on average over the slots after the cold start; nan if there are none."""

    def reading(curves: Curves) -> Floats:
        hits = np.isin(curves.cohorts[:, cold_start_slots(curves) :], members).sum(axis=-1).astype(np.float64)
        return _mean_over_slots(hits)

    return reading


def opinion_of_cohorts_with(count: int, members: Sequence[int]) -> CurveStatistic:
    """Mean opinion of the slots whose cohort has exactly `count` of `members`; nan in a trial without such a slot."""

    def reading(curves: Curves) -> Floats:
        wanted = np.isin(curves.cohorts, members).sum(axis=-1) == count
        return _mean_over_slots(np.where(wanted, curves.opinions, np.nan))

    return reading


def cold_start_slots(curves: Curves) -> int:
    """ceil(N / K)."""
    world = curves.series.world
    return math.ceil(world.clients / world.budget)


def _mean_over_slots(values: Floats) -> Floats:
    """(R, T) -> (R,), nan left out; nan where there is nothing."""
    return mean_band(values.T).mean


def count_trials(series: Series, *, slots: int, trials: int = TRIALS) -> Measure:
    """How many trials of a series are on file."""

    def measure(evidence: Evidence) -> Interval | None:
        curves = evidence.curves(series, slots=slots, trials=trials)
        return None if curves is None else exactly(len(curves.trials), len(curves.trials))

    return measure
