"""A Gaussian process over K-subsets, given the cohorts played so far.

The value of a set S is  level + sum of a_i over its members + of b_ij over its pairs + of c_ijk over its triples +
a deviation of its own, all independent and normal. Two sets with o members in common therefore have the covariance

    level + additive C(o, 1) / C(K, 1) + pairs C(o, 2) / C(K, 2) + triples C(o, 3) / C(K, 3) + own [o = K],

a function of the overlap alone, in which client numbers play no part. A surrogate score, where there is one, adds a
linear term. Only the *shape* of the covariance is fixed. Its scale has a conjugate prior and is integrated out. The
noise variance of a reward is the most likely of a few levels. The fit of the process speaks for it, and the scatter of
rewards of cohorts that were played repeatedly.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.rules.exact_algebra import Factor, ln, members, membership, weighted_rows
from fedelect.rules.surrogate import LossSurrogate
from fedelect.vocabulary import Floats, Ints

SMALLEST_VARIANCE = 1e-6
"""Lower limit of the first guess of the scale, for means that are all equal."""

NOISES = (0.05, 0.15, 0.5, 1.5)
"""Candidate noise variances of one reward, in units of the variance of random sets' values."""

TRUST = 2.0
"""Prior weight, in rewards, of the first guess of the scale (the variance of the means)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPrior:
    """Prior variances of the parts of a set's value; only their proportions count, since the scale is learnt.

    Attributes:
        level: Common to all sets.
        additive: Sum over the members.
        pairs: Interactions of two members: redundancy, balance.
        triples: Interactions of three members.
        own: Deviation of the set itself.
        surrogate: Coefficient of the surrogate score, where there is one.
    """

    level: float = 3.0
    additive: float = 0.7
    pairs: float = 0.5
    triples: float = 0.08
    own: float = 0.03
    surrogate: float = 1.0

    def __post_init__(self) -> None:
        parts = (self.level, self.additive, self.pairs, self.triples, self.own, self.surrogate)
        if not all(0.0 <= part <= 1e6 for part in parts):
            raise ConfigurationError(f"variances must be from 0 to 1e6, got {self}")

    def covariance(self, overlap: Floats, budget: int) -> Floats:
        """Covariance of sets that share `overlap` of `budget` members, without the surrogate. (...) -> (...)."""
        result = np.full(np.shape(overlap), self.level)
        share = np.ones(np.shape(overlap))
        for order, variance in enumerate((self.additive, self.pairs, self.triples)):
            share = share * (overlap - order) / max(budget - order, 1)
            result += variance * share
        result += np.where(overlap == budget, self.own, 0.0)
        return result


class SetPosterior:
    """Posterior of the value of any set, given the cohorts played.

    Args:
        cohorts: (n, K) distinct cohorts, n >= 1, rows sorted.
        means: (n,) mean reward of each.
        weights: (n,) number of rewards in each mean, less what has faded; > 0.
        scatter: (n,) sum of squared deviations of the rewards from their mean.
        added_noise: (n,) variance of noise added to each mean; 0 for none.
        prior: Variances.
        surrogate: A score of sets from side signals; None for none.

    Attributes:
        centre: Mean of the means; values are relative to it.
        scale: Factor on the prior's variances; a variance of rewards.
        noise: Noise variance of one reward, in units of the scale.
    """

    def __init__(
        self,
        cohorts: Ints,
        means: Floats,
        weights: Floats,
        scatter: Floats,
        added_noise: Floats,
        prior: SetPrior,
        surrogate: LossSurrogate | None = None,
    ) -> None:
        self._prior, self._surrogate = prior, surrogate
        self.cohorts, self.weights = cohorts, weights
        self.budget = int(cohorts.shape[1])
        self.centre = math.fsum(means.tolist()) / len(means)
        deviations = means - self.centre
        guess = max(math.fsum((deviations * deviations).tolist()) / len(means), SMALLEST_VARIANCE)
        everybody = np.unique(cohorts)
        played = membership(cohorts, everybody)
        self._played_scores = np.zeros(len(cohorts)) if surrogate is None else surrogate.score(cohorts)
        gram = self._covariance(played @ played.T, self._played_scores)
        repeats = math.fsum(np.maximum(weights - 1.0, 0.0).tolist())
        shown, size = math.fsum(scatter.tolist()), TRUST + len(means) + repeats
        likely = []
        for noise in NOISES:
            noisy = gram.copy()
            noisy[np.diag_indices(len(gram))] += noise / weights + added_noise / guess
            factor = Factor(noisy)
            solved = factor.solve(deviations[:, None])[:, 0]
            misfit = TRUST * guess + math.fsum((deviations * solved).tolist()) + shown / noise
            evidence = -(factor.ln_determinant() + repeats * ln(noise) + size * ln(misfit))
            likely.append((evidence, misfit / size, noise, factor, solved))
        _, self.scale, self.noise, self._factor, self._solved = max(likely, key=lambda one: one[0])

    def acquisition(self, sets: Floats, played: Floats, columns: Ints, *, exploration: float) -> Floats:
        """Acquisition value: posterior mean + exploration * standard deviation of the update by one more reward.

        For a posterior variance v that deviation is v / sqrt(v + noise): sqrt(v) without noise, less with noise.

        Args:
            sets: (m, P) membership, 0 or 1, over P clients that include all members of these sets.
            played: (n, P) membership of the cohorts played, over the same clients.
            columns: (P,) the numbers of these clients.
            exploration: Exploration weight.

        Returns:
            (m,) acquisition values relative to `centre`, in units of reward.
        """
        surrogate_score = np.zeros(len(sets))
        if self._surrogate is not None:
            surrogate_score = self._surrogate.score(members(sets, columns, self.budget))
        covariance = self._covariance(played @ sets.T, surrogate_score)  # integers below 2**53: exact in any order
        mean = weighted_rows(covariance, self._solved)
        explained = np.zeros(len(sets))
        for row, pivot in zip(self._factor.solve_lower(covariance), self._factor.pivots, strict=True):
            explained += row * row / pivot
        own = self._prior.covariance(np.array(float(self.budget)), self.budget) + self._prior.surrogate * (
            surrogate_score * surrogate_score
        )
        variance = np.maximum(own - explained, 0.0)
        update = variance / np.sqrt(variance + self.noise)
        values: Floats = mean + (exploration * math.sqrt(self.scale)) * update
        return values

    def client_indices(self, clients: int, *, exploration: float) -> Floats:
        """(N,) upper confidence index of each client's additive part."""
        share = self._prior.additive / self.budget
        worth, seen = np.zeros(clients), np.zeros(clients)
        for cohort, solved, weight in zip(self.cohorts, self._solved, self.weights, strict=True):
            worth[cohort] += share * solved
            seen[cohort] += weight
        indices: Floats = worth + exploration * np.sqrt(share * self.scale / (1.0 + seen))
        return indices

    def membership(self, pool: Ints) -> Floats:
        """(n, P) membership of the cohorts played, over the clients of `pool` (sorted)."""
        return membership(self.cohorts, pool)

    def _covariance(self, overlap: Floats, surrogate_score: Floats) -> Floats:
        """(n, m) covariance of the cohorts played with sets of this `overlap` (n, m) and surrogate score (m,)."""
        covariance = self._prior.covariance(overlap, self.budget)
        if self._surrogate is not None:
            covariance += self._prior.surrogate * (self._played_scores[:, None] * surrogate_score)
        return covariance
