"""Additive Thompson: Bayesian regression of the reward on who trained, and the top K of one draw."""

from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import CohortStatistics
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Floats, Selection, Signal


@final
class AdditiveThompson(AbstractSelector):
    """Linear Thompson sampling (Agrawal, Goyal, ICML 2013) with the members of the cohort as context.

    The reward is a level plus the sum of its members' values, each normal with standard deviation `spread`, plus normal
    noise. Each slot draws the values from their posterior and elects the K highest. The draw is by Matheron's rule, in
    the space of the n cohorts played, at a cost of O(n^3 + n N).

    Args:
        clients: N.
        budget: K.
        spread: Prior standard deviation of a client's value.
        noise: Standard deviation of a reward.
        memory: Most cohorts kept.
        seed: Fixes all draws.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "Clients' values add up: regression assigns credit to members, not to all alike."

    def __init__(
        self, *, clients: int, budget: int, spread: float = 0.1, noise: float = 0.05, memory: int = 256, seed: int
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._spread = as_float("spread", spread, low=1e-6, high=1e6)
        self._noise = as_float("noise", noise, low=1e-6, high=1e6)
        self._statistics = CohortStatistics(
            self.budget, forgetting=1.0, memory=int(as_float("memory", memory, low=2, high=1e6))
        )

    def _choose(self, slot: int, available: Available) -> Choice:
        rng = stream(self.seed, "worths", slot)
        worths = self._spread * rng.standard_normal(self.clients)
        if len(self._statistics):
            worths = self._condition(worths, rng)
        return self._pick_best(worths, slot, self._candidates(available)), ()

    def _condition(self, worths: Floats, rng: np.random.Generator) -> Floats:
        """Turn a draw from the prior into a draw from the posterior."""
        cohorts, means, weights, _, added = self._statistics.evidence()
        members = np.zeros((len(cohorts), self.clients))
        np.put_along_axis(members, cohorts, 1.0, axis=1)
        variance = self._spread**2
        noise = self._noise**2 / weights + added
        centre = np.average(means, weights=weights)
        level = 1.0  # a wide prior on what all cohorts have in common
        gram = variance * (members @ members.T) + level + np.diag(noise)
        drawn = members @ worths + rng.standard_normal() + np.sqrt(noise) * rng.standard_normal(len(cohorts))
        moved: Floats = worths + variance * (members.T @ np.linalg.solve(gram, means - centre - drawn))
        return moved

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._statistics.add_reward(selection.cohort, feedback.reward, feedback.reward_noise**2)

    def _memory(self) -> dict[str, Any]:
        return self._statistics.state()

    def _recall(self, memory: dict[str, Any]) -> None:
        self._statistics.restore(memory)
