"""Quick-Init UCB, Algorithm 1 of the paper, exact at any number of clients.

Every K-subset is an arm. The paper lists them all; this file does not. An arm not played since the cold start has
exactly one pull. Among these the highest index belongs to the highest mean of member scores, and `AdditiveArms` yields
such subsets in order. The arms played, at most one more in each slot, are in `PlayedArms`. The better of the two is the
maximum over all C(N, K) arms.
"""

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.indices import ucb_index
from fedelect.rules import ColdStart, pack, unpack
from fedelect.seeds import Draws
from fedelect.selectors.additive_arms import AdditiveArms
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_exploration
from fedelect.selectors.played_arms import PlayedArms, RewardNoise
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal


@final
class QuickInitUcb(AbstractSelector):
    """UCB over all K-subsets after a cold start of ceil(N / K) slots; Algorithm 1, eq. `ucb-index`.

    A client's score is the reward of its cold-start group (the mean, if it was in two). An arm starts with the mean
    of its members' scores, counted as one pull; each play adds a reward and a pull. Ties are drawn uniformly from the
    selector's own stream. Noise added to the rewards (`Feedback.reward_noise`, a standard deviation) multiplies the
    exploration weight by sqrt(1 + 4 * its mean variance).

    Args:
        clients: N.
        budget: K.
        exploration: mu, the exploration weight, on opinions from 0 to 1. The paper prints 1, with which almost every
            slot tries a new subset and the paper's own numbers are not reached. If its opinions are in percent, its 1
            acts as 0.01, which comes near them (docs/REPRODUCTION.md) and elects far better cohorts in almost every
            world measured (docs/results/selectors.md). The paper as printed is `exploration=1.0`.
        seed: Fixes cold-start groups and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "The server may see the average opinion (FL&FA) and slots are few: the paper's choice."

    def __init__(self, *, clients: int, budget: int, exploration: float = 0.01, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        self._score_total = np.zeros(self.clients)
        self._score_count = np.zeros(self.clients, dtype=np.int64)
        self._score = np.full(self.clients, np.nan)
        self._played = PlayedArms(self.budget)
        self._noise = RewardNoise()
        self._fresh: AdditiveArms | None = None  # over all clients; built after the cold start
        self._fresh_among: tuple[NDArray[np.bool_], AdditiveArms] | None = None  # for the last `available`
        self._cold_log: list[tuple[int, Cohort, float]] = []  # (group number or -1, cohort, reward)

    @property
    def scores(self) -> Floats:
        """(N,) each client's cold-start score; nan where it has none yet."""
        return self._score.copy()

    def _choose(self, slot: int, available: Available) -> Choice:
        group = self._cold.next_cohort(slot, available)
        if group is not None:
            return group, ()
        exploration = self._noise.adjust(self._exploration)
        fresh = self._fresh_arms(available)
        unplayed = fresh.best()
        played = self._played.among(available).best(slot=slot, exploration=exploration)
        # An arm not played since the cold start has one pull.
        index = float("-inf") if unplayed is None else ucb_index(unplayed.mean, 1, slot=slot, exploration=exploration)
        played_ties = played.count if played.index >= index else 0
        unplayed_ties = 0 if unplayed is None or index < played.index else unplayed.count
        draws = Draws(self.seed, "ties", slot)
        ticket = draws.below(played_ties + unplayed_ties)
        cohort = played.pick(ticket) if ticket < played_ties else fresh.draw(ticket - played_ties, draws, self._played)
        return cohort, (max(index, played.index),)

    def _fresh_arms(self, available: Available) -> AdditiveArms:
        if available is None:
            if self._fresh is None:
                everyone = np.arange(self.clients)
                self._fresh = AdditiveArms(everyone, self._score, self.budget, self._played.cohorts())
            return self._fresh
        if self._fresh_among is None or not np.array_equal(self._fresh_among[0], available):
            there = np.flatnonzero(available)
            played = self._played.among(available).cohorts()
            self._fresh_among = (available, AdditiveArms(there, self._score[there], self.budget, played))
        return self._fresh_among[1]

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._noise.add(feedback.reward_noise)
        if not selection.indices:
            self._cold_log.append((self._cold.group_number(selection.cohort), selection.cohort, feedback.reward))
            self._learn_scores(selection.cohort, feedback.reward)
        elif selection.cohort in self._played:
            self._played.add_reward(selection.cohort, feedback.reward)
        else:
            initial = math.fsum(self._score[list(selection.cohort)].tolist()) / self.budget
            self._played.add_arm(selection.cohort, total=initial + feedback.reward, pulls=2)
            if self._fresh is not None:
                self._fresh.mark_played(selection.cohort)
            if self._fresh_among is not None and self._fresh_among[0][list(selection.cohort)].all():
                self._fresh_among[1].mark_played(selection.cohort)

    def _learn_scores(self, cohort: Cohort, reward: float) -> None:
        members = list(cohort)
        self._score_total[members] += reward
        self._score_count[members] += 1
        self._score[members] = self._score_total[members] / self._score_count[members]
        self._cold.mark_tried(cohort)
        self._fresh = self._fresh_among = None  # the order of the unplayed arms has changed

    def _memory(self) -> dict[str, Any]:
        """Save the rewards of the cold-start groups, from which the scores follow, and improvised groups.

        Planned groups follow from the seed, so a million clients take ten thousand packed rewards.
        """
        improvised = [cohort for number, cohort, _ in self._cold_log if number < 0]
        return {
            "cold_slots": len(self._cold_log),
            "cold_groups": pack(np.array([number for number, _, _ in self._cold_log]), "<i4"),
            "cold_improvised": len(improvised),
            "cold_members": pack(np.array(improvised), "<u4"),
            "cold_rewards": pack(np.array([reward for _, _, reward in self._cold_log]), "<f8"),
            "played": self._played.state(),
            "noise": self._noise.state(),
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        slots, improvised = int(memory["cold_slots"]), int(memory["cold_improvised"])
        numbers = unpack(memory["cold_groups"], "<i4", size=slots, what="cold-start groups")
        rewards = unpack(memory["cold_rewards"], "<f8", size=slots, what="cold-start rewards")
        members = unpack(memory["cold_members"], "<u4", size=improvised * self.budget, what="cold-start cohorts")
        cohorts = iter(members.reshape(improvised, self.budget).tolist())
        for number, reward in zip(numbers.tolist(), rewards.tolist(), strict=True):
            cohort = tuple(next(cohorts)) if number < 0 else self._cold.group(number)
            self._cold_log.append((number, cohort, reward))
            self._learn_scores(cohort, reward)
        self._played.restore(memory["played"])
        self._noise.restore(memory["noise"])
