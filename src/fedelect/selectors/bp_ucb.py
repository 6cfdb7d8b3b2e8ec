"""BP-UCB, Algorithm 2 of the paper: every client is an arm, with an index of mean, belief and exploration."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart, elect
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_exploration
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal


@final
class BpUcb(AbstractSelector):
    """The K clients with the highest mean + belief share / N + mu * sqrt(ln t / Pi); eq. `ucb1`.

    A client's mean is over its own opinions in the slots in which it was elected and gave one. Its pulls count its
    elections, abandoned slots included. The first ceil(N / K) slots try every client once. In FL&DA the peers of
    `fedelect.protocol` elect the same cohorts, by the same function, each from its own statistics.

    Args:
        clients: N.
        budget: K.
        exploration: mu, the exploration weight; the paper uses 0.01.
        seed: Fixes cold-start groups and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions", "beliefs"})
    advice: ClassVar[str] = "Opinions must not reach the server (FL&DA): the clients elect among themselves."

    initial_arrays: ClassVar[Mapping[str, float]] = {
        "pulls": 0.0,
        "given": 0.0,  # opinions given while elected
        "total": 0.0,  # their sum
        "beliefs": math.nan,
    }

    def __init__(self, *, clients: int, budget: int, exploration: float = 0.01, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        self._cold = ColdStart(self.clients, self.budget, self.seed)

    @property
    def means(self) -> Floats:
        """(N,) mean of each client's own opinions while elected; nan where there is none yet."""
        with np.errstate(invalid="ignore"):
            return np.where(self.arrays["given"] > 0, self.arrays["total"] / self.arrays["given"], np.nan)

    def _choose(self, slot: int, available: Available) -> Choice:
        cohort = self._cold.next_cohort(slot, available)
        if cohort is not None:
            return cohort, ()
        election = elect(
            self.means,
            np.maximum(self.arrays["pulls"], 1.0),  # an absent client may be untried; it is not eligible then
            self.arrays["beliefs"],
            slot=slot,
            budget=self.budget,
            exploration=self._exploration,
            tie_seed=self.seed,
            eligible=None if available is None else np.flatnonzero(available),
        )
        return election.cohort, election.indices

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None and feedback.beliefs is not None  # declared in `needs`
        members = np.array(selection.cohort)
        present = members[~np.isnan(feedback.opinions[members])]
        self.arrays["given"][present] += 1.0
        self.arrays["total"][present] += feedback.opinions[present]
        self.arrays["beliefs"][:] = feedback.beliefs
        self._count_election(selection.cohort)

    def _abandon(self, selection: Selection) -> None:
        self._count_election(selection.cohort)

    def _count_election(self, cohort: Cohort) -> None:
        self.arrays["pulls"][list(cohort)] += 1.0
        self._cold.mark_tried(cohort)

    def _recall(self, memory: dict[str, Any]) -> None:
        self._cold.mark_tried(tuple(np.flatnonzero(self.arrays["pulls"]).tolist()))
