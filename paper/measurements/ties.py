"""Quick-Init UCB with ties broken by client number, as in a program that lists all arms and takes the first best.

The paper's best clients are its numbers 1 to 5, so this rule leaks the answer. It is here to measure how much; it is
no selector to use, and so has no name on the command line.
"""

import itertools
import math
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.vocabulary import Cohort, Feedback, Selection, Signal

LEVEL_DIGITS = 12
"""Decimals to which indices are compared, so that sums of the same numbers in another order are level."""


@final
class QuickInitByNumber(AbstractSelector):
    """Algorithm 1 as printed, all C(N, K) arms in a list, the first of the best one taken.

    Args:
        clients: N.
        budget: K.
        exploration: mu.
        seed: Fixes the cold-start groups.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    symmetric = False

    def __init__(self, *, clients: int, budget: int, exploration: float = 1.0, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = exploration
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        self._arms = np.array(list(itertools.combinations(range(self.clients), self.budget)))
        self._places = {tuple(arm): place for place, arm in enumerate(self._arms.tolist())}
        self._totals = np.zeros(len(self._arms))
        self._pulls = np.ones(len(self._arms), dtype=np.int64)
        self._told: list[tuple[Cohort, float]] = []

    def _choose(self, slot: int, available: Available) -> Choice:
        group = self._cold.next_cohort(slot, available)
        if group is not None:
            return group, ()
        index = self._totals / self._pulls + self._exploration * np.sqrt(math.log(slot) / self._pulls)
        if available is not None:
            index = np.where(available[self._arms].all(axis=1), index, -np.inf)
        best = int(np.argmax(np.round(index, LEVEL_DIGITS)))  # argmax takes the first: the lowest numbers
        return tuple(self._arms[best].tolist()), (float(index[best]),)

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._take(selection.cohort, feedback.reward)

    def _take(self, cohort: Cohort, reward: float) -> None:
        self._told.append((cohort, reward))
        if self._cold.next_cohort(len(self._told)) is None:
            place = self._places[cohort]
            self._totals[place] += reward
            self._pulls[place] += 1
            return
        self._cold.mark_tried(cohort)
        if self._cold.next_cohort(len(self._told) + 1) is None:
            self._totals = self._scores()[self._arms].mean(axis=1)

    def _scores(self) -> Any:
        """(N,) mean reward of the cold-start groups that each client was in."""
        total, count = np.zeros(self.clients), np.zeros(self.clients)
        for cohort, reward in self._told:
            total[list(cohort)] += reward
            count[list(cohort)] += 1
        return total / count

    def _memory(self) -> dict[str, Any]:
        return {"told": [[list(cohort), reward] for cohort, reward in self._told]}

    def _recall(self, memory: dict[str, Any]) -> None:
        for cohort, reward in memory["told"]:
            self._take(tuple(cohort), float(reward))
