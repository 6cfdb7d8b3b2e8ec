"""The Gaussian process over sets, written out: feature by feature, with a linear-algebra library."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from fedelect.equations.set_values import SetPrior
from fedelect.vocabulary import Cohort, Floats


def features(cohort: Sequence[int], clients: int, prior: SetPrior) -> Floats:
    """One coordinate for the level, each client and each pair, scaled so that the prior is standard normal."""
    budget = len(cohort)
    row = [math.sqrt(prior.level)]
    row += [math.sqrt(prior.additive / budget) * (client in cohort) for client in range(clients)]
    pairs = budget * (budget - 1) / 2
    for pair in itertools.combinations(range(clients), 2):
        row.append(math.sqrt(prior.pairs / pairs) * (set(pair) <= set(cohort)) if pairs else 0.0)
    return np.array(row)


def covariance(one: Cohort, other: Cohort, clients: int, prior: SetPrior) -> float:
    """Covariance of two sets, from their features."""
    shared = float(features(one, clients, prior) @ features(other, clients, prior))
    return shared + prior.own * (one == other)


def posterior(
    sets: list[Cohort],
    played: list[Cohort],
    rewards: list[list[float]],
    clients: int,
    prior: SetPrior,
    noise: float,
    centre: float,
    spread: float,
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each set's value in units of `spread`, from every single reward."""
    rows = [(cohort, reward) for cohort, own in zip(played, rewards, strict=True) for reward in own]
    gram = np.array([[covariance(a, b, clients, prior) for b, _ in rows] for a, _ in rows])
    gram += noise / spread**2 * np.eye(len(rows))
    values = (np.array([reward for _, reward in rows]) - centre) / spread
    across = np.array([[covariance(one, b, clients, prior) for b, _ in rows] for one in sets])
    mean = across @ np.linalg.solve(gram, values)
    explained = np.einsum("ij,ji->i", across, np.linalg.solve(gram, across.T))
    own = np.array([covariance(one, one, clients, prior) for one in sets])
    return mean, np.sqrt(np.maximum(own - explained, 0.0))
