"""Who is still waited for in this slot.

Time comes in ticks, the resend intervals. A neighbour that is silent for `patience` ticks has gone. One that speaks but
does not deliver is given up later, after as long as an honest neighbour may itself have to wait for f others that
have gone. Giving up wrongly costs a decision at worst, never agreement.
"""

from collections.abc import Iterable


class Attendance:
    """One peer's neighbours in one slot.

    Args:
        neighbours: Their numbers.
        patience: Ticks of silence after which a neighbour has gone.
        faults: f.
    """

    def __init__(self, neighbours: Iterable[int], *, patience: int, faults: int) -> None:
        self._silent = dict.fromkeys(neighbours, 0)
        self._owing = dict.fromkeys(self._silent, 0)
        self._patience = patience
        self._limit = (faults + 2) * patience

    def heard(self, neighbour: int) -> None:
        """It said something in this slot."""
        self._silent[neighbour] = 0

    def tick(self, awaited: Iterable[int]) -> None:
        """A resend interval has gone by, in which these neighbours were waited for."""
        waiting = set(awaited)
        for neighbour in self._silent:
            self._silent[neighbour] += 1
            if self._owing[neighbour] < self._limit:  # given up once is given up for the slot
                self._owing[neighbour] = self._owing[neighbour] + 1 if neighbour in waiting else 0

    def gone(self, neighbour: int) -> bool:
        """Whether to go on without it."""
        return self._silent[neighbour] >= self._patience or self._owing[neighbour] >= self._limit
