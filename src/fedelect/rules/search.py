"""Search for the set with the highest acquisition value: steepest ascent by swaps of members, from several starts.

The search numbers clients by a random order that the seed fixes, so ties are never broken by client number.
"""

import numpy as np

from fedelect.rules.exact_algebra import membership
from fedelect.rules.posterior import SetPosterior
from fedelect.seeds import Draws, stream
from fedelect.vocabulary import Cohort, Floats, Ints

POOL = 40
"""Most clients that a search considers (or 2 K, if that is more): those with the highest indices of their own."""

_PLAYED_STARTS, _RANDOM_STARTS, _MOST_STEPS, _MOST_SWAPS = 2, 2, 12, 256


def find_best_set(
    posterior: SetPosterior, candidates: Ints, *, clients: int, exploration: float, seed: int | str, slot: int
) -> tuple[Cohort, float]:
    """Return the best set of candidates that the search finds, and its acquisition value.

    Starts are the best sets played, the clients with the highest indices, and random sets. Of more than `POOL`
    candidates only those with the highest indices are considered.

    Args:
        posterior: Posterior of set values.
        candidates: Sorted client numbers, at least K.
        clients: N.
        exploration: Exploration weight.
        seed: Fixes random starts and ties.
        slot: The slot to choose for.
    """
    budget = posterior.budget
    order = stream(seed, "set-order").permutation(clients)  # place of each client
    index = posterior.client_indices(clients, exploration=exploration)[candidates]
    best_first = candidates[np.lexsort((order[candidates], -index))]
    pool = best_first[: max(POOL, 2 * budget)]
    pool = pool[np.argsort(order[pool])]
    sorted_pool = np.sort(pool)
    columns = np.searchsorted(sorted_pool, pool)  # columns in the seed's random order
    played = posterior.membership(sorted_pool)[:, columns]
    draws = Draws(seed, "set-starts", slot)
    starts = [_membership_row(columns, sorted_pool, best_first[:budget])]
    starts += [_draw_row(draws, pool.size, budget) for _ in range(_RANDOM_STARTS)]
    inside = played[played.sum(axis=1) == budget]
    if len(inside):
        values = posterior.acquisition(inside, played, pool, exploration=exploration)
        starts += list(inside[np.argsort(-values, kind="stable")[:_PLAYED_STARTS]])
    sets, values = _climb(posterior, np.array(starts), played, pool, exploration, draws)
    winner = int(np.argmax(values))
    return tuple(sorted(pool[np.flatnonzero(sets[winner])].tolist())), float(values[winner])


def _membership_row(columns: Ints, sorted_pool: Ints, cohort: Ints) -> Floats:
    row: Floats = membership(np.sort(cohort)[None, :], sorted_pool)[0][columns]
    return row


def _draw_row(draws: Draws, size: int, budget: int) -> Floats:
    row = np.zeros(size)
    row[draws.sample(size, budget)] = 1.0
    return row


def _climb(
    posterior: SetPosterior, sets: Floats, played: Floats, pool: Ints, exploration: float, draws: Draws
) -> tuple[Floats, Floats]:
    """Climb from every start at once, by the best swap of two clients; return (s, P) sets, (s,) acquisition values."""
    sets = np.unique(sets, axis=0)
    values = posterior.acquisition(sets, played, pool, exploration=exploration)
    moving = np.ones(len(sets), dtype=np.bool_)
    for _ in range(_MOST_STEPS):
        climbers = np.flatnonzero(moving)
        if not climbers.size:
            break
        neighbours = [_swap_members(sets[climber], draws) for climber in climbers]
        sizes = [len(one) for one in neighbours]
        found = np.split(
            posterior.acquisition(np.concatenate(neighbours), played, pool, exploration=exploration),
            np.cumsum(sizes)[:-1],
        )
        for climber, near, near_values in zip(climbers, neighbours, found, strict=True):
            best = int(np.argmax(near_values)) if len(near) else -1
            moving[climber] = best >= 0 and bool(near_values[best] > values[climber])
            if moving[climber]:
                sets[climber], values[climber] = near[best], near_values[best]
    return sets, values


def _swap_members(one: Floats, draws: Draws) -> Floats:
    """(swaps, P) the sets that differ from this one by one member; at most `_MOST_SWAPS` of them, drawn."""
    inside, outside = np.flatnonzero(one), np.flatnonzero(one == 0.0)
    leaving, coming = np.repeat(inside, outside.size), np.tile(outside, inside.size)
    if leaving.size > _MOST_SWAPS:
        drawn = draws.sample(leaving.size, _MOST_SWAPS)
        leaving, coming = leaving[drawn], coming[drawn]
    near = np.repeat(one[None, :], leaving.size, axis=0)
    rows = np.arange(leaving.size)
    near[rows, leaving], near[rows, coming] = 0.0, 1.0
    return near
