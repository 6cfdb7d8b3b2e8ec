"""The set with the highest bound, by exchange of members: steepest ascent from several starts.

Inside the search clients go by places in a random order that the seed fixes, so a tie (two sets of which nothing tells
one from the other) is never broken by client number.
"""

import numpy as np

from fedelect.rules.exact_algebra import membership
from fedelect.rules.posterior import SetPosterior
from fedelect.seeds import Draws, stream
from fedelect.vocabulary import Cohort, Floats, Ints

POOL = 40
"""Most clients that a search looks at (or twice the budget, if that is more): the best by their own bounds."""

_PLAYED_STARTS, _RANDOM_STARTS, _MOST_STEPS, _MOST_SWAPS = 2, 2, 12, 256


def best_set(
    posterior: SetPosterior, candidates: Ints, *, clients: int, exploration: float, seed: int | str, slot: int
) -> tuple[Cohort, float]:
    """The set of candidates with the highest bound that the search finds, and that bound.

    Starts are the best sets played, the best clients by their own bounds, and random sets. Where there are more than
    `POOL` candidates only the best by their own bounds are looked at.

    Args:
        posterior: What is known.
        candidates: Sorted client numbers, at least the budget.
        clients: N.
        exploration: Standard deviations in a bound.
        seed: Fixes random starts and ties.
        slot: The slot to choose for.
    """
    budget = posterior.budget
    order = stream(seed, "set-order").permutation(clients)  # place of each client
    worth = posterior.client_bounds(clients, exploration=exploration)[candidates]
    best_first = candidates[np.lexsort((order[candidates], -worth))]
    pool = best_first[: max(POOL, 2 * budget)]
    pool = pool[np.argsort(order[pool])]
    sorted_pool = np.sort(pool)
    columns = np.searchsorted(sorted_pool, pool)  # columns in the seed's random order
    played = posterior.membership(sorted_pool)[:, columns]
    draws = Draws(seed, "set-starts", slot)
    starts = [_row(columns, sorted_pool, best_first[:budget])]
    starts += [_drawn(draws, pool.size, budget) for _ in range(_RANDOM_STARTS)]
    inside = played[played.sum(axis=1) == budget]
    if len(inside):
        bounds = posterior.bounds(inside, played, pool, exploration=exploration)
        starts += list(inside[np.argsort(-bounds, kind="stable")[:_PLAYED_STARTS]])
    sets, bounds = _climb(posterior, np.array(starts), played, pool, exploration, draws)
    winner = int(np.argmax(bounds))
    return tuple(sorted(pool[np.flatnonzero(sets[winner])].tolist())), float(bounds[winner])


def _row(columns: Ints, sorted_pool: Ints, cohort: Ints) -> Floats:
    row: Floats = membership(np.sort(cohort)[None, :], sorted_pool)[0][columns]
    return row


def _drawn(draws: Draws, size: int, budget: int) -> Floats:
    row = np.zeros(size)
    row[draws.sample(size, budget)] = 1.0
    return row


def _climb(
    posterior: SetPosterior, sets: Floats, played: Floats, pool: Ints, exploration: float, draws: Draws
) -> tuple[Floats, Floats]:
    """From every start at once, swap the pair of clients that helps most until none does; (s, P) sets, (s,) bounds."""
    sets = np.unique(sets, axis=0)
    bounds = posterior.bounds(sets, played, pool, exploration=exploration)
    moving = np.ones(len(sets), dtype=np.bool_)
    for _ in range(_MOST_STEPS):
        climbers = np.flatnonzero(moving)
        if not climbers.size:
            break
        neighbours = [_swapped(sets[climber], draws) for climber in climbers]
        sizes = [len(one) for one in neighbours]
        found = np.split(
            posterior.bounds(np.concatenate(neighbours), played, pool, exploration=exploration), np.cumsum(sizes)[:-1]
        )
        for climber, near, near_bounds in zip(climbers, neighbours, found, strict=True):
            best = int(np.argmax(near_bounds)) if len(near) else -1
            moving[climber] = best >= 0 and bool(near_bounds[best] > bounds[climber])
            if moving[climber]:
                sets[climber], bounds[climber] = near[best], near_bounds[best]
    return sets, bounds


def _swapped(one: Floats, draws: Draws) -> Floats:
    """(swaps, P) all sets that differ from this one by one member, or as many of them, drawn, as are looked at."""
    inside, outside = np.flatnonzero(one), np.flatnonzero(one == 0.0)
    leaving, coming = np.repeat(inside, outside.size), np.tile(outside, inside.size)
    if leaving.size > _MOST_SWAPS:
        drawn = draws.sample(leaving.size, _MOST_SWAPS)
        leaving, coming = leaving[drawn], coming[drawn]
    near = np.repeat(one[None, :], leaving.size, axis=0)
    rows = np.arange(leaving.size)
    near[rows, leaving], near[rows, coming] = 0.0, 1.0
    return near
