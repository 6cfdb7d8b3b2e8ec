"""The cold start: every client trains once before any index is used (Algorithm 1, Appendix C).

Clients are split at random into ceil(N / K) groups; the last is filled up from the others. The split depends on the
seed alone, so it is not saved and every peer can compute it.
"""

import numpy as np
from numpy.typing import NDArray

from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Ints


def cold_start_groups(clients: int, budget: int, seed: int | str) -> Ints:
    """Split the clients into cold-start groups, in the order in which they are played.

    Returns:
        (ceil(clients / budget), budget) client numbers, each row sorted. Every client is in at least one row; the
        last row is filled up from the others.
    """
    rng = stream(seed, "cold-start")
    order = rng.permutation(clients)
    missing = -clients % budget
    if missing:
        earlier = order[: clients - (budget - missing)]
        order = np.concatenate([order, rng.choice(earlier, missing, replace=False)])
    return np.sort(order.reshape(-1, budget), axis=1)


class ColdStart:
    """Tracks which clients have been tried, and gives the cohorts that try the others.

    The clients tried are all that needs saving.
    """

    def __init__(self, clients: int, budget: int, seed: int | str) -> None:
        self._groups = cold_start_groups(clients, budget, seed)
        self._seed = seed
        self._tried = np.zeros(clients, dtype=np.bool_)
        self._untried = clients
        self._first = 0  # no group before this one has an untried member

    def mark_tried(self, cohort: Cohort) -> None:
        """Mark these clients as tried."""
        members = list(cohort)
        self._untried -= int(np.count_nonzero(~self._tried[members]))
        self._tried[members] = True

    def group(self, number: int) -> Cohort:
        """The planned group with this number."""
        return tuple(self._groups[number].tolist())

    def group_number(self, cohort: Cohort) -> int:
        """Number of the planned group with an untried member that equals this cohort; -1 if there is none."""
        for number in range(self._first, len(self._groups)):
            if self.group(number) == cohort:
                return number
        return -1

    def next_cohort(self, slot: int, available: NDArray[np.bool_] | None = None) -> Cohort | None:
        """Return the cohort that tries the next clients, or None if no available client is untried.

        It is the next group that is fully available, else available untried clients filled up with others.

        Args:
            slot: The slot to choose for; names the random stream that fills up.
            available: (N,) mask of the available clients, at least K; None means all.
        """
        if not self._untried:
            return None
        while self._tried[self._groups[self._first]].all():
            self._first += 1
        if available is None:
            return tuple(self._groups[self._first].tolist())
        for group in self._groups[self._first :]:
            if available[group].all() and not self._tried[group].all():
                return tuple(group.tolist())
        return self._improvise(slot, available)

    def _improvise(self, slot: int, available: NDArray[np.bool_]) -> Cohort | None:
        fresh = np.flatnonzero(available & ~self._tried)
        if not fresh.size:
            return None
        budget = self._groups.shape[1]
        rng = stream(self._seed, "cold-start-fill", slot)
        chosen = rng.permutation(fresh)[:budget]
        if chosen.size < budget:
            others = np.flatnonzero(available & self._tried)
            chosen = np.concatenate([chosen, rng.permutation(others)[: budget - chosen.size]])
        return tuple(sorted(chosen.tolist()))
