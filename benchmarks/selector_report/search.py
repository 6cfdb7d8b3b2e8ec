"""The best cohort that can be found where not all can be tried."""

from collections.abc import Callable, Sequence

import numpy as np

from fedelect.vocabulary import Cohort, Floats

Worth = Callable[[Sequence[Cohort]], Floats]
"""What cohorts are worth, (n,) for n of them."""


def neighbours(cohort: Cohort, clients: int) -> list[Cohort]:
    """All cohorts that differ from this one in one member."""
    others = [client for client in range(clients) if client not in cohort]
    return [tuple(sorted({*cohort} - {out} | {new})) for out in cohort for new in others]


def climb(worth: Worth, start: Cohort, clients: int) -> tuple[Cohort, float]:
    """Exchange one member at a time for the better, as long as that helps: a cohort that no exchange improves."""
    best, value = start, float(worth([start])[0])
    while True:
        around = neighbours(best, clients)
        values = worth(around)
        place = int(np.argmax(values))
        if values[place] <= value:
            return best, value
        best, value = around[place], float(values[place])
