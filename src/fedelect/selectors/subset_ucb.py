"""Subset UCB: the paper's "conventional UCB", every K-subset an arm, without listing them.

Every arm is played once before indices are used. Untried arms are drawn uniformly, without replacement: by rejection
while most are untried; from a list of the rest once more than half have been tried (it is then shorter than the
history).
"""

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from fedelect.seeds import Draws
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_exploration
from fedelect.selectors.played_arms import PlayedArms, RewardNoise
from fedelect.vocabulary import Cohort, Feedback, Selection, Signal


@final
class SubsetUcb(AbstractSelector):
    """UCB over all K-subsets, each tried once in random order before its index is used; eq. `ucb-index`.

    Args:
        clients: N.
        budget: K.
        exploration: mu, the exploration weight; the paper uses 1.
        seed: Fixes the order of the untried arms, and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "There are far more slots than cohorts C(N, K); else it is a random choice."

    def __init__(self, *, clients: int, budget: int, exploration: float = 1.0, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        self._played = PlayedArms(self.budget)
        self._noise = RewardNoise()
        self._left: list[Cohort] | None = None  # the untried arms, sorted, once more than half have been tried

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = range(self.clients) if available is None else np.flatnonzero(available).tolist()
        arms = math.comb(len(pool), self.budget)
        played = self._played.among(available)
        if len(played) < arms:
            draws = Draws(self.seed, "untried", slot)
            if 2 * len(played) <= arms:
                return self._draw_untried(pool, draws), ()
            left = self._list_untried() if available is None else _list_untried_among(pool, self.budget, played)
            return left[draws.below(len(left))], ()
        best = played.best(slot=slot, exploration=self._noise.adjust(self._exploration))
        return best.pick(Draws(self.seed, "ties", slot).below(best.count)), (best.index,)

    def _draw_untried(self, pool: Sequence[int], draws: Draws) -> Cohort:
        while True:
            cohort = tuple(pool[place] for place in draws.sample(len(pool), self.budget))
            if cohort not in self._played:
                return cohort

    def _list_untried(self) -> list[Cohort]:
        if self._left is None:
            self._left = _list_untried_among(range(self.clients), self.budget, self._played)
        return self._left

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._noise.add(feedback.reward_noise)
        if selection.cohort in self._played:
            self._played.add_reward(selection.cohort, feedback.reward)
            return
        self._played.add_arm(selection.cohort, total=feedback.reward, pulls=1)
        if self._left is not None:
            del self._left[bisect.bisect_left(self._left, selection.cohort)]

    def _memory(self) -> dict[str, Any]:
        return {"played": self._played.state(), "noise": self._noise.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._played.restore(memory["played"])
        self._noise.restore(memory["noise"])


def _list_untried_among(pool: Sequence[int], budget: int, played: PlayedArms) -> list[Cohort]:
    return [arm for arm in itertools.combinations(pool, budget) if arm not in played]
