"""Surrogate of a set's value from the clients' losses: minus the expected mean square of the losses.

The loss of each reporting client is modelled as a sum over the members of the cohort, fitted to all cohorts played. A
member's effect differs from reporter to reporter, since it lowers the losses of clients with similar data. The squares
let members interact: two that lower the same losses gain less together than two that lower different ones, as in the
rewards. This shows after few slots, since each slot brings a loss of every reporter. The effect of a reporter's own
training on its loss is pooled over all reporters.
"""

import math

import numpy as np

from fedelect.rules.exact_algebra import Factor, membership, weighted_rows
from fedelect.seeds import Draws
from fedelect.vocabulary import Floats, Ints

_RIDGE = 0.1  # noise variance of a loss in units of the prior variance of the sum over members
_SAMPLE = 64  # random sets by which the score is standardised


class LossSurrogate:
    """A score of sets, with mean zero over the cohorts played and variance one over random sets.

    Args:
        base: (J,) expected loss of each reporter without the members' effects.
        effects: (N, J) what a member adds to it.
        cohorts: (n, K) cohorts played.
        seed: Fixes the random sets.
    """

    def __init__(self, base: Floats, effects: Floats, cohorts: Ints, *, seed: int | str) -> None:
        self._base, self._effects = base, effects
        clients, budget = len(effects), cohorts.shape[1]
        draws = Draws(seed, "hunch")  # the name of the stream fixes results
        sample = self._raw_score(np.array([draws.sample(clients, budget) for _ in range(_SAMPLE)]))
        middle = math.fsum(sample.tolist()) / _SAMPLE
        variance = math.fsum(((sample - middle) * (sample - middle)).tolist()) / _SAMPLE
        self._spread = math.sqrt(variance)
        self._centre = math.fsum(self._raw_score(cohorts).tolist()) / len(cohorts)

    def score(self, cohorts: Ints) -> Floats:
        """(m,) score of each cohort (m, K); zeros if all random sets score alike."""
        if self._spread <= 1e-9:
            return np.zeros(len(cohorts))
        scores: Floats = (self._raw_score(cohorts) - self._centre) / self._spread
        return scores

    def _raw_score(self, cohorts: Ints) -> Floats:
        expected = np.repeat(self._base[None, :], len(cohorts), axis=0)
        for place in range(cohorts.shape[1]):
            expected += self._effects[cohorts[:, place]]
        squares = np.zeros(len(cohorts))
        for reporter in range(expected.shape[1]):
            squares -= expected[:, reporter] * expected[:, reporter]
        squares /= max(expected.shape[1], 1)
        return squares


def fit_loss_surrogate(
    cohorts: Ints, weights: Floats, losses: Floats, *, clients: int, reporters: Ints, seed: int | str
) -> LossSurrogate:
    """Fit the surrogate to the reporters' losses after each cohort.

    Args:
        cohorts: (n, K) distinct cohorts played, n >= 1, rows sorted.
        weights: (n,) how often each was played, > 0.
        losses: (n, J) mean loss of each reporter; nan where it gave none.
        clients: N.
        reporters: (J,) client numbers of those who report losses, sorted.
        seed: Fixes the random sets by which the score is standardised.
    """
    known = ~np.isnan(losses)
    reports = known.sum(axis=0)
    filled = np.where(known, losses, 0.0)
    mean = weighted_rows(filled, np.ones(len(losses))) / np.maximum(reports, 1)
    residual = np.where(known, filled - mean, 0.0)  # a missing loss counts as the reporter's mean
    inside = membership(cohorts, reporters)
    usual = inside.sum(axis=0) / len(cohorts)
    lean = inside - usual
    slope = math.fsum((lean * residual).ravel().tolist()) / max(math.fsum((lean * lean).ravel().tolist()), 1e-9)
    residual = residual - slope * lean
    everybody = np.unique(cohorts)
    played = membership(cohorts, everybody)
    gram = 1.0 + (played @ played.T) / cohorts.shape[1]
    gram[np.diag_indices(len(gram))] += _RIDGE / weights
    solved = Factor(gram).solve(residual)  # (n, J)
    effects = np.zeros((clients, reporters.size))
    for cohort, row in zip(cohorts, solved, strict=True):
        effects[cohort] += row / cohorts.shape[1]
    effects[reporters, np.arange(reporters.size)] += slope
    base = mean - slope * usual + weighted_rows(solved, np.ones(len(solved)))
    return LossSurrogate(base, effects, cohorts, seed=seed)
