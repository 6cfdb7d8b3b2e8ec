"""TiFL: tiers of equally fast clients, one tier in each slot, tiers with low opinions more often."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Floats, Ints, Selection, Signal, as_int


@final
class TiFl(AbstractSelector):
    """TiFL (Chai et al., HPDC 2020, arXiv 2001.09249), adaptive tier selection, Algorithm 2.

    Profiling: every client trains once (the cold-start groups), and its seconds are noted. Clients are then sorted by
    seconds into tiers of equal size. Each slot draws a tier that has credits left, takes one of its credits and K of
    its members at random. Every `interval` slots, if the clients of the current tier are served no better than an
    interval ago, the probabilities change. Tiers are ranked by the mean opinion of their members: the worst of n tiers
    gets n parts, the next n - 1, the best 1. (The paper does not print its function; this is one that prefers the
    worst.)

    Differs from the original: a tier must hold at least K clients, so there are at most N / K of them. When all
    credits are used up they are issued anew. Missing members of a tier are made up from those nearest in speed. A tier
    without credits keeps its rank until they are; public code of others ranks the tiers with credits only, by the same
    parts, and changes the probabilities after every interval.

    Args:
        clients: N.
        budget: K.
        tiers: Most tiers.
        credits: Slots that a tier may have before the others have used up theirs.
        interval: Slots between two updates of the probabilities.
        seed: Fixes profiling and all draws.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"seconds", "opinions"})
    advice: ClassVar[str] = "Slow clients hold up fast ones: cohorts of equal speed, and all speeds have their turn."

    initial_arrays: ClassVar[Mapping[str, float]] = {"seconds": math.nan, "opinions": math.nan, "tried": 0.0}

    def __init__(
        self, *, clients: int, budget: int, tiers: int = 5, credits: int = 50, interval: int = 10, seed: int
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        for name, value in (("tiers", tiers), ("credits", credits), ("interval", interval)):
            as_float(name, as_int(name, value), low=1, high=1e9)
        self._credits, self._interval = credits, interval
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        count = max(1, min(tiers, self.clients // self.budget))
        self._used = [0] * count  # credits used by each tier
        self._chances = [1.0 / count] * count
        self._current = 0
        self._slots = 0  # with feedback since the profiling
        self._before: list[float] | None = None  # the tiers' mean opinions at the last look

    def tiers(self) -> list[Ints]:
        """The clients of each tier, fastest tier first."""
        ties = np.argsort(stream(self.seed, "tier-ties").permutation(self.clients))
        order = np.lexsort((ties, fill_missing(self.arrays["seconds"])))
        return list(np.array_split(order, len(self._used)))

    def _choose(self, slot: int, available: Available) -> Choice:
        cohort = self._cold.next_cohort(slot, available)
        if cohort is not None:
            return cohort, ()
        tiers, tier = self.tiers(), self._draw_tier(slot)
        members = np.intersect1d(tiers[tier], self._candidates(available))
        if members.size >= self.budget:
            return tuple(sorted(self._pick_random(slot, members, self.budget, "members"))), ()
        place = np.empty(self.clients)
        place[np.concatenate(tiers)] = np.arange(self.clients)
        middle = place[tiers[tier]].mean()
        return self._pick_best(-np.abs(place - middle), slot, self._candidates(available)), ()

    def _draw_tier(self, slot: int) -> int:
        """Draw a tier with credits left, by the present probabilities."""
        chances = np.array(self._chances) * (np.array(self._used) < self._credits)
        return int(stream(self.seed, "tier", slot).choice(chances.size, p=chances / chances.sum()))

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.seconds is not None and feedback.opinions is not None  # declared in `needs`
        profiled = self._is_profiled()
        self._update_known("seconds", feedback.seconds)
        self._update_known("opinions", feedback.opinions)
        if profiled:
            self._use_credit(self._draw_tier(selection.slot))
        self._mark_tried(selection)

    def _abandon(self, selection: Selection) -> None:
        self._mark_tried(selection)

    def _mark_tried(self, selection: Selection) -> None:
        self.arrays["tried"][list(selection.cohort)] = 1.0
        self._cold.mark_tried(selection.cohort)

    def _is_profiled(self) -> bool:
        return bool(self.arrays["tried"].all())

    def _use_credit(self, tier: int) -> None:
        self._current = tier
        self._used[tier] += 1
        if min(self._used) >= self._credits:
            self._used = [0] * len(self._used)
        self._slots += 1
        if self._slots % self._interval == 0:
            self._update_chances()

    def _update_chances(self) -> None:
        opinions: Floats = fill_missing(self.arrays["opinions"])
        served = [float(opinions[tier].mean()) for tier in self.tiers()]
        if self._before is not None and served[self._current] <= self._before[self._current]:
            count = len(served)
            parts = count - np.argsort(np.argsort(served, kind="stable"), kind="stable")
            self._chances = (parts / parts.sum()).tolist()
        self._before = served

    def _memory(self) -> dict[str, Any]:
        names = ("used", "chances", "current", "slots", "before")
        return {name: getattr(self, f"_{name}") for name in names}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._used = [int(used) for used in memory["used"]]
        self._chances = [float(chance) for chance in memory["chances"]]
        self._current, self._slots = int(memory["current"]), int(memory["slots"])
        self._before = None if memory["before"] is None else [float(value) for value in memory["before"]]
        self._cold.mark_tried(tuple(np.flatnonzero(self.arrays["tried"]).tolist()))
