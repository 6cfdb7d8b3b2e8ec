"""Combinatorial Thompson sampling: every client is an arm, the K best draws from the posteriors train."""

from collections.abc import Mapping
from typing import ClassVar, final

from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class ClientThompson(AbstractSelector):
    """CTS (Wang, Chen, ICML 2018), Algorithm 1: theta ~ Beta(a, b) for each client, the K highest.

    A client's outcome in a slot is the reward of the cohort it trained in, clipped to [0, 1]; a reward r counts as r
    successes and 1 - r failures, which is the mean of the paper's random rounding to 0 or 1.

    Args:
        clients: N.
        budget: K.
        sharpness: Number of outcomes that one reward counts for; the paper uses 1.
        seed: Fixes all draws.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "As client-ucb, with a posterior for each client instead of an index."

    initial_arrays: ClassVar[Mapping[str, float]] = {"successes": 1.0, "failures": 1.0}

    def __init__(self, *, clients: int, budget: int, sharpness: float = 1.0, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._sharpness = as_float("sharpness", sharpness, low=1e-6, high=1e6)

    def _choose(self, slot: int, available: Available) -> Choice:
        draws = stream(self.seed, "theta", slot).beta(self.arrays["successes"], self.arrays["failures"])
        return self._pick_best(draws, slot, self._candidates(available)), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        reward = min(max(feedback.reward, 0.0), 1.0)
        members = list(selection.cohort)
        self.arrays["successes"][members] += self._sharpness * reward
        self.arrays["failures"][members] += self._sharpness * (1.0 - reward)
