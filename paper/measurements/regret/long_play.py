"""A selector that plays very long in a small world, without the cost of an ask and a tell in every slot.

The selector itself plays until nothing but its index decides; then its books are taken over from `state()` as plain
numbers, and every further slot is the same arithmetic in a tight loop: the same operations in the same order, ties by
the same draws. A test plays both side by side and compares every slot.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedelect.analytics import democratized_feedback
from fedelect.atlas import Atlas
from fedelect.equations.indices import ln_slot
from fedelect.rules import unpack
from fedelect.seeds import Draws, derive, rank_key, stream
from fedelect.selectors import BpUcb, QuickInitUcb
from fedelect.vocabulary import Feedback, Floats, Ints

Selector = QuickInitUcb | BpUcb

Told = Sequence[Sequence[Feedback]]
"""What a selector is told, by number of the cohort and training seed; every client has an opinion."""


def feedback_on(atlas: Atlas, selector: Selector, rank: int, training_seed: int) -> Feedback:
    """What the selector is told of cohort number `rank` and a training seed: with beliefs if it needs them."""
    opinions = atlas.opinions(rank, training_seed)
    if "beliefs" in selector.needs:
        return democratized_feedback(atlas.world, opinions)[0]
    return Feedback(opinions=opinions)


def long_elections(atlas: Atlas, make: Callable[[int], Selector], *, trial: int, slots: int, seed: int) -> Ints:
    """Numbers of the cohorts that a selector elects in one trial on an atlas.

    Args:
        atlas: The world; a small one, for all that is said of its cohorts is kept in memory.
        make: Makes the selector, given its seed.
        trial: The trial; it fixes the selector's seed and the training seed of every slot.
        slots: T.
        seed: Seed of the runs.

    Returns:
        (T,) cohort numbers.
    """
    selector = make(derive(seed, "selection", trial))
    seeds = stream(seed, "regret", trial).integers(atlas.seeds, size=slots).tolist()
    known = functools.cache(functools.partial(feedback_on, atlas, selector))
    ranks = {atlas.cohort(rank): rank for rank in range(atlas.cohorts)}
    elected: list[int] = []
    while len(elected) < slots and not _index_decides(selector, atlas.cohorts):
        selection = selector.ask()
        elected.append(ranks[selection.cohort])
        selector.tell(selection, known(elected[-1], seeds[len(elected) - 1]))
    if len(elected) < slots:
        told = [[known(rank, training_seed) for training_seed in range(atlas.seeds)] for rank in range(atlas.cohorts)]
        go_on = _quick_init if isinstance(selector, QuickInitUcb) else _bp_ucb
        elected += go_on(selector, told, seeds, first_slot=len(elected) + 1)
    return np.array(elected, dtype=np.int64)


def _index_decides(selector: Selector, cohorts: int) -> bool:
    """Whether every arm has been played since the cold start: every cohort, or every client."""
    if isinstance(selector, QuickInitUcb):
        return bool(selector.state()["memory"]["played"]["arms"] == cohorts)
    return bool(selector.arrays["given"].all())


def _quick_init(selector: Selector, told: Told, seeds: Sequence[int], *, first_slot: int) -> list[int]:
    """Cohort numbers from `first_slot` on: the cohort of highest mean + mu * sqrt(ln t / Pi), eq. `ucb-index`."""
    exploration, seed = float(selector.parameters["exploration"]), int(selector.parameters["seed"])
    totals, pulls = _arms(selector)
    rewards = [[_number(feedback.reward) for feedback in row] for row in told]
    means = [total / count for total, count in zip(totals, pulls, strict=True)]
    elected = []
    log, sqrt = math.log, math.sqrt
    for slot in range(first_slot, len(seeds) + 1):
        time = log(slot)
        indices = [mean + exploration * sqrt(time / count) for mean, count in zip(means, pulls, strict=True)]
        best = max(indices)
        rank = indices.index(best)
        if indices.count(best) > 1:
            rivals = _rivals([arm for arm, index in enumerate(indices) if index == best], means, pulls)
            rank = rivals[Draws(seed, "ties", slot).below(len(rivals))]
        elected.append(rank)
        totals[rank] += rewards[rank][seeds[slot - 1]]
        pulls[rank] += 1
        means[rank] = totals[rank] / pulls[rank]
    return elected


def _arms(selector: Selector) -> tuple[list[float], list[int]]:
    """Totals and pulls of all cohorts, by their number, which is their place in the order of their members."""
    kept: dict[str, Any] = selector.state()["memory"]["played"]
    size, budget = int(kept["arms"]), selector.budget
    members = unpack(kept["members"], "<u4", size=size * budget, what="arms").reshape(size, budget)
    totals = unpack(kept["totals"], "<f8", size=size, what="reward totals")
    pulls = unpack(kept["pulls"], "<u4", size=size, what="pulls")
    order = np.lexsort(members.T[::-1])
    return totals[order].tolist(), pulls[order].tolist()


def _rivals(level: Sequence[int], means: Sequence[float], pulls: Sequence[int]) -> list[int]:
    """Of arms whose indices are level, those among which the selector draws, in its order.

    Fewer pulls first, then lower numbers; of those with equal pulls only the highest mean has the highest index, even
    where rounding hides it.
    """
    highest: dict[int, float] = {}
    for arm in level:
        highest[pulls[arm]] = max(means[arm], highest.get(pulls[arm], -math.inf))
    return sorted((arm for arm in level if means[arm] == highest[pulls[arm]]), key=lambda arm: (pulls[arm], arm))


def _bp_ucb(selector: Selector, told: Told, seeds: Sequence[int], *, first_slot: int) -> list[int]:
    """Cohort numbers from `first_slot` on: the K clients of highest index, eq. `ucb1`."""
    clients, budget = selector.clients, selector.budget
    exploration, seed = float(selector.parameters["exploration"]), int(selector.parameters["seed"])
    totals, given, pulls, beliefs = _arrays(selector)
    shares = [[_shares(feedback.beliefs) for feedback in row] for row in told]
    opinions = [[_numbers(feedback.opinions) for feedback in row] for row in told]
    means = [total / count for total, count in zip(totals, given, strict=True)]
    ranks = _ranks(clients, budget)
    elected = []
    sqrt = math.sqrt
    for slot in range(first_slot, len(seeds) + 1):
        time = ln_slot(slot)
        indices = [
            mean + share + exploration * sqrt(time / count)
            for mean, share, count in zip(means, beliefs, pulls, strict=True)
        ]
        threshold = sorted(indices)[-budget]
        cohort = [client for client in range(clients) if indices[client] >= threshold]
        if len(cohort) > budget:
            cohort.sort(key=lambda client: (-indices[client], rank_key(seed, slot, client)))
            cohort = sorted(cohort[:budget])
        rank = ranks[tuple(cohort)]
        elected.append(rank)
        heard, beliefs = opinions[rank][seeds[slot - 1]], shares[rank][seeds[slot - 1]]
        for client in cohort:
            totals[client] += heard[client]
            given[client] += 1
            pulls[client] += 1
            means[client] = totals[client] / given[client]
    return elected


def _arrays(selector: Selector) -> tuple[list[float], list[int], list[int], list[float]]:
    """Sum and number of each client's own opinions, its elections, and its belief's part of the index."""
    given, pulls = (selector.arrays[name].astype(int).tolist() for name in ("given", "pulls"))
    return selector.arrays["total"].tolist(), given, pulls, _shares(selector.arrays["beliefs"])


def _shares(beliefs: Floats | None) -> list[float]:
    """Each client's share of all beliefs, divided by N, as the index takes it."""
    held = _numbers(beliefs)
    total = math.fsum(held)
    return [(belief / total if total > 0.0 else belief) / len(held) for belief in held]


def _ranks(clients: int, budget: int) -> dict[tuple[int, ...], int]:
    return {cohort: rank for rank, cohort in enumerate(itertools.combinations(range(clients), budget))}


def _numbers(values: Floats | None) -> list[float]:
    """Values of which none may be missing."""
    assert values is not None and not np.isnan(values).any()
    return [float(value) for value in values]


def _number(value: float | None) -> float:
    assert value is not None
    return float(value)
