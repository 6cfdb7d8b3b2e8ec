"""Figures by which selectors are ranked, one for each trial."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedelect.bench.play import Elections
from fedelect.equations.metrics import jain_index
from fedelect.vocabulary import Floats, Ints

CLOSE = 0.02
"""A selector is close if it is within this share of the optimum: 2 %."""

WINDOW = 10
"""Slots over whose mean a selector must be close."""

LAST_SHARE = 0.1
"""The share of the slots that counts as the end of a run."""


@dataclass(frozen=True, eq=False)
class Figures:
    """A selector's figures, each (trials,). Gaps are in percent of the optimum's value.

    Attributes:
        final_gap: Optimum minus the mean value of the cohorts of the last tenth of the slots.
        running_gap: The same over all slots.
        slots_to_close: The first slot from which the values of ten slots in a row are on average within 2 % of the
            optimum; T if there is none.
        regret: Pseudo-regret after T slots.
        jain_index: Fairness of the elections, in (0, 1].
        ask_ms: Milliseconds of CPU time that an ask takes.
    """

    final_gap: Floats
    running_gap: Floats
    slots_to_close: Floats
    regret: Floats
    jain_index: Floats
    ask_ms: Floats


def figures_of(elections: Elections, values: Floats, optimum: float, clients: int) -> Figures:
    """Compute a selector's figures from its elections.

    Args:
        elections: Its elections.
        values: (trials, T) value of the cohort elected in each slot.
        optimum: The value of the best cohort.
        clients: N.
    """
    last = max(1, round(LAST_SHARE * values.shape[1]))
    return Figures(
        final_gap=_gap(values[:, -last:], optimum),
        running_gap=_gap(values, optimum),
        slots_to_close=slots_to_close(values, optimum).astype(np.float64),
        regret=np.asarray((optimum - values).sum(axis=1)),
        jain_index=jain_index(_counts(elections.cohorts, clients)),
        ask_ms=elections.ask_ms,
    )


def slots_to_close(values: Floats, optimum: float) -> Ints:
    """The first slot t, from 1, such that the mean value of the slots t .. t + 9 is within 2 % of the optimum.

    Where there is no such slot it is T; runs shorter than ten slots are taken as a whole.

    Args:
        values: (trials, T) value of the cohort elected in each slot.
        optimum: The value of the best cohort.

    Returns:
        (trials,)
    """
    close = _close(values, optimum)
    return np.asarray(np.where(close.any(axis=1), np.argmax(close, axis=1) + 1, values.shape[1]), dtype=np.int64)


def has_come_close(values: Floats, optimum: float) -> NDArray[np.bool_]:
    """Whether there is such a slot at all: (trials, T) -> (trials,). Where there is none, `slots_to_close` says T."""
    return np.asarray(_close(values, optimum).any(axis=1))


def _close(values: Floats, optimum: float) -> NDArray[np.bool_]:
    """Whether the mean of the ten slots from each slot on is close: (trials, T) -> (trials, T - 9)."""
    means = np.lib.stride_tricks.sliding_window_view(values, min(WINDOW, values.shape[1]), axis=1).mean(axis=2)
    return np.asarray(means >= (1.0 - CLOSE) * optimum)


def _gap(values: Floats, optimum: float) -> Floats:
    """Percent by which the mean value falls short of the optimum: (trials, T) -> (trials,)."""
    return np.asarray(100.0 * np.round((optimum - values).mean(axis=1), 12) / optimum)


def _counts(cohorts: Ints, clients: int) -> Ints:
    """(trials, T, K) -> (trials, N) how often each client was elected."""
    return np.stack([np.bincount(trial.ravel(), minlength=clients) for trial in cohorts])
