"""BP-UCB, Algorithm 2 of the paper: an arm for each client, elected by mean, belief and optimism."""

from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules.cold_start import ColdStart
from fedelect.rules.election import elect
from fedelect.selectors.base import AbstractUcb, Available, Choice
from fedelect.selectors.packing import pack, unpack
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal


@final
class BpUcb(AbstractUcb):
    """The K clients with the highest mean + belief share / N + mu * sqrt(ln t / Pi); eq. `ucb1`.

    A client's mean is over its own opinions in the slots in which it was elected and gave one; its pulls count its
    elections, whatever came of them, so an abandoned slot counts too. The first ceil(N / K) slots try every client
    once. In FL&DA this object stands for all the clients' own books; the peers of `fedelect.protocol` elect the
    same cohorts, by the same function, without anybody holding the whole.

    Args:
        clients: N.
        budget: K.
        exploration: mu; the paper uses 0.01.
        seed: Fixes cold-start groups and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions", "beliefs"})
    advice: ClassVar[str] = "Opinions must not reach the server (FL&DA): the clients elect among themselves."

    def __init__(self, *, clients: int, budget: int, exploration: float = 0.01, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, exploration=exploration, seed=seed)
        self._cold = ColdStart(self.clients, self.budget, self._seed)
        self._pulls = np.zeros(self.clients, dtype=np.int64)
        self._given = np.zeros(self.clients, dtype=np.int64)  # opinions given while elected
        self._total = np.zeros(self.clients)  # their sum
        self._beliefs = np.full(self.clients, np.nan)

    @property
    def means(self) -> Floats:
        """(N,) mean of each client's own opinions while elected; nan where there is none yet."""
        with np.errstate(invalid="ignore"):
            return np.where(self._given > 0, self._total / self._given, np.nan)

    def _choose(self, slot: int, available: Available) -> Choice:
        cohort = self._cold.next_cohort(slot, available)
        if cohort is not None:
            return cohort, ()
        election = elect(
            self.means,
            np.maximum(self._pulls, 1),  # an absent client may be untried; it is not eligible then
            self._beliefs,
            slot=slot,
            budget=self.budget,
            exploration=self._exploration,
            tie_seed=self._seed,
            eligible=None if available is None else np.flatnonzero(available),
        )
        return election.cohort, election.indices

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None and feedback.beliefs is not None  # declared in `needs`
        members = np.array(selection.cohort)
        present = members[~np.isnan(feedback.opinions[members])]
        self._given[present] += 1
        self._total[present] += feedback.opinions[present]
        self._beliefs = feedback.beliefs.copy()
        self._elected(selection.cohort)

    def _abandoned(self, selection: Selection) -> None:
        self._elected(selection.cohort)

    def _elected(self, cohort: Cohort) -> None:
        self._pulls[list(cohort)] += 1
        self._cold.mark_tried(cohort)

    def _memory(self) -> dict[str, Any]:
        return {
            "pulls": pack(self._pulls, "<u4"),
            "given": pack(self._given, "<u4"),
            "total": pack(self._total, "<f8"),
            "beliefs": pack(self._beliefs, "<f8"),
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        size = self.clients
        self._pulls = unpack(memory["pulls"], "<u4", size=size, what="pulls").astype(np.int64)
        self._given = unpack(memory["given"], "<u4", size=size, what="opinion counts").astype(np.int64)
        self._total = unpack(memory["total"], "<f8", size=size, what="opinion sums")
        self._beliefs = unpack(memory["beliefs"], "<f8", size=size, what="beliefs")
        self._cold.mark_tried(tuple(np.flatnonzero(self._pulls).tolist()))
