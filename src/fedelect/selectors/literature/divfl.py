"""DivFL: the clients whose updates represent those of all best."""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.updates import LastUpdates, squared_distances
from fedelect.vocabulary import Feedback, Ints, Selection, Signal

_MOST_CONSIDERED = 1000  # of more clients a sample of this size is drawn to choose from


@final
class DivFl(AbstractSelector):
    """DivFL (Balakrishnan, Li, Zhou, Himayat, Smith, Bilmes, ICLR 2022), the version without communication overhead.

    The cohort S minimises the sum over all clients of the distance between a client's update and the nearest update in
    S: a facility location problem, which is submodular. It is solved greedily, one client after the other. A client's
    update is the last one it uploaded, so only members of a cohort renew theirs.

    Differs from the original: the first updates come from a cold start in which every client trains once, not from a
    first round in which all do; one place of a slot goes to a client that has never uploaded, while there is one;
    updates are random projections (64 numbers), which keep distances to some 10 %; of more than 1000 available clients
    1000 are drawn to choose from.

    Args:
        clients: N.
        budget: K.
        seed: Fixes cold-start groups, draws and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"updates"})
    advice: ClassVar[str] = "Clients come in kinds: a few cohort members should stand for all of them."

    initial_arrays: ClassVar[Mapping[str, float]] = {"tried": 0.0}

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        self._updates = LastUpdates(self.clients)

    def _choose(self, slot: int, available: Available) -> Choice:
        group = self._cold.next_cohort(slot, available)
        if group is not None:
            return group, ()
        pool = self._candidates(available)
        known = np.intersect1d(pool, self._updates.known)
        unknown = np.setdiff1d(pool, known)
        forced = max(self.budget - known.size, min(1, unknown.size))
        chosen = self._pick_random(slot, unknown, forced, "unknown")
        if known.size > _MOST_CONSIDERED:
            known = np.sort(self._pick_random(slot, known, max(_MOST_CONSIDERED, self.budget), "considered"))
        return tuple(sorted(chosen + self._represent(slot, known, self.budget - len(chosen)))), ()

    def _represent(self, slot: int, pool: Ints, count: int) -> list[int]:
        """Greedily choose `count` of the pool, the nearest of which is near to every client that has uploaded."""
        rows = self._updates.rows
        distances = np.sqrt(squared_distances(rows[self._updates.known], rows[pool]))
        nearest = np.full(len(distances), np.inf)
        costs, chosen, left = np.empty(self.clients), list[int](), pool
        for _ in range(count):
            sums = np.minimum(nearest[:, None], distances).sum(axis=0)
            costs[pool] = np.round(sums / max(sums.max(), 1e-300), 9)  # equal clients tie, whatever rounding does
            (best,) = self._pick_best(-costs, slot, left, 1)
            chosen.append(best)
            left = left[left != best]
            nearest = np.minimum(nearest, distances[:, np.searchsorted(pool, best)])
        return chosen

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.updates is not None  # declared in `needs`
        self._updates.add(feedback.updates)
        self._mark_tried(selection)

    def _abandon(self, selection: Selection) -> None:
        self._mark_tried(selection)

    def _mark_tried(self, selection: Selection) -> None:
        self.arrays["tried"][list(selection.cohort)] = 1.0
        self._cold.mark_tried(selection.cohort)

    def _memory(self) -> dict[str, Any]:
        return {"updates": self._updates.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._updates.restore(memory["updates"])
        self._cold.mark_tried(tuple(np.flatnonzero(self.arrays["tried"]).tolist()))
