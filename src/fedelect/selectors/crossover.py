"""A crossover trial: some clients sit out every other block of slots, and everybody's opinions say what that did.

What one client does to the model is below the noise of a slot. What leaving a group out does is not: the average
opinion of all clients answers within a few slots. A trial has blocks without the group, with it, without it, and so
on. The average opinion of those who do not train is regressed on a trend in time and on the group's recent share of
the cohorts. Learning curves flatten, and with few blocks no trend fits them well: a verdict must hold with a line and
with a parabola.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedelect.rules import pack, unpack
from fedelect.vocabulary import Floats, Ints, as_int

Mask = NDArray[np.bool_]
Outcome = Literal["undecided", "harmful", "acquitted"]

FEWEST_BLOCKS, MOST_BLOCKS = 3, 6
"""Blocks before the first verdict, and those after which a group that is not found harmful is acquitted."""

SHORTEST_BLOCK, LONGEST_BLOCK = 6, 10
"""Slots: enough for the model to forget the cohorts before it, and for an average over noise; in between, a cycle."""

HARMFUL, LEAST_BENEFIT = -1.8, 0.01
"""Ratio of the effect of the group's share to its standard error, and rise of the average opinion when it is left out,
in units of opinion: both at least, whether the trend is a line or a parabola, for a group to count as harmful."""

HARMFUL_ACCUSED, LEAST_BENEFIT_ACCUSED, MOST_BLOCKS_ACCUSED = -1.0, 0.005, 5
"""The same of a group that witnesses accuse, and the blocks after which the mean of both trends decides."""

COSTLY = 1.0
"""Ratio at which an accused group is acquitted before, if leaving it out costs `LEAST_BENEFIT_ACCUSED` or more."""

_RECENT = 0.7  # weight that the share of the slots before keeps: the model forgets a cohort in a few slots
_RIDGE = 3.0  # variance of a slot's change in units of the variance of one client's effect


class CrossoverTrial:
    """One trial of one group.

    Args:
        group: (N,) the clients on trial.
        reference: (N,) level of opinion of each client at the start, in slots in which it does not train, less what
            all have in common; nan where none is known.
        start: First slot.
        cycle: Slots in which every client trains once; a block is as long, within limits.
        accused: Whether witnesses have accused the group. Then less proves that it is harmful.
    """

    def __init__(self, group: Mask, reference: Floats, *, start: int, cycle: int, accused: bool = False) -> None:
        self.group, self.start, self.accused = group, start, accused
        self.block = min(max(cycle, SHORTEST_BLOCK), LONGEST_BLOCK)
        self._reference = reference.copy()
        self._levels = [math.nan, math.nan]  # mean change of those on trial and of the others, when last known
        self._judged = 0  # blocks
        self._cohorts: list[list[int]] = []
        self._means: list[float] = []

    def sits_out(self, slot: int) -> bool:
        """Whether the group does not train in this slot, if others are there."""
        return (slot - self.start) // self.block % 2 == 0

    def is_open(self, slot: int) -> bool:
        """Whether who joins the group after this slot sits out a whole block before the first verdict."""
        return slot < self.start + (FEWEST_BLOCKS - 1) * self.block

    def read(self, members: Ints, opinions: Floats) -> None:
        """Read a slot: the group's share of the cohort, and the opinions of those who did not train.

        Members do not count: what they gain by their own training, or pretend to, says nothing about the goal. So that
        it does not matter how many of the group are members, its mean has the weight of its share of all clients.
        """
        outside = opinions.copy()
        outside[members] = math.nan
        changes = outside - self._reference
        known = ~np.isnan(changes)
        common = float(changes[known].mean()) if known.any() else 0.0
        for side, which in enumerate((known & self.group, known & ~self.group)):
            if which.any():
                self._levels[side] = float(changes[which].mean())
        self._reference = np.where(np.isnan(self._reference), outside - common, self._reference)
        self._cohorts.append(members.tolist())
        share, (inside, others) = float(self.group.mean()), self._levels
        level = others if math.isnan(inside) else share * inside + (1.0 - share) * others
        self._means.append(math.nan if np.isnan(outside).all() else level)

    def judge(self, slot: int) -> Outcome:
        """Judge at the end of a block.

        Args:
            slot: The last slot that was read.
        """
        blocks = (slot - self.start + 1) // self.block
        if blocks < FEWEST_BLOCKS or blocks == self._judged:
            return "undecided"
        self._judged = blocks
        share = float(self.group.mean())
        members = np.array([float(self.group[cohort].mean()) for cohort in self._cohorts])  # the group may have grown
        means, shares = np.array(self._means), smooth_shares(members, before=share)
        effects = [share_effect(means, shares, bends=bends) for bends in (False, True)]
        ratios, benefits = [ratio for _, ratio in effects], [-share * slope for slope, _ in effects]
        if not any(ratios):
            return "acquitted"  # nothing can be told
        if not self.accused:
            if max(ratios) < HARMFUL and min(benefits) > LEAST_BENEFIT:
                return "harmful"
            return "acquitted" if max(ratios) >= 0.0 or blocks >= MOST_BLOCKS else "undecided"
        if blocks >= MOST_BLOCKS_ACCUSED:
            return "harmful" if sum(benefits) > 2.0 * LEAST_BENEFIT_ACCUSED else "acquitted"
        if max(ratios) < HARMFUL_ACCUSED and min(benefits) > LEAST_BENEFIT_ACCUSED:
            return "harmful"
        return "acquitted" if min(ratios) > COSTLY and max(benefits) < -LEAST_BENEFIT_ACCUSED else "undecided"

    def state(self) -> dict[str, Any]:
        """Return the trial as JSON-able values."""
        return {
            "start": self.start,
            "accused": self.accused,
            "block": self.block,
            "judged": self._judged,
            "slots": len(self._means),
            "levels": pack(np.array(self._levels), "<f8"),
            "group": pack(self.group.astype(np.float64), "<f8"),
            "reference": pack(self._reference, "<f8"),
            **pack_cohorts(self._cohorts),
            "means": pack(np.array(self._means), "<f8"),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], *, clients: int) -> "CrossoverTrial":
        """Continue from a saved state."""
        group = unpack(state["group"], "<f8", size=clients, what="group") > 0.0
        reference = unpack(state["reference"], "<f8", size=clients, what="reference")
        start, block = as_int("start", state["start"]), as_int("block", state["block"])
        trial = cls(group, reference, start=start, cycle=block, accused=bool(state["accused"]))
        trial._judged, slots = as_int("judged", state["judged"]), as_int("slots", state["slots"])
        trial._levels = unpack(state["levels"], "<f8", size=2, what="levels").tolist()
        if not group.any() or trial._judged < 0:
            raise ValueError(f"a trial of {np.count_nonzero(group)} clients, {trial._judged} blocks judged")
        trial._cohorts = unpack_cohorts(state, slots, clients=clients)
        trial._means = unpack(state["means"], "<f8", size=slots, what="means").tolist()
        return trial


def pack_cohorts(cohorts: Sequence[Sequence[int]]) -> dict[str, str]:
    """Return cohorts of any sizes as JSON-able values."""
    return {
        "sizes": pack(np.array([len(cohort) for cohort in cohorts], dtype=np.int64), "<i8"),
        "cohorts": pack(np.array([one for cohort in cohorts for one in cohort], dtype=np.int64), "<i8"),
    }


def unpack_cohorts(state: Mapping[str, Any], count: int, *, clients: int) -> list[list[int]]:
    """Return `count` cohorts of `clients` clients from what `pack_cohorts` made of them.

    Raises:
        ValueError: A cohort is empty, or names a client that is not there.
    """
    sizes = unpack(state["sizes"], "<i8", size=count, what="sizes")
    if (sizes < 1).any():
        raise ValueError(f"sizes of cohorts: {sizes.tolist()}")
    flat = unpack(state["cohorts"], "<i8", size=int(sizes.sum()), what="cohorts")
    if ((flat < 0) | (flat >= clients)).any():
        raise ValueError(f"a cohort names a client outside 0 to {clients - 1}")
    return [flat[end - size : end].tolist() for end, size in zip(sizes.cumsum(), sizes, strict=True)]


def smooth_shares(shares: Floats, *, before: float) -> Floats:
    """(T,) exponentially weighted mean of the shares (T,) up to each slot, beginning with `before`."""
    smoothed, level = np.empty(shares.size), before
    for slot, share in enumerate(shares):
        level = _RECENT * level + (1.0 - _RECENT) * float(share)
        smoothed[slot] = level
    return smoothed


def share_effect(means: Floats, shares: Floats, *, bends: bool) -> tuple[float, float]:
    """Slope of `means` (T,) over `shares` (T,), a trend taken out, and its ratio to its standard error.

    Least squares; slots with a mean of nan do not count. Both are 0 if they cannot be told.

    Args:
        means: Average opinion in each slot.
        shares: Smoothed share of the group in the cohorts.
        bends: Whether the trend is a parabola rather than a line.
    """
    known = ~np.isnan(means)
    count = int(np.count_nonzero(known))
    if count < 8:
        return 0.0, 0.0
    trend = np.vander(np.linspace(-1.0, 1.0, means.size)[known], 3 if bends else 2)
    share, mean = (values - trend @ np.linalg.lstsq(trend, values)[0] for values in (shares[known], means[known]))
    power = float(share @ share)
    if power < 1e-6:
        return 0.0, 0.0
    slope = float(share @ mean) / power
    variance = float(((mean - slope * share) ** 2).sum()) / (count - trend.shape[1] - 1)
    return slope, slope / math.sqrt(variance / power + 1e-18)


def member_effects(cohorts: Sequence[Sequence[int]], changes: Floats, *, clients: int) -> Floats:
    """(N,) estimated effect of each client's training on the average opinion of others, by ridge regression.

    Args:
        cohorts: T cohorts.
        changes: (T,) of the average opinion in these slots; nan where it is not known.
        clients: N.
    """
    known = ~np.isnan(changes)
    changes = changes[known]
    if not changes.size:
        return np.zeros(clients)
    members = np.zeros((changes.size, clients))
    for row, slot in enumerate(np.flatnonzero(known).tolist()):
        members[row, cohorts[slot]] = 1.0
    members -= members.mean(axis=0)
    kernel = members @ members.T + _RIDGE * np.eye(changes.size)
    effects: Floats = members.T @ np.linalg.solve(kernel, changes - changes.mean())
    return effects
