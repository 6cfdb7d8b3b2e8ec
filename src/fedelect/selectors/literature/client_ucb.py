"""Combinatorial UCB: every client is an arm, the K best indices train."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_exploration
from fedelect.selectors.played_arms import RewardNoise
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal


@final
class ClientUcb(AbstractSelector):
    """CUCB (Chen, Wang, Yuan, ICML 2013), Algorithm 1: mean + exploration * sqrt(3 ln t / (2 pulls)), the K highest.

    A client's outcome in a slot is the reward of the cohort it trained in. The oracle of the paper is exact here: with
    rewards that grow with each member's mean, the best K-subset is the top K. The first slots try every client once.

    Differs from the original: a client's own outcome is not seen; its cohort's reward stands for it.

    Args:
        clients: N.
        budget: K.
        exploration: Exploration weight, a factor on the paper's bonus; the paper uses 1.
        seed: Fixes cold-start groups and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "Clients' values add up and do not depend on who else trains; slots are many."

    initial_arrays: ClassVar[Mapping[str, float]] = {"pulls": 0.0, "total": 0.0}

    def __init__(self, *, clients: int, budget: int, exploration: float = 1.0, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        self._noise = RewardNoise()

    def indices(self, slot: int) -> Floats:
        """(N,) the clients' indices in `slot`; infinite where a client has never trained."""
        pulls = self.arrays["pulls"]
        tried = np.maximum(pulls, 1.0)
        bonus = self._noise.adjust(self._exploration) * np.sqrt(1.5 * math.log(slot) / tried)
        indices: Floats = np.where(pulls > 0.0, self.arrays["total"] / tried + bonus, np.inf)
        return indices

    def _choose(self, slot: int, available: Available) -> Choice:
        group = self._cold.next_cohort(slot, available)
        if group is not None:
            return group, ()
        indices = self.indices(slot)
        cohort = self._pick_best(indices, slot, self._candidates(available))
        return cohort, tuple(indices[list(cohort)].tolist())

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._noise.add(feedback.reward_noise)
        members = list(selection.cohort)
        self.arrays["pulls"][members] += 1.0
        self.arrays["total"][members] += feedback.reward
        self._cold.mark_tried(selection.cohort)

    def _memory(self) -> dict[str, Any]:
        return {"noise": self._noise.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._noise.restore(memory["noise"])
        tried: Cohort = tuple(np.flatnonzero(self.arrays["pulls"]).tolist())
        self._cold.mark_tried(tried)
