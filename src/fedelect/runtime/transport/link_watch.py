"""Which neighbours are up or lost, and which changes to report. Time is an argument."""

import math
from collections.abc import Iterable


class LinkWatch:
    """State of the links to one peer's neighbours; at first all are down.

    Args:
        neighbours: Their numbers.
        first_s: Longest time for a link to come up at first.
        grace_s: Longest time for a link that was up to be down before the neighbour is lost.
        quiet_s: Shortest time between two reported changes of one link.
    """

    def __init__(self, neighbours: Iterable[int], *, first_s: float, grace_s: float, quiet_s: float = 0.0) -> None:
        self._neighbours = tuple(neighbours)
        self._first_s, self._grace_s, self._quiet_s = first_s, grace_s, quiet_s
        self._lost: set[int] = set()
        self._reported_up: set[int] = set()
        self._reported_at: dict[int, float] = {}
        self._lost_at = dict.fromkeys(self._neighbours, math.inf)
        self.up: set[int] = set()

    def start(self, now_s: float) -> None:
        """Start the clock: the links are open from now on."""
        self._lost_at = {one: now_s + self._first_s for one in self._neighbours if one not in self.up}

    def update(self, neighbour: int, up: bool, now_s: float) -> bool:
        """Set a link up or down; return whether a lost neighbour is back."""
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
        """Return (neighbour, up) for each link whose change may be reported now, and count it as reported."""
        due = tuple(one for one in sorted(self.up ^ self._reported_up) if self._report_at(one) <= now_s)
        self._reported_at |= dict.fromkeys(due, now_s)
        self._reported_up ^= set(due)
        return tuple((one, one in self.up) for one in due)

    @property
    def all_reported_up(self) -> bool:
        """Whether every link was last reported as up."""
        return len(self._reported_up) == len(self._neighbours)

    @property
    def due_s(self) -> float:
        """Next time at which a change may be reported or a neighbour lost; inf if none."""
        report_s = min((self._report_at(one) for one in self.up ^ self._reported_up), default=math.inf)
        return min(report_s, min(self._lost_at.values(), default=math.inf))

    def _report_at(self, neighbour: int) -> float:
        return self._reported_at.get(neighbour, -math.inf) + self._quiet_s

    def take_lost(self, now_s: float) -> tuple[int, ...]:
        """Return the neighbours that are lost by now, each once."""
        lost = tuple(one for one, at_s in self._lost_at.items() if at_s <= now_s)
        for neighbour in lost:
            del self._lost_at[neighbour]
        self._lost.update(lost)
        return lost

    def missing(self) -> tuple[int, ...]:
        """Return the neighbours that are not up, in order."""
        return tuple(one for one in self._neighbours if one not in self.up)
