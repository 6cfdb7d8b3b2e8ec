"""What a run is judged by: pure functions of opinion curves (..., T) and selection counts (..., N).

A curve holds the mean opinion r_t of each slot t = 1..T along its last axis; nan stands for a slot from which
there is no opinion (abandoned, skipped, or not run yet). Leading axes, such as selectors and trials, broadcast.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats, Ints

ROUNDING = 1e-9
"""A value that is below a target by no more than this is at it: opinions are shares of whole samples, so that a mean is
often exactly there, and its sum is rounded."""

FINAL_SLOTS = 10
"""Slots over whose mean a run's end is judged: one slot's model is too much a matter of luck."""


class TimeToTarget(NamedTuple):
    """When a curve first reached a target.

    Attributes:
        slot: (...) number of the first slot, from 1, at which the curve is at or above the target; T if never.
        value: (...) the curve at that slot; where the target was never reached, its last value (nan if none).
        reached: (...) whether it was reached.
    """

    slot: Ints
    value: Floats
    reached: NDArray[np.bool_]


def running_mean(curve: Floats, untrained: ArrayLike | None = None) -> Floats:
    """Mean of the opinions given in slots 1..t, for each t. Shapes: (..., T) -> (..., T).

    This is the objective of the paper up to slot t (eq. `target`). Slots without an opinion do not count; before
    the first opinion the mean is nan.

    Args:
        curve: (..., T) mean opinion of each slot.
        untrained: (...) opinion of the untrained model, counted as the first term, so that the value at slot t is
            a mean of up to t + 1 terms; nan, where it is unknown, makes the whole curve nan. None leaves it out.
    """
    present = ~np.isnan(curve)
    total = np.cumsum(np.where(present, curve, 0.0), axis=-1)
    terms = np.cumsum(present, axis=-1)
    if untrained is not None:
        total = total + np.asarray(untrained, dtype=np.float64)[..., np.newaxis]
        terms = terms + 1
    return _ratio(total, terms)


def last_present(curve: Floats) -> Floats:
    """The last value of each curve that is not nan; nan if there is none. Shapes: (..., T) -> (...)."""
    slots = curve.shape[-1]
    if slots == 0:
        return np.full(curve.shape[:-1], np.nan)
    behind = np.argmax(~np.isnan(curve)[..., ::-1], axis=-1)
    return np.take_along_axis(curve, (slots - 1 - behind)[..., np.newaxis], axis=-1)[..., 0]


def carry_forward(curve: Floats) -> Floats:
    """Each slot's value; where it has none, the last one before it, and nan before the first. (..., T) -> (..., T).

    For what is true of a model: a slot that trained nobody leaves the model as it was.
    """
    slots = np.arange(curve.shape[-1])
    latest = np.maximum.accumulate(np.where(np.isnan(curve), 0, slots), axis=-1)
    return np.take_along_axis(curve, latest, axis=-1)


def final_mean(curve: Floats, ends: ArrayLike | None = None, *, slots: int = FINAL_SLOTS) -> Floats:
    """Mean of a model's measure over the last `slots` slots, up to slot `ends`. Shapes: (..., T) -> (...).

    Slots without a value count as in `carry_forward`; nan if no slot up to `ends` has one.

    Args:
        curve: (..., T) the measure of each slot's model.
        ends: (...) number of the last slot that counts, from 1; T if None. 0 gives nan.
        slots: How many slots count; all there are, if fewer.
    """
    last = np.asarray(curve.shape[-1] if ends is None else ends)[..., np.newaxis]
    number = np.arange(1, curve.shape[-1] + 1)
    return mean_present_slots(np.where((number <= last) & (number > last - slots), carry_forward(curve), np.nan))


def slots_within(costs: Floats, budget: ArrayLike) -> Ints:
    """How many slots, from the first on, cost no more than `budget` together. Shapes: (..., T), (...) -> (...).

    Args:
        costs: (..., T) cost of each slot, not negative; nan counts as none.
        budget: (...) what may be spent.
    """
    spent = np.cumsum(np.nan_to_num(costs), axis=-1)
    allowed = np.asarray(budget, dtype=np.float64)[..., np.newaxis]
    return np.asarray((spent <= allowed).sum(axis=-1), dtype=np.int64)


def mean_present_slots(curve: Floats) -> Floats:
    """Mean over the slots that have an opinion; nan if none has. Shapes: (..., T) -> (...)."""
    present = ~np.isnan(curve)
    total = np.where(present, curve, 0.0).sum(axis=-1)
    terms = present.sum(axis=-1)
    return _ratio(total, terms)


def regret(curve: Floats, oracle: ArrayLike) -> Floats:
    """Opinion lost up to each slot against a stated oracle: sum over s <= t of (oracle - r_s); eq. `reg`.

    One realisation; its mean over trials estimates the pseudo-regret. Slots without an opinion add nothing.
    Negative where the run beats the oracle. Shapes: (..., T) -> (..., T).

    Args:
        curve: (..., T) mean opinion of each slot.
        oracle: What the best cohort would have earned: one number, or an array that broadcasts to `curve`.
    """
    loss = np.asarray(oracle, dtype=np.float64) - curve
    return np.cumsum(np.where(np.isnan(loss), 0.0, loss), axis=-1)


def gap_to(reference: Floats, curve: Floats) -> Floats:
    """Mean of (reference - curve) over the slots in which both have an opinion. Shapes: (..., T) -> (...).

    Paired by slot, so that shared luck cancels; nan where no slot is shared.
    """
    return mean_present_slots(reference - curve)


def time_to_target(curve: Floats, target: float) -> TimeToTarget:
    """The first slot at which a curve is at or above `target`, to within `ROUNDING`, and the value there.

    As in the paper's table `comparison_table`, a curve that never gets there counts as T slots.

    Args:
        curve: (..., T) opinion or running mean, T >= 1.
        target: The opinion to reach.
    """
    slots = curve.shape[-1]
    if slots == 0:
        raise ConfigurationError("a curve of no slots cannot reach a target; got shape " + str(curve.shape))
    with np.errstate(invalid="ignore"):
        above = curve >= target - ROUNDING
    reached = np.asarray(above.any(axis=-1))
    first = np.argmax(above, axis=-1)
    there = np.take_along_axis(curve, first[..., np.newaxis], axis=-1)[..., 0]
    slot = np.where(reached, first + 1, slots).astype(np.int64)
    return TimeToTarget(slot, np.where(reached, there, last_present(curve)), reached)


def group_share(counts: Ints, members: Sequence[int]) -> Floats:
    """Share of all elections that went to `members`, in [0, 1]. Shapes: (..., N) -> (...); nan without elections."""
    total = counts.sum(axis=-1)
    held = counts[..., list(members)].sum(axis=-1)
    return _ratio(held, total)


def jain_index(counts: ArrayLike) -> Floats:
    """Jain's fairness index of how often each client was elected. Shapes: (..., N) -> (...).

    (sum x)^2 / (N sum x^2): 1 when all were elected equally often, k / N when k clients shared all elections
    equally, nan if no client was elected.
    """
    x = np.asarray(counts, dtype=np.float64)
    if x.shape[-1] == 0:
        raise ConfigurationError(f"fairness needs at least one client; got counts of shape {x.shape}")
    # Scaling by the largest keeps the squares inside the range of a float, whatever the counts.
    top = x.max(axis=-1, keepdims=True)
    scaled = np.divide(x, top, out=np.zeros(x.shape), where=top > 0)
    squares = np.square(scaled).sum(axis=-1)
    total = np.square(scaled.sum(axis=-1))
    return _ratio(total, x.shape[-1] * squares)


def never_chosen(counts: Ints) -> Ints:
    """How many clients were never elected. Shapes: (..., N) -> (...)."""
    return np.asarray((counts == 0).sum(axis=-1), dtype=np.int64)


def failure_share(arrivals: Ints, attempts: Ints) -> Floats:
    """Share of attempted uploads that did not arrive, 1 - arrivals / attempts; nan without attempts.

    Elementwise: (...) and (...) -> (...).
    """
    return _ratio(attempts - arrivals, attempts)


def _ratio(part: ArrayLike, whole: ArrayLike) -> Floats:
    """Part / whole, elementwise; nan where the whole, which is never negative, is 0."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    )
    quotient = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient
