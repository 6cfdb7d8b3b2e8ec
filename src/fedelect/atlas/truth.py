"""True values of cohorts: in the table, and in the scenario that the table is a sample of.

- The table is a world of its own: a slot draws one of its S training seeds. The value of a cohort is exactly the mean
  over them (`table_truth`), so the best cohort, the gaps of the theorems and a run's regret are exact, too.
- Of the scenario it is a sample, and the largest of many noisy means is biased upwards. So the cohorts with the best
  means, the contenders, are trained again with fresh seeds. One half of these chooses the optimum; the other half,
  which had no part in the choice, values it and every other contender (`scenario_truth`). The chosen cohort's value is
  thus unbiased; as another may be better still, it is in expectation at most the true optimum.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fedelect.atlas.ranks import cohort_ranks
from fedelect.atlas.table import FEWEST_FRESH, Atlas
from fedelect.equations.intervals import Interval, mean_interval
from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class Truth:
    """The value of every cohort, and the best one.

    Attributes:
        clients: N.
        values: (C,) mean opinion of each cohort's model, by number of the cohort.
        best: Number of the optimal cohort.
        optimum: Its value; with an interval where that is an estimate.
        exact: Whether the values are exact; then no cohort has a higher value than the optimum.
    """

    clients: int
    values: Floats
    best: int
    optimum: Interval
    exact: bool = False

    @property
    def smallest_gap(self) -> float:
        """R_min, eq. `best0`: optimum minus the best lower value; nan if there is none."""
        losses = self._losses()
        return float(losses.min()) if losses.size else float("nan")

    @property
    def largest_gap(self) -> float:
        """R_max, eq. `worst0`: optimum minus the lowest value; nan if none is lower."""
        losses = self._losses()
        return float(losses.max()) if losses.size else float("nan")

    def of(self, cohorts: ArrayLike) -> Floats:
        """Values of cohorts: (..., K), members in ascending order -> (...)."""
        return np.asarray(self.values[cohort_ranks(cohorts, clients=self.clients)])

    def regret(self, cohorts: ArrayLike) -> Floats:
        """Pseudo-regret: sum over the slots up to t of (optimum - value of the cohort elected).

        By `table_truth` it never falls. By `scenario_truth` it may, even below 0: the valuing seeds may value another
        contender higher than the optimum, and the values of all other cohorts, from the table, include luck.

        Args:
            cohorts: (..., T, K) clients elected.

        Returns:
            (..., T)
        """
        return np.asarray(np.cumsum(self.optimum.mean - self.of(cohorts), axis=-1))

    def _losses(self) -> Floats:
        losses = self.optimum.mean - self.values
        return np.asarray(losses[losses > 0.0])


def table_truth(atlas: Atlas) -> Truth:
    """Exact values for a run on the atlas: every seed of the table is equally likely in every slot."""
    values = _over_seeds(atlas.seed_means())
    best = _first_best(values)
    return Truth(atlas.config.clients, values, best, Interval(float(values[best]), 0.0, atlas.seeds), exact=True)


def scenario_truth(atlas: Atlas) -> Truth:
    """Estimated values in the scenario.

    Contenders are valued by the valuing half of the fresh seeds, all others by their mean over the table.
    """
    values = _over_seeds(atlas.seed_means())
    choice = choose_and_value(atlas.fresh_means())
    values[atlas.contenders] = choice.values
    return Truth(atlas.config.clients, values, int(atlas.contenders[choice.best]), choice.optimum)


def level_contenders(atlas: Atlas, *, confidence: float = 0.95) -> Ints:
    """The contenders that the valuing half of the fresh seeds cannot tell from the optimum, itself left out.

    A contender can be told from it if the Student t interval of (optimum - contender) over these seeds, which all
    cohorts share, lies above 0. Each is judged by itself: of many that are truly worse a few are left undecided.

    Returns:
        (n,) numbers of cohorts, ascending.
    """
    means = atlas.fresh_means()
    best = choose_and_value(means).best
    behind = means[len(means) // 2 :, [best]] - means[len(means) // 2 :]
    intervals = [mean_interval(column, confidence=confidence) for column in behind.T]
    level = [interval.low is None or interval.low <= 0.0 for interval in intervals]
    return np.asarray(atlas.contenders[np.array(level) & (np.arange(len(level)) != best)])


def seed_sets_apart(atlas: Atlas) -> float:
    """Mean value of the contenders in the table minus that by the valuing half of the fresh seeds.

    Contenders were chosen by the table, partly by luck, which makes this positive. The seeds of either set also share
    some luck over all cohorts, of either sign. `scenario_truth` values all other cohorts by the table, so compared
    with contenders they are off by about this much.
    """
    fresh = atlas.fresh_means()
    return float(atlas.seed_means()[:, atlas.contenders].mean() - fresh[len(fresh) // 2 :].mean())


@dataclass(frozen=True, eq=False)
class Choice:
    """The best of some contenders.

    Attributes:
        best: Its place.
        optimum: Its value with a Student t interval over the seeds of the valuing half.
        values: (R,) every contender's value by that half.
    """

    best: int
    optimum: Interval
    values: Floats


def choose_and_value(means: Floats, *, confidence: float = 0.95) -> Choice:
    """Choose the best contender by the first half of the seeds, value it by the second.

    Of contenders that are equal by the first half, the first is chosen.

    Args:
        means: (F, R) value of each contender under each fresh seed, F >= 4.
        confidence: Level of the interval.
    """
    if len(means) < FEWEST_FRESH:
        raise ConfigurationError(f"two halves of fresh seeds need at least {FEWEST_FRESH} of them, got {len(means)}")
    half = len(means) // 2
    best = _first_best(_over_seeds(means[:half]))
    values = _over_seeds(means[half:])
    interval = mean_interval(means[half:, best], confidence=confidence)
    return Choice(best, replace(interval, mean=float(values[best])), values)


def contenders_of(table: Floats, count: int) -> Ints:
    """The `count` cohorts (all, if there are fewer) with the best means over the seeds: (S, C) -> (R,), ascending."""
    values = _over_seeds(table)
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")
    return np.sort(order[:count]).astype(np.int64)


def _over_seeds(means: Floats) -> Floats:
    """(S, C) -> (C,), rounded far below any relevant difference, so that ties are exact."""
    return np.asarray(np.round(means.mean(axis=0), 12))


def _first_best(values: Floats) -> int:
    return int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
