"""Reward statistics of the cohorts played, as `elect_set` takes them."""

from typing import Any, Self

import numpy as np

from fedelect.rules.packing import pack, unpack
from fedelect.vocabulary import Cohort, Floats, Ints

COLD_START_LIMIT = 16
"""Most different cohorts played in the cold start of an election by set value."""

FADED = 1e-6
"""A cohort whose rewards weigh less than this, where they fade, is forgotten."""


class CohortStatistics:
    """Mean reward of each cohort played; old rewards may fade.

    Args:
        budget: K.
        forgetting: Factor on a reward's weight after each slot; 1 keeps all. A cohort that has faded below `FADED` is
            forgotten.
        memory: Most cohorts kept; the one played longest ago goes first.
    """

    def __init__(self, budget: int, *, forgetting: float, memory: int) -> None:
        self._budget = budget
        self.forgetting = forgetting
        self._memory = memory
        self._rows: dict[Cohort, list[float]] = {}  # mean, weight, scatter, noise; last played comes last

    def __len__(self) -> int:
        return len(self._rows)

    def cohorts(self) -> list[Cohort]:
        """The cohorts kept, in the order of `evidence`."""
        return list(self._rows)

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)(self._budget, forgetting=self.forgetting, memory=self._memory)
        other._rows = {cohort: list(row) for cohort, row in self._rows.items()}
        return other

    def add_reward(self, cohort: Cohort, reward: float, noise_variance: float) -> None:
        """Add a cohort's reward and the variance of the noise that was added to it."""
        fade = self.forgetting
        if fade < 1.0:
            for row in self._rows.values():
                row[1] *= fade
                row[2] *= fade
                row[3] *= fade * fade
            self._rows = {played: row for played, row in self._rows.items() if row[1] >= FADED}
        mean, weight, scatter, noise = self._rows.pop(cohort, (0.0, 0.0, 0.0, 0.0))
        moved = mean + (reward - mean) / (weight + 1.0)
        scatter += (reward - mean) * (reward - moved) if weight else 0.0
        self._rows[cohort] = [moved if weight else reward, weight + 1.0, scatter, noise + noise_variance]
        if len(self._rows) > self._memory:
            del self._rows[next(iter(self._rows))]

    def evidence(self) -> tuple[Ints, Floats, Floats, Floats, Floats]:
        """(n, K) cohorts, and (n,) mean reward, weight, scatter and variance of noise added to the mean."""
        cohorts = np.array(list(self._rows), dtype=np.int64).reshape(-1, self._budget)
        mean, weight, scatter, noise = np.array(list(self._rows.values())).reshape(-1, 4).T
        return cohorts, mean, weight, scatter, noise / (weight * weight)

    def state(self) -> dict[str, Any]:
        """Return the statistics as JSON-able values."""
        return {
            "cohorts": len(self._rows),
            "members": pack(np.array(list(self._rows)), "<u4"),
            "figures": pack(np.array(list(self._rows.values())), "<f8"),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the statistics by those that `state` returned."""
        size = int(state["cohorts"])
        members = unpack(state["members"], "<u4", size=size * self._budget, what="cohorts played")
        figures = unpack(state["figures"], "<f8", size=size * 4, what="mean rewards")
        rows = zip(members.reshape(size, self._budget).tolist(), figures.reshape(size, 4).tolist(), strict=True)
        self._rows = {tuple(cohort): row for cohort, row in rows}
