"""Who is still waited for in this slot.

Time is counted in ticks, the resend intervals. A neighbour that is silent for `silent_intervals` ticks has gone. A lost
neighbour, which the host's links cannot reach, has gone at once; if all are lost, this peer itself is cut off and waits
as usual. A neighbour that sends messages but not the awaited one is given up later: after as long as an honest
neighbour may have to wait for f others that have gone. Giving up wrongly costs a decision at worst, never agreement.
"""

from collections.abc import Iterable


class Attendance:
    """One peer's neighbours in one slot.

    Args:
        neighbours: Their numbers.
        silent_intervals: Ticks of silence after which a neighbour has gone.
        max_faulty: f.
        lost: Who cannot be reached. Kept, not copied: it outlives the slot.
    """

    def __init__(
        self, neighbours: Iterable[int], *, silent_intervals: int, max_faulty: int, lost: set[int] | None = None
    ) -> None:
        self._silent = dict.fromkeys(neighbours, 0)
        self._owing = dict.fromkeys(self._silent, 0)
        self._silent_intervals = silent_intervals
        self._limit = (max_faulty + 2) * silent_intervals
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
        return self._silent[neighbour] >= self._silent_intervals or self._owing[neighbour] >= self._limit
