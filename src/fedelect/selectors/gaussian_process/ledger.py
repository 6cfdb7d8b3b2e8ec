"""The cohorts played and what came of them, as a selector saves them."""

from typing import Any

import numpy as np

from fedelect.rules import CohortStatistics
from fedelect.rules.packing import pack, unpack
from fedelect.selectors.base import Available
from fedelect.vocabulary import Ints


class SetLedger(CohortStatistics):
    """Mean rewards by cohort, of which old ones may fade; they can be saved."""

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
        figures = unpack(memory["figures"], "<f8", size=size * 4, what="mean rewards")
        rows = zip(members.reshape(size, self._budget).tolist(), figures.reshape(size, 4).tolist(), strict=True)
        self._rows = {tuple(cohort): row for cohort, row in rows}


def eligible(available: Available) -> Ints | None:
    """The numbers of the clients that are there; None for all."""
    return None if available is None else np.flatnonzero(available)
