"""Who is still waited for in this slot.

Time comes in ticks, the resend intervals. A neighbour that is silent for `patience` ticks has gone. One that is lost,
for the host's links cannot reach it, has gone at once; but if all are lost, it is rather this peer that is cut off, and
it waits as ever. One that speaks but does not deliver is given up later, after as long as an honest neighbour may
itself have to wait for f others that have gone. Giving up wrongly costs a decision at worst, never agreement.
"""

from collections.abc import Iterable


class Attendance:
    """One peer's neighbours in one slot.

    Args:
        neighbours: Their numbers.
        patience: Ticks of silence after which a neighbour has gone.
        faults: f.
        lost: Who cannot be reached. Kept, not copied: it outlives the slot.
    """

    def __init__(self, neighbours: Iterable[int], *, patience: int, faults: int, lost: set[int] | None = None) -> None:
        self._silent = dict.fromkeys(neighbours, 0)
        self._owing = dict.fromkeys(self._silent, 0)
        self._patience = patience
        self._limit = (faults + 2) * patience
        self._lost = set() if lost is None else lost

    def heard(self, neighbour: int) -> None:
        """It said something in this slot, so it is not lost either."""
        self._silent[neighbour] = 0
        self._lost.discard(neighbour)

    def tick(self, awaited: Iterable[int]) -> None:
        """A resend interval has gone by, in which these neighbours were waited for."""
        waiting = set(awaited)
        for neighbour in self._silent:
            self._silent[neighbour] += 1
            if self._owing[neighbour] < self._limit:  # given up once is given up for the slot
                self._owing[neighbour] = self._owing[neighbour] + 1 if neighbour in waiting else 0

    def gone(self, neighbour: int) -> bool:
        """Whether to go on without it."""
        if neighbour in self._lost and len(self._lost) < len(self._silent):
            return True
        return self._silent[neighbour] >= self._patience or self._owing[neighbour] >= self._limit
