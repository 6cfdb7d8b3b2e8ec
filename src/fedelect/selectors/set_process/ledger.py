"""The cohorts played and what came of them, as `elect_set` takes them."""

from typing import Any

import numpy as np

from fedelect.selectors.base import Available
from fedelect.selectors.packing import pack, unpack
from fedelect.vocabulary import Cohort, Floats, Ints


class SetLedger:
    """Sums of rewards by cohort, of which old ones may fade.

    Args:
        budget: K.
        forgetting: What is left of a reward's weight after one more slot; 1 keeps all.
        memory: Most cohorts that are kept; the one played longest ago goes first.
    """

    def __init__(self, budget: int, *, forgetting: float, memory: int) -> None:
        self._budget = budget
        self._forgetting = forgetting
        self._memory = memory
        self._rows: dict[Cohort, list[float]] = {}  # total, weight, noise; the cohort played last comes last

    def __len__(self) -> int:
        return len(self._rows)

    def note(self, cohort: Cohort, reward: float, noise_variance: float) -> None:
        """Take in one more reward."""
        fade = self._forgetting
        if fade < 1.0:
            for row in self._rows.values():
                row[0] *= fade
                row[1] *= fade
                row[2] *= fade * fade
        total, weight, noise = self._rows.pop(cohort, (0.0, 0.0, 0.0))
        self._rows[cohort] = [total + reward, weight + 1.0, noise + noise_variance]
        if len(self._rows) > self._memory:
            del self._rows[next(iter(self._rows))]

    def evidence(self) -> tuple[Ints, Floats, Floats, Floats]:
        """(n, K) cohorts, (n,) mean rewards, (n,) weights, (n,) variance of noise added to the means."""
        cohorts = np.array(list(self._rows), dtype=np.int64).reshape(-1, self._budget)
        total, weight, noise = np.array(list(self._rows.values())).reshape(-1, 3).T
        return cohorts, total / weight, weight, noise / (weight * weight)

    def memory(self) -> dict[str, Any]:
        """The rows as JSON-able values."""
        return {
            "cohorts": len(self._rows),
            "members": pack(np.array(list(self._rows)), "<u4"),
            "figures": pack(np.array(list(self._rows.values())), "<f8"),
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Take back what `memory` gave."""
        size = int(memory["cohorts"])
        members = unpack(memory["members"], "<u4", size=size * self._budget, what="cohorts played")
        figures = unpack(memory["figures"], "<f8", size=size * 3, what="reward totals")
        rows = zip(members.reshape(size, self._budget).tolist(), figures.reshape(size, 3).tolist(), strict=True)
        self._rows = {tuple(cohort): row for cohort, row in rows}


def eligible(available: Available) -> Ints | None:
    """The numbers of the clients that are there; None for all."""
    return None if available is None else np.flatnonzero(available)
