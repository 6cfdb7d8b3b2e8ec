"""What the clients' losses say of sets that have not been played: the sum of squares of the losses to be expected.

Each judge's loss is taken as a sum over the members of the cohort, fitted to all cohorts played. A member's effect
differs from judge to judge, for it lowers the losses of those whose data are like its own. Sums of squares are what
makes a set of it: two members that lower the same losses lower them less together than two that lower different ones,
as in the rewards, but seen after few slots, for each slot brings a loss from every judge. The effect of a judge's own
training on its loss is the same for all judges to begin with.
"""

import math

import numpy as np

from fedelect.rules.exact_algebra import Factor, membership, weighted_rows
from fedelect.seeds import Draws
from fedelect.vocabulary import Floats, Ints

_RIDGE = 0.1  # noise of a loss in units of the prior variance of the sum over members
_SAMPLE = 64  # random sets by which a hunch is standardised


class LossSurrogate:
    """A guess of how sets compare, about zero at the cohorts played and with variance one over random sets.

    Args:
        base: (J,) what a judge's loss is expected to be before the members are known.
        effects: (N, J) what a member adds to it.
        cohorts: (n, K) cohorts played.
        seed: Fixes the random sets.
    """

    def __init__(self, base: Floats, effects: Floats, cohorts: Ints, *, seed: int | str) -> None:
        self._base, self._effects = base, effects
        clients, budget = len(effects), cohorts.shape[1]
        draws = Draws(seed, "hunch")
        sample = self._raw(np.array([draws.sample(clients, budget) for _ in range(_SAMPLE)]))
        middle = math.fsum(sample.tolist()) / _SAMPLE
        variance = math.fsum(((sample - middle) * (sample - middle)).tolist()) / _SAMPLE
        self._spread = math.sqrt(variance)
        self._centre = math.fsum(self._raw(cohorts).tolist()) / len(cohorts)

    def of(self, cohorts: Ints) -> Floats:
        """(m,) the hunch of each cohort (m, K); zeros while nothing tells random sets apart."""
        if self._spread <= 1e-9:
            return np.zeros(len(cohorts))
        hunch: Floats = (self._raw(cohorts) - self._centre) / self._spread
        return hunch

    def _raw(self, cohorts: Ints) -> Floats:
        expected = np.repeat(self._base[None, :], len(cohorts), axis=0)
        for place in range(cohorts.shape[1]):
            expected += self._effects[cohorts[:, place]]
        squares = np.zeros(len(cohorts))
        for judge in range(expected.shape[1]):
            squares -= expected[:, judge] * expected[:, judge]
        squares /= max(expected.shape[1], 1)
        return squares


def loss_surrogate(
    cohorts: Ints, weights: Floats, losses: Floats, *, clients: int, judges: Ints, seed: int | str
) -> LossSurrogate:
    """The hunch that follows from the judges' losses after each cohort.

    Args:
        cohorts: (n, K) distinct cohorts played, n >= 1, rows sorted.
        weights: (n,) how often each was, > 0.
        losses: (n, J) mean loss of each judge; nan where it told none.
        clients: N.
        judges: (J,) their client numbers, sorted.
        seed: Fixes the random sets by which it is standardised.
    """
    known = ~np.isnan(losses)
    told = known.sum(axis=0)
    filled = np.where(known, losses, 0.0)
    mean = weighted_rows(filled, np.ones(len(losses))) / np.maximum(told, 1)
    rest = np.where(known, filled - mean, 0.0)  # a loss that is missing is as usual
    inside = membership(cohorts, judges)
    usual = inside.sum(axis=0) / len(cohorts)
    lean = inside - usual
    slope = math.fsum((lean * rest).ravel().tolist()) / max(math.fsum((lean * lean).ravel().tolist()), 1e-9)
    rest = rest - slope * lean
    everybody = np.unique(cohorts)
    played = membership(cohorts, everybody)
    gram = 1.0 + (played @ played.T) / cohorts.shape[1]
    gram[np.diag_indices(len(gram))] += _RIDGE / weights
    pull = Factor(gram).solve(rest)  # (n, J)
    effects = np.zeros((clients, judges.size))
    for cohort, row in zip(cohorts, pull, strict=True):
        effects[cohort] += row / cohorts.shape[1]
    effects[judges, np.arange(judges.size)] += slope
    return LossSurrogate(mean - slope * usual + weighted_rows(pull, np.ones(len(pull))), effects, cohorts, seed=seed)
