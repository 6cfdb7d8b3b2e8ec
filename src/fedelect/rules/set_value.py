"""The election from values of sets, and what peers take as the value of the set that trained."""

import math

import numpy as np

from fedelect.errors import AvailabilityError
from fedelect.rules.election import Election
from fedelect.rules.posterior import SetPosterior, SetPrior
from fedelect.rules.search import best_set
from fedelect.rules.surrogate import LossSurrogate
from fedelect.vocabulary import Floats, Ints

RULE_VERSION = 2
"""Raised whenever the same history gives another cohort: a constant, a prior, the search. Peers that elect by this rule
have it in the name of their configuration, so that different versions never vote in one election."""


def belief_value(beliefs: Floats) -> float | None:
    """The value of a trained set that follows from the beliefs gossiped after it: the mean of sqrt(b).

    A belief is the square of the client's opinion, r^2, but for what its neighbours add to it ("ising"); its root is
    about the opinion, and the mean over all clients about the average opinion. Whoever holds the agreed map can
    compute it, without a server and from nothing but what BP-UCB gossips too.

    Args:
        beliefs: (N,) unnormalised; nan where a client has none.

    Returns:
        None if nobody has a belief.
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
    hunch: LossSurrogate | None = None,
) -> Election:
    """The cohort whose value may be highest: one pure function of what was played and what came of it.

    Args:
        cohorts: (n, K) distinct cohorts that have been played, n >= 1, rows sorted.
        means: (n,) mean value of each.
        weights: (n,) how many values the mean is worth.
        scatter: (n,) sum of squared deviations of these values from their mean.
        clients: N.
        slot: The slot to elect for.
        exploration: How much to hope for (`SetPosterior.bounds`).
        seed: Selector seed or configuration hash: fixes random starts and ties.
        prior: Variances.
        added_noise: (n,) variance of noise added to the means; None for none.
        eligible: Client numbers to choose from; all if None.
        hunch: What side signals say of sets; None for nothing.
    """
    candidates = np.arange(clients) if eligible is None else np.unique(eligible)
    budget = int(cohorts.shape[1])
    if candidates.size < budget:
        raise AvailabilityError(f"{candidates.size} clients can be elected but the budget is {budget}")
    noise = np.zeros(len(cohorts)) if added_noise is None else added_noise
    posterior = SetPosterior(cohorts, means, weights, scatter, noise, prior, hunch)
    cohort, bound = best_set(posterior, candidates, clients=clients, exploration=exploration, seed=seed, slot=slot)
    return Election(cohort, (posterior.centre + bound,))
