"""Contextual UCB: a client's value by regression on its features; the K best indices train."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import Ridge, divide_by_mean, known_then
from fedelect.selectors.parameters import as_exploration
from fedelect.vocabulary import Feedback, Floats, Selection, Signal

_FEATURES = ("training_s", "upload_s", "sizes")


@final
class ContextUcb(AbstractSelector):
    """LinUCB (Li et al., WWW 2010) over the clients' features, in the spirit of ContextFL (Huang et al. 2022).

    ContextFL takes a client's estimated computation and communication time as its context. Here the features are
    these two forecasts and the data size, each divided by its mean over clients, and a constant; the target is the
    reward of the cohort that the client trained in. The K highest theta^T x + exploration * sqrt(x^T H^-1 x) are
    elected. It cannot tell clients with equal features apart. Before the first feedback the cohort is random. A reward
    belongs to the features that were known when the cohort was elected; in the first slot, to those told after it.

    Differs from LinUCB: one regression for all clients, where LinUCB with disjoint models has one for each; a client's
    reward is its cohort's.

    Args:
        clients: N.
        budget: K.
        exploration: Exploration weight, a factor on the confidence width.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward", "training_s", "upload_s", "sizes"})
    advice: ClassVar[str] = "Clients are many or new, and their features (times, data size) predict their value."

    initial_arrays: ClassVar[Mapping[str, float]] = dict.fromkeys(_FEATURES, math.nan)

    def __init__(self, *, clients: int, budget: int, exploration: float = 0.3, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        self._ridge = Ridge(len(_FEATURES) + 1)

    def _contexts(self, features: Iterable[Floats]) -> Floats:
        columns = [divide_by_mean(values) for values in features]
        contexts: Floats = np.stack([*columns, np.ones(self.clients)], axis=1)
        return contexts

    def _choose(self, slot: int, available: Available) -> Choice:
        means, widths = self._ridge.estimate(self._contexts(self.arrays[name] for name in _FEATURES))
        bounds = means + self._exploration * widths
        cohort = self._pick_best(bounds, slot, self._candidates(available))
        return cohort, tuple(bounds[list(cohort)].tolist())

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        told = {name: getattr(feedback, name) for name in _FEATURES}
        members = list(selection.cohort)
        contexts = self._contexts(known_then(self.arrays[name], values) for name, values in told.items())
        self._ridge.add(contexts[members], np.full(len(members), feedback.reward))
        for name, values in told.items():
            self._update_known(name, values)

    def _memory(self) -> dict[str, Any]:
        return {"ridge": self._ridge.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._ridge.restore(memory["ridge"])
