"""`SoundCycle` with fewer signals, to see what each adds, and told lies, to see what they earn."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fedelect.selectors import SoundCycle
from fedelect.vocabulary import Feedback, Selection, Signal


class LossesAlone(SoundCycle):
    """From opinions and losses."""

    uses: ClassVar[frozenset[Signal]] = frozenset({"loss"})


class OpinionsAlone(SoundCycle):
    """From opinions."""

    uses: ClassVar[frozenset[Signal]] = frozenset()


class Lied(SoundCycle):
    """Told lies by some clients.

    Args:
        clients: N.
        budget: K.
        seed: The selector's seed.
        liars: Those who lie.
        lie: "praise" (opinion 1 of a cohort with oneself, 0 of others), "blame" (0 of cohorts without oneself) or
            "no-loss" (a loss of 0).
    """

    def __init__(self, *, clients: int, budget: int, seed: int, liars: Sequence[int] = (), lie: str = "praise") -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.liars, self.lie = np.array(liars, dtype=np.int64), lie

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        liars, members = self.liars, list(selection.cohort)
        opinions, loss = feedback.opinions, feedback.loss
        if self.lie == "no-loss" and loss is not None:
            loss = loss.copy()
            loss[liars] *= 0.0
        elif self.lie in ("praise", "blame") and opinions is not None:
            opinions = opinions.copy()
            outside = liars[~np.isin(liars, members)]
            opinions[outside] *= 0.0  # nan where it was not asked
            if self.lie == "praise":
                opinions[liars[np.isin(liars, members)]] = 1.0
        super()._learn(selection, dataclasses.replace(feedback, opinions=opinions, loss=loss))


class LiedOpinions(Lied):
    """The same, from opinions alone."""

    uses: ClassVar[frozenset[Signal]] = frozenset()
