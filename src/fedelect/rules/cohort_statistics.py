"""The cohorts played and what came of them, as `elect_set` takes them."""

from typing import Self

import numpy as np

from fedelect.vocabulary import Cohort, Floats, Ints

COLD_START_LIMIT = 16
"""Most different cohorts that are played to try every client once before the bounds decide."""

FADED = 1e-6
"""A cohort whose rewards weigh less than this, where they fade, is forgotten."""


class CohortStatistics:
    """Mean rewards by cohort, of which old ones may fade.

    Args:
        budget: K.
        forgetting: What is left of a reward's weight after one more slot; 1 keeps all. A cohort that has faded
            below `FADED` is forgotten.
        memory: Most cohorts that are kept; the one played longest ago goes first.
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
        """The same once more, to go on with apart."""
        other = type(self)(self._budget, forgetting=self.forgetting, memory=self._memory)
        other._rows = {cohort: list(row) for cohort, row in self._rows.items()}
        return other

    def note(self, cohort: Cohort, reward: float, noise_variance: float) -> None:
        """Take in one more reward."""
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
