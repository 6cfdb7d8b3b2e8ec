"""Which neighbours are up, which have been down for too long, and what to tell of it. Time is an argument."""

import math
from collections.abc import Iterable


class LinkWatch:
    """One peer's neighbours as its links see them; before they have said anything, all are down.

    Args:
        neighbours: Their numbers.
        first_s: How long they may take to come up at first.
        grace_s: How long a link that was up may be down before the neighbour counts as lost.
        quiet_s: After a change of a link was told, for so long no other of the same link is.
    """

    def __init__(self, neighbours: Iterable[int], *, first_s: float, grace_s: float, quiet_s: float = 0.0) -> None:
        self._neighbours = tuple(neighbours)
        self._first_s, self._grace_s, self._quiet_s = first_s, grace_s, quiet_s
        self._lost: set[int] = set()
        self._told_up: set[int] = set()
        self._told_at: dict[int, float] = {}
        self._lost_at = dict.fromkeys(self._neighbours, math.inf)
        self.up: set[int] = set()

    def start(self, now_s: float) -> None:
        """The links are open from now on."""
        self._lost_at = {one: now_s + self._first_s for one in self._neighbours if one not in self.up}

    def update(self, neighbour: int, up: bool, now_s: float) -> bool:
        """The links say that it is up, or down; returns whether it was lost and is back."""
        if up == (neighbour in self.up):
            return False
        if not up:
            self.up.discard(neighbour)
            self._lost_at[neighbour] = now_s + self._grace_s
            return False
        self.up.add(neighbour)
        self._lost_at.pop(neighbour, None)
        back = neighbour in self._lost
        self._lost.discard(neighbour)
        return back

    def unreported_changes(self, now_s: float) -> tuple[tuple[int, bool], ...]:
        """(neighbour, whether it is up) of the links that are not as they were told to be, and may be told of again."""
        due = tuple(one for one in sorted(self.up ^ self._told_up) if self._tell_at(one) <= now_s)
        self._told_at |= dict.fromkeys(due, now_s)
        self._told_up ^= set(due)
        return tuple((one, one in self.up) for one in due)

    @property
    def all_reported_up(self) -> bool:
        """Whether the last that was told of every link is that it is up."""
        return len(self._told_up) == len(self._neighbours)

    @property
    def due_s(self) -> float:
        """When `lost` or `news` may have more to say; never is inf."""
        told_s = min((self._tell_at(one) for one in self.up ^ self._told_up), default=math.inf)
        return min(told_s, min(self._lost_at.values(), default=math.inf))

    def _tell_at(self, neighbour: int) -> float:
        return self._told_at.get(neighbour, -math.inf) + self._quiet_s

    def take_lost(self, now_s: float) -> tuple[int, ...]:
        """Who has been down for too long by now; each is said once."""
        lost = tuple(one for one, at_s in self._lost_at.items() if at_s <= now_s)
        for neighbour in lost:
            del self._lost_at[neighbour]
        self._lost.update(lost)
        return lost

    def missing(self) -> tuple[int, ...]:
        """Who is not up, in order."""
        return tuple(one for one in self._neighbours if one not in self.up)
