"""The Gaussian process over sets, written out: feature by feature, reward by reward, with a linear-algebra library."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from fedelect.rules import SetPrior
from fedelect.vocabulary import Cohort, Floats


def features(cohort: Sequence[int], clients: int, prior: SetPrior) -> Floats:
    """A coordinate for the level, each client, pair and triple, scaled so that the prior is standard normal."""
    row = [math.sqrt(prior.level)]
    for order, variance in enumerate((prior.additive, prior.pairs, prior.triples), start=1):
        inside = math.comb(len(cohort), order)
        for group in itertools.combinations(range(clients), order):
            row.append(math.sqrt(variance / inside) * (set(group) <= set(cohort)) if inside else 0.0)
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
) -> tuple[Floats, Floats]:
    """Mean, and variance in units of the scale, of each set's value, from every single reward."""
    rows = [(cohort, reward) for cohort, own in zip(played, rewards, strict=True) for reward in own]
    gram = np.array([[covariance(a, b, clients, prior) for b, _ in rows] for a, _ in rows]) + noise * np.eye(len(rows))
    values = np.array([reward for _, reward in rows]) - centre
    across = np.array([[covariance(one, b, clients, prior) for b, _ in rows] for one in sets])
    mean = across @ np.linalg.solve(gram, values)
    explained = np.einsum("ij,ji->i", across, np.linalg.solve(gram, across.T))
    own = np.array([covariance(one, one, clients, prior) for one in sets])
    return mean, np.maximum(own - explained, 0.0)


def evidence(
    played: list[Cohort], rewards: list[list[float]], clients: int, prior: SetPrior, noise: float, trust: float
) -> tuple[float, float]:
    """Logarithm of the likelihood of every single reward, its scale integrated out, but for a constant; and the scale.

    The scale has an inverse gamma prior worth `trust` rewards about the variance of the cohorts' means.
    """
    means = [float(np.mean(own)) for own in rewards]
    rows = [(cohort, reward) for cohort, own in zip(played, rewards, strict=True) for reward in own]
    gram = np.array([[covariance(a, b, clients, prior) for b, _ in rows] for a, _ in rows]) + noise * np.eye(len(rows))
    values = np.array([reward for _, reward in rows]) - np.mean(means)
    misfit = trust * np.var(means) + values @ np.linalg.solve(gram, values)
    size = trust + len(rows)
    return -0.5 * (np.linalg.slogdet(gram)[1] + size * math.log(misfit)), misfit / size


def surrogate_score(
    cohorts: list[Cohort], weights: Floats, losses: Floats, clients: int, judges: Sequence[int]
) -> Floats:
    """(all sets,) minus the mean square of the losses to be expected, judge by judge, in order of `combinations`."""
    budget = len(cohorts[0])
    sets = list(itertools.combinations(range(clients), budget))
    overlap = np.array([[len(set(a) & set(b)) for b in cohorts] for a in cohorts])
    across = np.array([[len(set(a) & set(b)) for b in cohorts] for a in sets])
    gram = 1.0 + overlap / budget + np.diag(0.1 / weights)
    rests = losses - np.nanmean(losses, axis=0)
    inside = np.array([[float(judge in cohort) for judge in judges] for cohort in cohorts])
    lean = inside - inside.mean(axis=0)
    slope = np.nansum(lean * rests) / (lean * lean).sum()
    total = np.zeros(len(sets))
    for place, judge in enumerate(judges):
        rest = np.where(np.isnan(rests[:, place]), 0.0, rests[:, place]) - slope * lean[:, place]
        for row, cohort in enumerate(sets):
            expected = np.nanmean(losses[:, place]) + slope * ((judge in cohort) - inside[:, place].mean())
            expected += (1.0 + across[row] / budget) @ np.linalg.solve(gram, rest)
            total[row] -= expected**2
    return total / len(judges)
