"""Statistics of the arms (cohorts) played, O(T K) memory for T slots, and of the noise on their rewards.

Arms with equal pulls keep their order by mean in all slots, so the best index is among the best means for each number
of pulls; there are at most about sqrt(2 T) such numbers.
"""

import bisect
import heapq
import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedelect.equations.indices import noise_adjusted, ucb_index
from fedelect.rules import pack, unpack
from fedelect.selectors.base import Available
from fedelect.vocabulary import Cohort


@dataclass(frozen=True, slots=True)
class BestPlayed:
    """The highest index among played arms (-inf if there are none) and the arms that share it, in sorted runs."""

    index: float
    runs: list[list[Cohort]]

    @property
    def count(self) -> int:
        """How many arms share the index."""
        return sum(map(len, self.runs))

    def pick(self, number: int) -> Cohort:
        """The arm with this number, 0 .. count-1."""
        return next(itertools.islice(itertools.chain.from_iterable(self.runs), number, None))


class _Rank:
    """Arms with one number of pulls, by mean."""

    def __init__(self) -> None:
        self.by_mean: dict[float, list[Cohort]] = {}  # sorted, so that what is drawn does not depend on the past
        self._heap: list[float] = []  # negated means; those without arms are dropped when they come up

    def add(self, mean: float, cohort: Cohort) -> None:
        if mean not in self.by_mean:
            self.by_mean[mean] = []
            heapq.heappush(self._heap, -mean)
        bisect.insort(self.by_mean[mean], cohort)

    def remove(self, mean: float, cohort: Cohort) -> None:
        arms = self.by_mean[mean]
        del arms[bisect.bisect_left(arms, cohort)]
        if not arms:
            del self.by_mean[mean]

    def best_mean(self) -> float:
        while -self._heap[0] not in self.by_mean:
            heapq.heappop(self._heap)
        return -self._heap[0]


class PlayedArms:
    """Cohorts with the total of their rewards and their number of pulls."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._arms: dict[Cohort, tuple[float, int]] = {}  # total, pulls
        self._ranks: dict[int, _Rank] = defaultdict(_Rank)

    def __len__(self) -> int:
        return len(self._arms)

    def __contains__(self, cohort: Cohort) -> bool:
        return cohort in self._arms

    def among(self, available: Available) -> "PlayedArms":
        """Return the arms whose members are all available; `self` if all clients are."""
        if available is None:
            return self
        remaining = PlayedArms(self._budget)
        for cohort, (total, pulls) in self._arms.items():
            if available[list(cohort)].all():
                remaining.add_arm(cohort, total=total, pulls=pulls)
        return remaining

    def cohorts(self) -> list[Cohort]:
        """The arms, in the order in which they were first played."""
        return list(self._arms)

    def add_arm(self, cohort: Cohort, *, total: float, pulls: int) -> None:
        """Add an arm that has no statistics yet."""
        self._arms[cohort] = (total, pulls)
        self._ranks[pulls].add(total / pulls, cohort)

    def add_reward(self, cohort: Cohort, reward: float) -> None:
        """Add a reward to an arm that has statistics."""
        total, pulls = self._arms[cohort]
        rank = self._ranks[pulls]
        rank.remove(total / pulls, cohort)
        if not rank.by_mean:
            del self._ranks[pulls]
        self.add_arm(cohort, total=total + reward, pulls=pulls + 1)

    def best(self, *, slot: int, exploration: float) -> BestPlayed:
        """Return the arms with the highest index mean + mu * sqrt(ln t / Pi); eq. `ucb-index`."""
        best, runs = float("-inf"), []
        for pulls in sorted(self._ranks):
            rank = self._ranks[pulls]
            mean = rank.best_mean()
            index = ucb_index(mean, pulls, slot=slot, exploration=exploration)
            if index > best:
                best, runs = index, [rank.by_mean[mean]]
            elif index == best:
                runs.append(rank.by_mean[mean])
        return BestPlayed(best, runs)

    def state(self) -> dict[str, Any]:
        """Return the arms as JSON-able values."""
        figures = list(self._arms.values())
        return {
            "arms": len(self._arms),
            "members": pack(np.array(self.cohorts()), "<u4"),
            "totals": pack(np.array([total for total, _ in figures]), "<f8"),
            "pulls": pack(np.array([pulls for _, pulls in figures]), "<u4"),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the arms by those that `state` returned."""
        size = int(state["arms"])
        members = unpack(state["members"], "<u4", size=size * self._budget, what="arms").reshape(size, self._budget)
        totals = unpack(state["totals"], "<f8", size=size, what="reward totals")
        pulls = unpack(state["pulls"], "<u4", size=size, what="pulls")
        for cohort, total, count in zip(members.tolist(), totals.tolist(), pulls.tolist(), strict=True):
            self.add_arm(tuple(cohort), total=total, pulls=count)


class RewardNoise:
    """Mean variance of the noise that was added to the rewards so far (for privacy, say)."""

    def __init__(self) -> None:
        self._total = 0.0
        self._rewards = 0

    def add(self, standard_deviation: float) -> None:
        """Add the noise of one more reward."""
        self._total += standard_deviation**2
        self._rewards += 1

    def adjust(self, exploration: float) -> float:
        """Exploration weight under this noise; see `fedelect.equations.indices.noise_adjusted`."""
        return noise_adjusted(exploration, self._total / max(self._rewards, 1))

    def state(self) -> dict[str, Any]:
        """Return the sums as JSON-able values."""
        return {"total": self._total, "rewards": self._rewards}

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the sums by those that `state` returned."""
        self._total = float(state["total"])
        self._rewards = int(state["rewards"])
