"""The arms (cohorts) that have been played, kept one by one: O(T K) memory for T slots."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedelect.equations.indices import ucb_index
from fedelect.selectors.base import Available
from fedelect.selectors.packing import pack, unpack
from fedelect.vocabulary import Cohort


@dataclass(frozen=True, slots=True)
class BestPlayed:
    """The highest index among played arms (-inf if there are none) and the arms that share it."""

    index: float
    cohorts: list[Cohort]


class PlayedArms:
    """Cohorts with the total of their rewards and their number of pulls."""

    def __init__(self, budget: int) -> None:
        self._row: dict[Cohort, int] = {}
        self._members = np.empty((16, budget), dtype=np.int64)
        self._total = np.empty(16)
        self._pulls = np.empty(16, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, cohort: Cohort) -> bool:
        return cohort in self._row

    def cohorts(self) -> list[Cohort]:
        """The arms, in the order in which they were first played."""
        return list(self._row)

    def count_among(self, available: Available) -> int:
        """How many of the arms have all their members among the available clients."""
        if available is None:
            return len(self)
        return int(np.count_nonzero(available[self._members[: len(self)]].all(axis=1)))

    def add(self, cohort: Cohort, *, total: float, pulls: int) -> None:
        """Enter an arm that is not there yet."""
        row = len(self._row)
        if row == self._total.size:
            self._members = np.concatenate([self._members, np.empty_like(self._members)])
            self._total = np.concatenate([self._total, np.empty_like(self._total)])
            self._pulls = np.concatenate([self._pulls, np.empty_like(self._pulls)])
        self._row[cohort] = row
        self._members[row] = cohort
        self._total[row] = total
        self._pulls[row] = pulls

    def reward(self, cohort: Cohort, reward: float) -> None:
        """Add one more reward to an arm that is there."""
        row = self._row[cohort]
        self._total[row] += reward
        self._pulls[row] += 1

    def best(self, *, slot: int, exploration: float, available: Available) -> BestPlayed:
        """The arms with the highest index, eq. `ucb-index`, among those wholly available."""
        size = len(self._row)
        if not size:
            return BestPlayed(float("-inf"), [])
        pulls = self._pulls[:size]
        index = ucb_index(self._total[:size] / pulls, pulls, slot=slot, exploration=exploration)
        if available is not None:
            index[~available[self._members[:size]].all(axis=1)] = float("-inf")
        best = float(index.max())
        if best == float("-inf"):
            return BestPlayed(best, [])
        tied = np.flatnonzero(index == best)
        return BestPlayed(best, [tuple(row) for row in self._members[tied].tolist()])

    def memory(self) -> dict[str, Any]:
        """The arms as JSON-able values."""
        size = len(self._row)
        return {
            "arms": size,
            "members": pack(self._members[:size], "<u4"),
            "totals": pack(self._total[:size], "<f8"),
            "pulls": pack(self._pulls[:size], "<u4"),
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Take back what `memory` gave."""
        size, budget = int(memory["arms"]), self._members.shape[1]
        members = unpack(memory["members"], "<u4", size=size * budget, what="arms").reshape(size, budget)
        totals = unpack(memory["totals"], "<f8", size=size, what="reward totals")
        pulls = unpack(memory["pulls"], "<u4", size=size, what="pulls")
        for cohort, total, count in zip(members.tolist(), totals.tolist(), pulls.tolist(), strict=True):
            self.add(tuple(cohort), total=total, pulls=count)
