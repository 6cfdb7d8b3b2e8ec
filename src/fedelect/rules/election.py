"""The two elections, pure functions that selectors and peers compute from the same values: by index, by set value."""

import math
from typing import NamedTuple

import numpy as np

from fedelect.equations.indices import bp_ucb_index, top_k
from fedelect.errors import AvailabilityError
from fedelect.rules.posterior import SetPosterior, SetPrior
from fedelect.rules.search import find_best_set
from fedelect.rules.surrogate import LossSurrogate
from fedelect.vocabulary import Cohort, Floats, Ints

RULE_VERSION = 2
"""Version of the election by set value: raised when the same history gives another cohort (a constant, a prior, the
search). It is part of the peers' configuration hash, so that different versions never vote in one election."""


class Election(NamedTuple):
    """The elected cohort (sorted) and its winning indices: one for each member, or the acquisition value of the set."""

    cohort: Cohort
    indices: tuple[float, ...]


def elect(
    mean: Floats,
    pulls: Floats | Ints,
    beliefs: Floats,
    *,
    slot: int,
    budget: int,
    exploration: float,
    tie_seed: int | str,
    eligible: Ints | None = None,
) -> Election:
    """Elect the `budget` eligible clients with the highest BP-UCB index.

    Args:
        mean: (N,) see `bp_ucb_index`; likewise `pulls` and `beliefs`.
        pulls: (N,).
        beliefs: (N,).
        slot: The slot to elect for.
        budget: K.
        exploration: mu, the exploration weight.
        tie_seed: Selector seed or configuration hash; ties are ordered by hash of (tie_seed, slot, client).
        eligible: Client numbers to choose from; all if None.
    """
    index = bp_ucb_index(mean, pulls, beliefs, slot=slot, exploration=exploration)
    candidates = _candidates(mean.size, eligible, budget)
    cohort = top_k(index, budget, among=candidates, tie_seed=tie_seed, slot=slot)
    return Election(cohort, tuple(index[list(cohort)].tolist()))


def belief_value(beliefs: Floats) -> float | None:
    """Value of a trained set from the beliefs gossiped after it: the mean of sqrt(b).

    A belief is about the square of the client's opinion, r^2 (its neighbours change it under "ising"), so the mean of
    the roots is about the average opinion. It needs no server and nothing but what BP-UCB gossips too.

    Args:
        beliefs: (N,) unnormalised; nan where a client has none.

    Returns:
        None if no client has a belief.
    """
    held = beliefs[~np.isnan(beliefs)]
    return math.fsum(np.sqrt(held).tolist()) / held.size if held.size else None


def elect_set(
    cohorts: Ints,
    means: Floats,
    weights: Floats,
    scatter: Floats,
    *,
    clients: int,
    slot: int,
    exploration: float,
    seed: int | str,
    prior: SetPrior,
    added_noise: Floats | None = None,
    eligible: Ints | None = None,
    surrogate: LossSurrogate | None = None,
) -> Election:
    """Elect the set with the highest acquisition value, given the rewards of the cohorts played.

    Args:
        cohorts: (n, K) distinct cohorts played, n >= 1, rows sorted.
        means: (n,) mean reward of each.
        weights: (n,) number of rewards in each mean, less what has faded.
        scatter: (n,) sum of squared deviations of the rewards from their mean.
        clients: N.
        slot: The slot to elect for.
        exploration: Exploration weight of the acquisition value.
        seed: Selector seed or configuration hash: fixes random starts and ties.
        prior: Variances.
        added_noise: (n,) variance of noise added to the means; None for none.
        eligible: Client numbers to choose from; all if None.
        surrogate: A score of sets from side signals; None for none.
    """
    budget = int(cohorts.shape[1])
    candidates = _candidates(clients, eligible, budget)
    noise = np.zeros(len(cohorts)) if added_noise is None else added_noise
    posterior = SetPosterior(cohorts, means, weights, scatter, noise, prior, surrogate)
    cohort, value = find_best_set(posterior, candidates, clients=clients, exploration=exploration, seed=seed, slot=slot)
    return Election(cohort, (posterior.centre + value,))


def _candidates(clients: int, eligible: Ints | None, budget: int) -> Ints:
    candidates = np.arange(clients) if eligible is None else np.unique(eligible)
    if candidates.size < budget:
        raise AvailabilityError(f"{candidates.size} clients can be elected but the budget is {budget}")
    return candidates
