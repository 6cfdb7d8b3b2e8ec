"""A Gaussian process over K-subsets, given the cohorts played so far.

The value of a set S is  level + sum of a_i over its members + of b_ij over its pairs + of c_ijk over its triples +
a deviation of its own, all independent and normal. Two sets with o members in common therefore have the covariance

    level + additive C(o, 1) / C(K, 1) + pairs C(o, 2) / C(K, 2) + triples C(o, 3) / C(K, 3) + own [o = K],

a function of the overlap alone: no client is told apart by its number. If there is a hunch (`hunch.py`), it adds a
multiple of itself. Only the *shape* of the covariance is fixed. Its scale has a conjugate prior and is integrated out;
the noise of a reward is the most likely of a few levels, given both how well the process fits and how much cohorts
scatter that were played repeatedly.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.rules.exact_algebra import Factor, ln, members, membership, weighted_rows
from fedelect.rules.surrogate import LossSurrogate
from fedelect.vocabulary import Floats, Ints

SMALLEST_VARIANCE = 1e-6
"""Variance of the means below which they count as equal: the bounds get no narrower."""

NOISES = (0.05, 0.15, 0.5, 1.5)
"""Variances of one reward's noise that are considered, in units of the variance of random sets' values."""

TRUST = 2.0
"""How many rewards the first guess of the scale, the variance of the means, is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPrior:
    """Variances of the parts of a set's value: their proportions count, for the scale is learnt.

    Attributes:
        level: What all sets have in common.
        additive: Sum of the members' own worth.
        pairs: What members gain or lose by coming together: redundancy, balance.
        triples: The same of three.
        own: What only this very set has.
        hunch: The multiple of a hunch, where there is one.
    """

    level: float = 3.0
    additive: float = 0.7
    pairs: float = 0.5
    triples: float = 0.08
    own: float = 0.03
    hunch: float = 1.0

    def __post_init__(self) -> None:
        parts = (self.level, self.additive, self.pairs, self.triples, self.own, self.hunch)
        if not all(0.0 <= part <= 1e6 for part in parts):
            raise ConfigurationError(f"variances must be from 0 to 1e6, got {self}")

    def covariance(self, overlap: Floats, budget: int) -> Floats:
        """Covariance of sets that have `overlap` of `budget` members in common, but for a hunch. (...) -> (...)."""
        result = np.full(np.shape(overlap), self.level)
        share = np.ones(np.shape(overlap))
        for order, variance in enumerate((self.additive, self.pairs, self.triples)):
            share = share * (overlap - order) / max(budget - order, 1)
            result += variance * share
        result += np.where(overlap == budget, self.own, 0.0)
        return result


class SetPosterior:
    """What the cohorts played tell of any other.

    Args:
        cohorts: (n, K) distinct cohorts, n >= 1, rows sorted.
        means: (n,) mean reward of each.
        weights: (n,) how many rewards that mean is worth, > 0.
        scatter: (n,) sum of squared deviations of these rewards from that mean.
        added_noise: (n,) variance of noise that was added to that mean; 0 where none was.
        prior: Variances.
        hunch: What side signals say of sets; None for nothing.

    Attributes:
        centre: Mean of the means, which values are measured from.
        scale: What the prior's variances are to be multiplied by, a variance of rewards.
        noise: Variance of one reward's noise, in units of the scale.
    """

    def __init__(
        self,
        cohorts: Ints,
        means: Floats,
        weights: Floats,
        scatter: Floats,
        added_noise: Floats,
        prior: SetPrior,
        hunch: LossSurrogate | None = None,
    ) -> None:
        self._prior, self._hunch = prior, hunch
        self.cohorts, self.weights = cohorts, weights
        self.budget = int(cohorts.shape[1])
        self.centre = math.fsum(means.tolist()) / len(means)
        deviations = means - self.centre
        guess = max(math.fsum((deviations * deviations).tolist()) / len(means), SMALLEST_VARIANCE)
        everybody = np.unique(cohorts)
        played = membership(cohorts, everybody)
        self._felt = np.zeros(len(cohorts)) if hunch is None else hunch.of(cohorts)
        gram = self._covariance(played @ played.T, self._felt)
        repeats = math.fsum(np.maximum(weights - 1.0, 0.0).tolist())
        shown, size = math.fsum(scatter.tolist()), TRUST + len(means) + repeats
        likely = []
        for noise in NOISES:
            noisy = gram.copy()
            noisy[np.diag_indices(len(gram))] += noise / weights + added_noise / guess
            factor = Factor(noisy)
            pull = factor.solve(deviations[:, None])[:, 0]
            misfit = TRUST * guess + math.fsum((deviations * pull).tolist()) + shown / noise
            evidence = -(factor.ln_determinant() + repeats * ln(noise) + size * ln(misfit))
            likely.append((evidence, misfit / size, noise, factor, pull))
        _, self.scale, self.noise, self._factor, self._pull = max(likely, key=lambda one: one[0])

    def bounds(self, sets: Floats, played: Floats, columns: Ints, *, exploration: float) -> Floats:
        """What may be hoped for of each set: posterior mean + exploration * what one more reward may move it by.

        That is v / sqrt(v + noise) for a posterior variance v: the standard deviation where a reward tells the value,
        less where it tells little.

        Args:
            sets: (m, P) membership, 0 or 1, over some P clients that hold all members of these sets.
            played: (n, P) membership of the cohorts played over the same clients.
            columns: (P,) the numbers of these clients.
            exploration: How many of these to hope for.

        Returns:
            (m,) bounds above `centre`, in units of reward.
        """
        surrogate_score = (
            np.zeros(len(sets)) if self._hunch is None else self._hunch.of(members(sets, columns, self.budget))
        )
        covariance = self._covariance(played @ sets.T, surrogate_score)  # integers below 2**53: exact in any order
        mean = weighted_rows(covariance, self._pull)
        explained = np.zeros(len(sets))
        for row, pivot in zip(self._factor.halfway(covariance), self._factor.pivots, strict=True):
            explained += row * row / pivot
        own = self._prior.covariance(np.array(float(self.budget)), self.budget) + self._prior.hunch * (
            surrogate_score * surrogate_score
        )
        variance = np.maximum(own - explained, 0.0)
        moved = variance / np.sqrt(variance + self.noise)
        bounds: Floats = mean + (exploration * math.sqrt(self.scale)) * moved
        return bounds

    def client_bounds(self, clients: int, *, exploration: float) -> Floats:
        """(N,) optimistic worth of each client: its additive part, wider the less often it was elected."""
        share = self._prior.additive / self.budget
        worth, seen = np.zeros(clients), np.zeros(clients)
        for cohort, pull, weight in zip(self.cohorts, self._pull, self.weights, strict=True):
            worth[cohort] += share * pull
            seen[cohort] += weight
        bounds: Floats = worth + exploration * np.sqrt(share * self.scale / (1.0 + seen))
        return bounds

    def membership(self, pool: Ints) -> Floats:
        """(n, P) membership of the cohorts played, over the clients of `pool` (sorted)."""
        return membership(self.cohorts, pool)

    def _covariance(self, overlap: Floats, surrogate_score: Floats) -> Floats:
        """(n, m) of the cohorts played with sets that share `overlap` (n, m) members and have this hunch (m,)."""
        covariance = self._prior.covariance(overlap, self.budget)
        if self._hunch is not None:
            covariance += self._prior.hunch * (self._felt[:, None] * surrogate_score)
        return covariance
