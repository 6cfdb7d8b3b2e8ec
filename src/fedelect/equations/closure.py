"""Closure: how much of the way from random over all clients to random over the unflawed ones a selector goes.

closure = (selector - random) / (oracle - random) of the final clean accuracy, as a ratio of means over paired trials:
0 is as good as random, 1 as good as the oracle, below 0 is harm. It says something only where the oracle is clearly
ahead (`is_clear`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedelect.equations.intervals import Interval, paired_difference
from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats, Ints

CLEAR_GAP = 0.01
"""Accuracy by which the oracle must be ahead of random, at the lower end of the interval: one point."""

RESAMPLES = 2000
"""How often trials are drawn anew for a bootstrap interval."""


@dataclass(frozen=True, eq=False)
class PairedFinals:
    """What a closure is computed from.

    Attributes:
        selector: (trials,) final clean accuracy of the selector.
        random: (trials,) that of random, in the same trials.
        oracle: (trials,) that of the oracle.
        resamples: (B, trials) trials of each bootstrap resample; see `resample_trials`.
    """

    selector: Floats
    random: Floats
    oracle: Floats
    resamples: Ints

    def __post_init__(self) -> None:
        shapes = [self.selector.shape, self.random.shape, self.oracle.shape, self.resamples.shape[1:]]
        if len(set(shapes)) > 1 or self.selector.ndim != 1 or not self.selector.size:
            raise ConfigurationError(f"a closure needs the same trials of all three, at least one; got shapes {shapes}")
        if not np.isfinite(self.selector + self.random + self.oracle).all():
            raise ConfigurationError("a closure needs a number for each trial; leave out the trials that lack one")


@dataclass(frozen=True)
class Closure:
    """A closure with its bootstrap interval.

    Attributes:
        value: The ratio of means.
        low: Lower end of the 95 % percentile interval.
        high: Upper end.
        trials: How many paired trials it is from.
    """

    value: float
    low: float
    high: float
    trials: int


def oracle_gap(random: Floats, oracle: Floats) -> Interval:
    """By how much final accuracy the oracle is ahead of random, paired by trial: (trials,), (trials,)."""
    return paired_difference(oracle, random)


def is_clear(gap: Interval) -> bool:
    """Whether the oracle is ahead by clearly more than `CLEAR_GAP`; never with fewer than two trials."""
    return gap.low is not None and gap.low > CLEAR_GAP


def resample_trials(trials: int, rng: np.random.Generator) -> Ints:
    """Draw trials with replacement: (`RESAMPLES`, trials) numbers of trials."""
    return rng.integers(0, trials, size=(RESAMPLES, trials))


def closure_samples(finals: PairedFinals) -> Floats:
    """The closure in each resample of the trials, (B,); nan where the oracle is not ahead in a resample."""
    return _ratios(finals, finals.resamples)


def closure(finals: PairedFinals) -> Closure:
    """The closure of a selector in one world."""
    return mean_closure([finals])


def mean_closure(worlds: Sequence[PairedFinals]) -> Closure:
    """The closure on average over worlds, each of which counts alike; trials are drawn anew within each world.

    Args:
        worlds: The selector's finals in each world, with equally many resamples.
    """
    if not worlds:
        raise ConfigurationError("a mean closure needs at least one world; got none")
    values = [_ratios(one, np.arange(one.selector.size)[np.newaxis])[0] for one in worlds]
    samples = np.mean([closure_samples(one) for one in worlds], axis=0)
    low, high = np.nanpercentile(samples, (2.5, 97.5)).tolist()
    return Closure(float(np.mean(values)), low, high, sum(one.selector.size for one in worlds))


def _ratios(finals: PairedFinals, resamples: Ints) -> Floats:
    gained = (finals.selector - finals.random)[resamples].mean(axis=1)
    possible = (finals.oracle - finals.random)[resamples].mean(axis=1)
    ratios = np.full(gained.shape, np.nan)
    np.divide(gained, possible, out=ratios, where=possible > 0)
    return ratios
