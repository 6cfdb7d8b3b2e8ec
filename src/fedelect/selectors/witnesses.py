"""Witnesses for or against a group of suspects, from what `SoundCycle` has read of every client.

`arrays` are those that `SoundCycle` declares, (N,) each; `suspects`, `others` and `out` are (N,) masks.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedelect.selectors.two_kinds import score
from fedelect.vocabulary import Floats

PRIOR = 0.1
"""Probability that a client's training gains nothing, before anything is known of it."""

GAIN_WEIGHT, EFFECT_WEIGHT = 0.7, 0.5
"""Log odds of a usual gain, and of a deviation of the effects on others.

In the worlds of `benchmarks/warm_selector`, own gains of sound clients are about +0.4 of the usual ones and of flawed
clients -0.4, each with a deviation of 1.1. So a reading x has the log likelihood ratio -0.8 / 1.1^2 x.
"""

_LEAST_DROP = 0.02  # deviation of what own training lowers a log loss by
_LEAST_DEVIATION = 0.2  # of gains, in units of what is usual; it is 0.5 or more, but for chance

Mask = NDArray[np.bool_]
Arrays = Mapping[str, Floats]


def ask_losses(arrays: Arrays, suspects: Mask, others: Mask) -> int:
    """1: their losses are high and fell much less than those of the others; 2: clearly so, and hardly fell.

    Height and fall are against all that report at the time, so that progress and drift, which all have in common, are
    out of them, and readings of different times can be compared.
    """
    read = ~np.isnan(arrays["learnt"])
    suspects, others = suspects & read, others & read
    if not suspects.any() or np.count_nonzero(others) < 3:
        return 0
    height = float(np.median(arrays["height"][suspects]) - np.median(arrays["height"][others]))
    ours, theirs = float(np.median(arrays["learnt"][suspects])), float(np.median(arrays["learnt"][others]))
    if height < 0.5 or ours > 0.4 * theirs:
        return 0
    return 2 if height > 0.9 and ours < 0.2 * theirs else 1


def ask_gains(arrays: Arrays, suspects: Mask, others: Mask) -> int:
    """1: they gain less from their own training than the others; -1: they gain more."""
    excess = excess_gains(arrays, others)
    some = excess[suspects & (arrays["gains"] > 0.0)]
    if not some.size or not others.any():
        return 0
    # Medians, for the lies of a few; their variance is pi / 2 times that of a mean.
    error = math.sqrt(0.5 * math.pi * (1.0 / some.size + 1.0 / np.count_nonzero(others)))
    ratio = float(np.median(some)) / error
    return int(ratio < -1.5) - int(ratio > 1.5)


def ask_drops(arrays: Arrays, suspects: Mask, others: Mask) -> int:
    """1: their own training makes their own losses higher: their updates point elsewhere, whatever their data."""
    drop, read = weighted_mean(arrays["drop"], arrays["drops"]), arrays["drops"] > 0.0
    ours, theirs = drop[suspects & read], drop[others & read]
    if not ours.size or theirs.size < 3:
        return 0
    centre = float(np.median(theirs))
    deviation = max(1.4826 * float(np.median(np.abs(theirs - centre))), _LEAST_DROP)
    error = deviation * math.sqrt(0.5 * math.pi / ours.size)
    return int(float(np.median(ours)) < -error and centre > 0.0)


def excess_gains(arrays: Arrays, others: Mask) -> Floats:
    """(N,) own gains (in units of what is usual at their time) in deviations of the others from their median."""
    means = weighted_mean(arrays["gain"], arrays["gains"])
    known = others & (arrays["gains"] > 0.0)
    if not known.any():
        return np.zeros(means.size)
    centre = float(np.median(means[known]))
    deviation = max(1.4826 * float(np.median(np.abs(means[known] - centre))), _LEAST_DEVIATION)
    return np.where(arrays["gains"] > 0.0, (means - centre) / deviation, 0.0)


def ask_updates(arrays: Arrays, suspects: Mask, others: Mask) -> int:
    """1: their updates point against those of the others, or are of quite another length."""
    read = arrays["updates"] > 0.0
    suspects, others = suspects & read, others & read
    if not suspects.any() or not others.any():
        return 0
    cosine = weighted_mean(arrays["cosine"], arrays["updates"])
    length = np.abs(weighted_mean(arrays["length"], arrays["updates"]))
    odd = float(length[suspects].mean() - length[others].mean()) > 1.0
    return int(odd or float(cosine[suspects].mean()) < -0.05)


def misses_training(arrays: Arrays, out: Mask) -> bool:
    """Whether the opinions of those left out fell since then, beyond chance, by more than the others' rose."""
    change = arrays["level"] - arrays["level_before"]
    ours, others = change[out & ~np.isnan(change)], change[~out & ~np.isnan(change)]
    if ours.size < 2 or others.size < 2:
        return False
    behind = float(ours.mean() - others.mean())
    error = math.sqrt(float(ours.var()) / ours.size + float(others.var()) / others.size + 1e-6)
    return behind < -2.5 * error and behind < -0.1 and float(ours.sum() + others.sum()) < 0.0


def gainless_odds(gain: Floats, effects: Floats, known: Mask) -> Floats:
    """(N,) log odds that a client's training gains nothing, neither for itself nor for the others.

    The model gets better for a client when it trains itself, whatever its data, unless data or update is wrong. So
    the own gain is compared with 0, not with what others gain.

    Args:
        gain: (N,) sum of the own gains, in units of what is usual at their time.
        effects: (N,) effect of each client's training on the others, from `member_effects`.
        known: (N,) whose gains are known; some must be.
    """
    prior = math.log(PRIOR / (1.0 - PRIOR))
    odds: Floats = prior - GAIN_WEIGHT * gain + EFFECT_WEIGHT * score(-effects, known)
    return odds


def weighted_mean(total: Floats, weight: Floats) -> Floats:
    """(N,) sums divided by their weights; 0 where there is none."""
    return total / np.maximum(weight, 1e-9)


def ask_goal(suspects: Mask, cohorts: list[list[int]], changes: list[float], *, skip: int) -> int:
    """1: the more suspects a cohort has than the one before it, the less the clients outside gain (t < -2.5).

    It can only speak against them: flaws whose harm builds up slowly do not show in a slot. In cohorts of different
    sizes the suspects' shares are compared.

    Args:
        suspects: (N,).
        cohorts: Those told.
        changes: The mean change of opinion outside each of them and the one before; nan where nobody is known.
        skip: Slots at the beginning that do not count; the model changes too fast.
    """
    sizes = np.array([len(cohort) for cohort in cohorts])
    counts = np.array([np.count_nonzero(suspects[cohort]) for cohort in cohorts]) * (sizes.mean() / sizes)
    more, gained = np.diff(counts)[skip:], np.array(changes[1:])[skip:]
    known = ~np.isnan(gained)
    more, gained = more[known], gained[known]
    power = float(more @ more)
    if gained.size <= 8 or power <= 4.0:
        return 0
    gained = gained - gained.mean()
    slope = float(gained @ more) / power
    error = math.sqrt(float(((gained - slope * more) ** 2).sum()) / (gained.size - 2) / power)
    return int(slope < -2.5 * error)
