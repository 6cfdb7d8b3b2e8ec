"""Subset UCB: the paper's "conventional UCB", every K-subset an arm, without listing them.

An arm must be tried once before its index counts. Untried arms are drawn uniformly, without replacement: by rejection
while most are untried, from the list of what is left once more than half have been tried (the list is then at most
as long as the slots played).
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from fedelect.equations.indices import widened
from fedelect.seeds import Draws
from fedelect.selectors.base import AbstractSelector, Available, Choice, check_exploration
from fedelect.selectors.played_arms import PlayedArms
from fedelect.vocabulary import Ask, Cohort, Feedback, Signal


@final
class SubsetUcb(AbstractSelector):
    """UCB over all K-subsets, each tried once in random order before its index is used; eq. `ucb-index`.

    Args:
        clients: N.
        budget: K.
        exploration: mu; the paper uses 1.
        seed: Fixes the order of the untried arms, and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "There are far more slots than cohorts C(N, K); else it is a random choice."

    def __init__(self, *, clients: int, budget: int, exploration: float = 1.0, seed: int) -> None:
        super().__init__(
            clients=clients,
            budget=budget,
            parameters={"clients": clients, "budget": budget, "exploration": exploration, "seed": seed},
        )
        self._exploration = check_exploration(exploration)
        self._seed = seed
        self._played = PlayedArms(budget)
        self._noise = 0.0  # sum of the variances of the noise on the rewards
        self._rewards = 0

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = range(self.clients) if available is None else np.flatnonzero(available).tolist()
        arms = math.comb(len(pool), self.budget)
        played = self._played.among(available)
        if len(played) < arms:
            return self._untried(slot, pool, arms, len(played)), ()
        exploration = widened(self._exploration, self._noise / max(self._rewards, 1))
        best = played.best(slot=slot, exploration=exploration)
        return best.pick(Draws(self._seed, "ties", slot).below(best.count)), (best.index,)

    def _untried(self, slot: int, pool: Sequence[int], arms: int, tried: int) -> Cohort:
        draws = Draws(self._seed, "untried", slot)
        if 2 * tried > arms:
            left = [arm for arm in itertools.combinations(pool, self.budget) if arm not in self._played]
            return left[draws.below(len(left))]
        while True:
            cohort = tuple(pool[place] for place in draws.sample(len(pool), self.budget))
            if cohort not in self._played:
                return cohort

    def _learn(self, ask: Ask, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._noise += feedback.reward_noise**2
        self._rewards += 1
        if ask.cohort in self._played:
            self._played.reward(ask.cohort, feedback.reward)
        else:
            self._played.put(ask.cohort, total=feedback.reward, pulls=1)

    def _memory(self) -> dict[str, Any]:
        return {"played": self._played.memory(), "noise": self._noise, "rewards": self._rewards}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._played.recall(memory["played"])
        self._noise = float(memory["noise"])
        self._rewards = int(memory["rewards"])
