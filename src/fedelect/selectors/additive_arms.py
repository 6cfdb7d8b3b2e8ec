"""K-subsets in descending order of their sum of scores, without listing them all.

Theory of operation. Clients with equal score are interchangeable: they form a *level*. A subset's *composition* is the
number of its members from each level; it stands for a product of binomials of subsets, all with the same sum. The best
composition takes the top clients. Every other one has exactly one parent, from which it differs by one member moved
down one level, which never raises the sum. So a heap of children yields the compositions in order of sum, and only
those reached are in memory.

Compositions with the same sum (rounded once, by `math.fsum`) form one *class*. A draw is uniform over the unplayed
subsets of the best class: draw a composition in proportion to its unplayed subsets, then one of these by rejection, or
from a list of them once more than half have been played. No step uses client numbers.
"""

import bisect
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedelect.seeds import Draws
from fedelect.selectors.played_arms import PlayedArms
from fedelect.vocabulary import Cohort, Floats, Ints

Composition = tuple[tuple[int, int], ...]
"""Members from each level: (level, count) pairs, levels ascending, counts positive."""


@dataclass(frozen=True, slots=True)
class BestUnplayed:
    """Highest mean score of an unplayed subset, and the number of unplayed subsets that share it."""

    mean: float
    count: int


class AdditiveArms:
    """The unplayed `budget`-subsets of some clients, in descending order of their sum of scores."""

    def __init__(self, clients: Ints, scores: Floats, budget: int, played: Iterable[Cohort]) -> None:
        """Index the levels.

        Args:
            clients: (n,) numbers of the clients to choose from, ascending; n >= budget.
            scores: (n,) their scores.
            budget: K, the size of a subset.
            played: Subsets of these clients that have been played.
        """
        values, level = np.unique(-scores, return_inverse=True)
        self._values: list[float] = (-values).tolist()
        self._budget = budget
        order = np.argsort(level, kind="stable")
        starts = np.searchsorted(level[order], np.arange(len(values) + 1))
        self._starts: list[int] = starts.tolist()
        self._capacity: list[int] = np.diff(starts).tolist()
        self._clients = clients[order]
        self._numbers, self._level = clients, level
        self._everyone = int(clients[-1]) == clients.size - 1
        self._played_in: Counter[Composition] = Counter()
        self._drawn: tuple[Cohort, Composition] = ((), ())  # the last draw, most often the next to be played
        self._listed: dict[Composition, list[Cohort]] = {}  # what is left of those that are mostly played, sorted
        for cohort in played:
            self.mark_played(cohort)
        top = self._top()
        self._heap: list[tuple[float, int, Composition, int]] = []
        self._pushed = itertools.count()
        self._class: list[tuple[Composition, int]] = []  # with the number of their subsets
        self._sum = float("nan")
        heapq.heappush(self._heap, (-self._sum_of(top), next(self._pushed), top, -1))

    def mark_played(self, cohort: Cohort) -> None:
        """Mark this subset as played."""
        drawn, composition = self._drawn
        if cohort != drawn:
            composition = self._composition_of(cohort)
        self._played_in[composition] += 1
        listed = self._listed.get(composition)
        if listed is not None:
            del listed[bisect.bisect_left(listed, cohort)]

    def best(self) -> BestUnplayed | None:
        """Return the best mean score among unplayed subsets; None if all have been played."""
        while True:
            count = sum(size - self._played_in[composition] for composition, size in self._class)
            if count:
                return BestUnplayed(self._sum / self._budget, count)
            if not self._heap:
                return None
            self._next_class()

    def draw(self, ticket: int, draws: Draws, played: PlayedArms) -> Cohort:
        """Draw one of the best unplayed subsets, uniformly. `best` must not have returned None.

        Args:
            ticket: A uniformly random number below the count that `best` gave.
            draws: Source of the other draws.
            played: All subsets played.
        """
        classes = iter(self._class)
        composition, size = next(classes)
        while ticket >= (left := size - self._played_in[composition]):
            ticket -= left
            composition, size = next(classes)
        if 2 * left < size:
            if composition not in self._listed:
                self._listed[composition] = sorted(c for c in self._subsets(composition) if c not in played)
            cohort = self._listed[composition][ticket]
        else:
            while (cohort := self._sample(composition, draws)) in played:
                pass
        self._drawn = (cohort, composition)
        return cohort

    def _top(self) -> Composition:
        room, level, pairs = self._budget, 0, []
        while room:
            pairs.append((level, min(room, self._capacity[level])))
            room -= pairs[-1][1]
            level += 1
        return tuple(pairs)

    def _next_class(self) -> None:
        """Take from the heap all compositions of the next lower sum, and put their children there."""
        self._class, self._sum = [], -self._heap[0][0]
        while self._heap and -self._heap[0][0] == self._sum:
            _, _, parent, level = heapq.heappop(self._heap)
            composition = parent if level < 0 else _move_down(parent, level)
            self._class.append((composition, self._size(composition)))
            for child_level in self._child_levels(composition):
                child_sum = self._sum_of(_move_down(composition, child_level))
                heapq.heappush(self._heap, (-child_sum, next(self._pushed), composition, child_level))

    def _child_levels(self, composition: Composition) -> list[int]:
        """The levels from which one member may move down so that the result's parent is this composition."""
        counts = dict(composition)
        levels = []
        for level, _ in composition:
            below = level + 1
            has_room = below < len(self._capacity) and counts.get(below, 0) < self._capacity[below]
            if has_room and self._parent_level(_move_down(composition, level)) == level:
                levels.append(level)
        return levels

    def _parent_level(self, composition: Composition) -> int:
        """The highest level with room for a member of the level just below it; any but the top composition has one."""
        counts = dict(composition)
        return next(
            level - 1 for level, _ in composition if level and counts.get(level - 1, 0) < self._capacity[level - 1]
        )

    def _sum_of(self, composition: Composition) -> float:
        return math.fsum(itertools.chain.from_iterable([self._values[level]] * count for level, count in composition))

    def _size(self, composition: Composition) -> int:
        return math.prod(math.comb(self._capacity[level], count) for level, count in composition)

    def _composition_of(self, cohort: Cohort) -> Composition:
        places = list(cohort) if self._everyone else np.searchsorted(self._numbers, cohort)
        counts: dict[int, int] = {}
        for level in self._level[places].tolist():
            counts[level] = counts.get(level, 0) + 1
        return tuple(sorted(counts.items()))

    def _members(self, level: int) -> list[int]:
        members: list[int] = self._clients[self._starts[level] : self._starts[level + 1]].tolist()
        return members

    def _subsets(self, composition: Composition) -> Iterable[Cohort]:
        parts = [itertools.combinations(self._members(level), count) for level, count in composition]
        for chosen in itertools.product(*parts):
            yield tuple(sorted(itertools.chain.from_iterable(chosen)))

    def _sample(self, composition: Composition, draws: Draws) -> Cohort:
        chosen: list[int] = []
        for level, count in composition:
            members = self._members(level)
            if count < len(members):
                members = [members[place] for place in draws.sample(len(members), count)]
            chosen += members
        return tuple(sorted(chosen))


def _move_down(composition: Composition, level: int) -> Composition:
    counts = dict(composition)
    counts[level] -= 1
    counts[level + 1] = counts.get(level + 1, 0) + 1
    return tuple(sorted((where, count) for where, count in counts.items() if count))
