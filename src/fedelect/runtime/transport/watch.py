"""Which neighbours are up, and which have been down for too long to be waited for. Time is an argument."""

import math
from collections.abc import Iterable


class LinkWatch:
    """One peer's neighbours as its links see them; before they have said anything, all are down.

    Args:
        neighbours: Their numbers.
        first_s: How long they may take to come up at first.
        grace_s: How long a link that was up may be down before the neighbour counts as lost.
    """

    def __init__(self, neighbours: Iterable[int], *, first_s: float, grace_s: float) -> None:
        self._neighbours = tuple(neighbours)
        self._first_s, self._grace_s = first_s, grace_s
        self._lost_at = dict.fromkeys(self._neighbours, math.inf)
        self.up: set[int] = set()

    def start(self, now_s: float) -> None:
        """The links are open from now on."""
        self._lost_at = {one: now_s + self._first_s for one in self._neighbours if one not in self.up}

    def changed(self, neighbour: int, up: bool, now_s: float) -> bool:
        """The links say that it is up, or down; returns whether that is news."""
        if up == (neighbour in self.up):
            return False
        if up:
            self.up.add(neighbour)
            self._lost_at.pop(neighbour, None)
        else:
            self.up.discard(neighbour)
            self._lost_at[neighbour] = now_s + self._grace_s
        return True

    @property
    def all_up(self) -> bool:
        """Whether nobody is missing."""
        return len(self.up) == len(self._neighbours)

    @property
    def due_s(self) -> float:
        """When `lost` may have more to say; never is inf."""
        return min(self._lost_at.values(), default=math.inf)

    def lost(self, now_s: float) -> tuple[int, ...]:
        """Who has been down for too long by now; each is said once."""
        lost = tuple(one for one, at_s in self._lost_at.items() if at_s <= now_s)
        for neighbour in lost:
            del self._lost_at[neighbour]
        return lost

    def missing(self) -> tuple[int, ...]:
        """Who is not up, in order."""
        return tuple(one for one in self._neighbours if one not in self.up)
