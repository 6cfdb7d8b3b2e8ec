"""Contextual UCB: a client's worth from what is known of it, the K best bounds train."""

from typing import Any, ClassVar, final

import numpy as np

from fedelect.selectors.base import Available, Choice
from fedelect.selectors.literature.base import AbstractRival, number
from fedelect.selectors.literature.regression import Ridge, scaled
from fedelect.vocabulary import Feedback, Floats, Selection, Signal

_FEATURES = ("training_s", "upload_s", "sizes")


@final
class ContextUcb(AbstractRival):
    """LinUCB (Li et al., WWW 2010) over the clients' features, in the spirit of ContextFL (Huang et al. 2022).

    ContextFL takes a client's estimated computation and communication time as its context. Here the features are
    these two forecasts and the data size, each divided by its mean over clients, and a constant; the target is the
    reward of the cohort that the client trained in. The K highest theta^T x + exploration * sqrt(x^T H^-1 x) are
    elected. Clients with equal features are equal to it: it learns what kind of client is worth electing, not which.
    Before the first feedback the cohort is random.

    Args:
        clients: N.
        budget: K.
        exploration: Widths to hope for.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward", "training_s", "upload_s", "sizes"})
    advice: ClassVar[str] = "Clients are many or new, and their features (times, data size) tell what they are worth."

    def __init__(self, *, clients: int, budget: int, exploration: float = 0.3, seed: int) -> None:
        parameters = {"exploration": number("exploration", exploration, low=0.0, high=1e6)}
        books = dict.fromkeys(_FEATURES, np.nan)
        super().__init__(clients=clients, budget=budget, seed=seed, parameters=parameters, books=books)
        self._ridge = Ridge(len(_FEATURES) + 1)

    def _contexts(self) -> Floats:
        columns = [scaled(self._books[name]) for name in _FEATURES]
        contexts: Floats = np.stack([*columns, np.ones(self.clients)], axis=1)
        return contexts

    def _choose(self, slot: int, available: Available) -> Choice:
        means, widths = self._ridge.estimate(self._contexts())
        bounds = means + self.parameters["exploration"] * widths
        cohort = self._best(bounds, slot, self._candidates(available))
        return cohort, tuple(bounds[list(cohort)].tolist())

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        for name in _FEATURES:
            self._keep(name, getattr(feedback, name))
        members = list(selection.cohort)
        self._ridge.note(self._contexts()[members], np.full(len(members), feedback.reward))

    def _memory(self) -> dict[str, Any]:
        return super()._memory() | {"ridge": self._ridge.memory()}

    def _recall(self, memory: dict[str, Any]) -> None:
        super()._recall(memory)
        self._ridge.recall(memory["ridge"])
