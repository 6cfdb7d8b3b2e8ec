"""A Gaussian process over K-subsets, given the cohorts played so far.

The value of a set S is  level + sum of a_i over its members + sum of b_ij over its pairs + a deviation of its own,
all independent and normal. Two sets with o members in common therefore have the covariance

    level + additive o / K + pairs o (o - 1) / (K (K - 1)) + own [o = K],

a function of the overlap alone: no client is told apart by its number. Values are measured from the mean of all
rewards and in units of their standard deviation, so that the variances are plain numbers. That spread shrinks as the
choice settles, and with it the width of the bounds. The noise of a reward is estimated from cohorts played repeatedly.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats, Ints

SMALLEST_SPREAD = 1e-3
"""Rewards that differ by less than this count as equal: the bounds get no narrower."""

TRUST = 4.0
"""How many repeated plays the prior's noise is worth against the noise that they show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPrior:
    """Variances of the parts of a set's value, in units of the variance of the rewards seen.

    Attributes:
        level: What all sets have in common.
        additive: Sum of the members' own worth.
        pairs: What members gain or lose by coming together: redundancy, balance.
        own: What only this very set has.
        noise: Of one reward, before repeated plays tell.
    """

    level: float = 1.0
    additive: float = 1.0
    pairs: float = 1.0
    own: float = 0.1
    noise: float = 0.1

    def __post_init__(self) -> None:
        parts = (self.level, self.additive, self.pairs, self.own)
        if not (all(0.0 <= part <= 1e6 for part in parts) and 1e-6 <= self.noise <= 1e6):
            raise ConfigurationError(f"variances must be from 0 to 1e6, the noise's at least 1e-6; got {self}")

    def covariance(self, overlap: Floats, budget: int) -> Floats:
        """Covariance of sets that have `overlap` of `budget` members in common. Shapes: (...) -> (...)."""
        share = overlap / budget
        pairs = overlap * (overlap - 1.0) / max(budget * (budget - 1), 1)
        own = np.where(overlap == budget, self.own, 0.0)
        return self.level + self.additive * share + self.pairs * pairs + own


class SetPosterior:
    """What the cohorts played tell of any other.

    Args:
        cohorts: (n, K) distinct cohorts, n >= 1, rows sorted.
        means: (n,) mean reward of each.
        weights: (n,) how many rewards that mean is worth, > 0.
        scatter: (n,) sum of squared deviations of these rewards from that mean.
        added_noise: (n,) variance of noise that was added to that mean; 0 where none was.
        prior: Variances.
    """

    def __init__(
        self, cohorts: Ints, means: Floats, weights: Floats, scatter: Floats, added_noise: Floats, prior: SetPrior
    ) -> None:
        self._prior = prior
        self.cohorts = cohorts
        self.weights = weights
        self.budget = int(cohorts.shape[1])
        total = math.fsum(weights.tolist())
        self.centre = math.fsum((weights * means).tolist()) / total
        deviations = means - self.centre
        variance = math.fsum((weights * (deviations * deviations)).tolist()) / total
        self.spread = max(math.sqrt(variance), SMALLEST_SPREAD)
        gram = prior.covariance(self._overlaps_of_played(), self.budget)
        unit = self.spread * self.spread
        repeats = math.fsum(np.maximum(weights - 1.0, 0.0).tolist())
        shown = math.fsum(scatter.tolist())
        self.noise = (TRUST * prior.noise * unit + shown) / (TRUST + repeats)
        gram[np.diag_indices(len(cohorts))] += (self.noise / weights + added_noise) / unit
        self._inverse = inverse(gram)
        self._pull = weighted_rows(self._inverse, deviations / self.spread)  # (n,) how each played set draws others

    def bounds(self, sets: Floats, played: Floats, *, exploration: float) -> Floats:
        """Upper confidence bound of each set's value: posterior mean + exploration * standard deviation.

        Args:
            sets: (m, P) membership, 0 or 1, over some P clients that hold all members of these sets.
            played: (n, P) membership of the cohorts played over the same clients.
            exploration: Standard deviations to add.

        Returns:
            (m,) bounds in units of `spread` above `centre`.
        """
        covariance = self._prior.covariance(played @ sets.T, self.budget)  # integers below 2**53: exact in any order
        mean = weighted_rows(covariance, self._pull)
        halfway = np.zeros_like(covariance)
        for row, known in zip(self._inverse, covariance, strict=True):
            halfway += row[:, None] * known
        explained = np.zeros(len(sets))
        for one, other in zip(halfway, covariance, strict=True):
            explained += one * other
        own = self._prior.covariance(np.array(float(self.budget)), self.budget)
        bounds: Floats = mean + exploration * np.sqrt(np.maximum(own - explained, 0.0))
        return bounds

    def client_bounds(self, clients: int, *, exploration: float) -> Floats:
        """(N,) optimistic worth of each client: its additive part, wider the less often it was elected."""
        share = self._prior.additive / self.budget
        worth, seen = np.zeros(clients), np.zeros(clients)
        for cohort, pull, weight in zip(self.cohorts, self._pull, self.weights, strict=True):
            worth[cohort] += share * pull
            seen[cohort] += weight
        bounds: Floats = worth + exploration * np.sqrt(share / (1.0 + seen))
        return bounds

    def in_units_of_reward(self, bound: float) -> float:
        """A bound as a reward."""
        return self.centre + self.spread * bound

    def membership(self, pool: Ints) -> Floats:
        """(n, P) membership of the cohorts played, over the clients of `pool` (sorted)."""
        return membership(self.cohorts, pool)

    def _overlaps_of_played(self) -> Floats:
        everybody = np.unique(self.cohorts)
        members = membership(self.cohorts, everybody)
        overlaps: Floats = members @ members.T
        return overlaps


def membership(cohorts: Ints, pool: Ints) -> Floats:
    """(n, P) 1 where a cohort (n, K) holds a client of `pool` (P,) (sorted), else 0."""
    places = np.minimum(np.searchsorted(pool, cohorts), pool.size - 1)
    rows = np.zeros((len(cohorts), pool.size))
    inside = pool[places] == cohorts
    row, column = np.nonzero(inside)
    rows[row, places[row, column]] = 1.0
    return rows


def inverse(matrix: Floats) -> Floats:
    """Inverse of a symmetric positive definite matrix (n, n) by Gauss-Jordan elimination, in a fixed order."""
    result = matrix.copy()
    for pivot in range(len(result)):
        divisor = result[pivot, pivot]
        column = result[:, pivot].copy()
        row = result[pivot] / divisor
        row[pivot] = 1.0 / divisor
        result[:, pivot] = 0.0
        column[pivot] = 0.0
        result -= column[:, None] * row
        result[pivot] = row
    return result


def weighted_rows(matrix: Floats, weights: Floats) -> Floats:
    """(m,) sum of the rows of `matrix` (n, m), each times its weight (n,), added one after the other."""
    total = np.zeros(matrix.shape[1])
    for row, weight in zip(matrix, weights, strict=True):
        total += row * weight
    return total
