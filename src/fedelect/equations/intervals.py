"""Means over trials, and how far to trust them: Student's t intervals without scipy."""

import functools
import math
import statistics
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats

_SERIES_LIMIT = 1000


@dataclass(frozen=True)
class Interval:
    """A mean over trials with its confidence interval.

    Attributes:
        mean: Mean of the values present; nan if there are none.
        half_width: Half the width of the interval; None when fewer than two values leave it unknown.
        count: How many values were present.
    """

    mean: float
    half_width: float | None
    count: int

    @property
    def low(self) -> float | None:
        """Lower end of the interval, or None."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the interval, or None."""
        return None if self.half_width is None else self.mean + self.half_width


@dataclass(frozen=True, eq=False)
class Band:
    """A mean curve with its interval. Attributes have shape (...), the shape of the values without axis 0.

    Attributes:
        mean: Mean over trials of the values present; nan where there are none.
        half_width: Half the width of the interval; nan where fewer than two values are present.
        count: How many values are present.
    """

    mean: Floats
    half_width: Floats
    count: NDArray[np.int64]


def mean_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Mean and Student t interval of independent values, one for each trial. Shape (trials,); nan is left out."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ConfigurationError(f"an interval needs one value for each trial; got shape {array.shape}")
    band = mean_band(array, confidence=confidence)
    half = float(band.half_width)
    return Interval(float(band.mean), None if math.isnan(half) else half, int(band.count))


def paired_difference(values: ArrayLike, reference: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Mean of values - reference with a Student t interval, pair by pair: (trials,), (trials,).

    Pairs share what is not of interest, the luck of their trial, so the interval is narrower than that of a
    difference of two means.
    """
    ours, theirs = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if ours.shape != theirs.shape:
        raise ConfigurationError(f"pairs need equally many values, got shapes {ours.shape} and {theirs.shape}")
    return mean_interval(ours - theirs, confidence=confidence)


def share_interval(hits: int, count: int, *, confidence: float = 0.95) -> Interval:
    """Share of hits with an interval that does not vanish at 0 or 1: Wilson's, widened to be even on both sides.

    >>> share_interval(0, 100).high < 0.04 < share_interval(0, 50).high
    True
    """
    if not 0 <= hits <= count or not count:
        raise ConfigurationError(f"hits must be from 0 to a count of at least 1, got {hits} of {count}")
    z = statistics.NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    share = hits / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    return Interval(share, max(share - (centre - reach), centre + reach - share), count)


def mean_band(values: Floats, *, confidence: float = 0.95) -> Band:
    """Mean and Student t interval over axis 0. Shapes: (trials, ...) -> three arrays (...); nan is left out."""
    present = ~np.isnan(values)
    count = present.sum(axis=0)
    total = np.where(present, values, 0.0).sum(axis=0)
    mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    squares = np.square(np.where(present, values - mean, 0.0)).sum(axis=0)
    degrees = np.maximum(count - 1, 1)
    critical = np.full(count.shape, np.nan)
    for trials in np.unique(count[count > 1]).tolist():
        critical[count == trials] = student_t_quantile((1.0 + confidence) / 2.0, trials - 1)
    half_width = critical * np.sqrt(squares / degrees / np.maximum(count, 1))
    return Band(mean, half_width, np.asarray(count, dtype=np.int64))


@functools.lru_cache(maxsize=1024)
def student_t_quantile(probability: float, degrees: int) -> float:
    """The value that a Student t variable stays below with `probability`.

    Good to about ten digits. With up to 1000 degrees of freedom the finite trigonometric series of the
    distribution function is inverted by bisection; beyond, the Cornish-Fisher expansion around the normal
    quantile is as good.

    Args:
        probability: Between 0 and 1, both excluded.
        degrees: Degrees of freedom, at least 1.

    >>> round(student_t_quantile(0.975, 9), 4)
    2.2622
    """
    if not 0.0 < probability < 1.0:
        raise ConfigurationError(f"a probability between 0 and 1 is needed (both excluded), got {probability!r}")
    if degrees < 1:
        raise ConfigurationError(f"degrees of freedom must be at least 1, got {degrees!r}")
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, degrees)
    central = 2.0 * probability - 1.0
    return _expand(probability, degrees) if degrees > _SERIES_LIMIT else _bisect(central, degrees)


def _bisect(central: float, degrees: int) -> float:
    # In the angle theta = atan(t / sqrt(degrees)) the search interval is bounded, whatever the tail.
    low, high = 0.0, math.pi / 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        if _probability_within(middle, degrees) < central:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def _probability_within(theta: float, degrees: int) -> float:
    """P(|t| <= sqrt(degrees) tan theta): a finite series in cos theta for whole degrees of freedom."""
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = degrees % 2 == 1
    term = cosine if odd else 1.0
    terms = [term] if degrees > 1 else []
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * ((k - 1) / k)
        terms.append(term)
    total = sine * math.fsum(terms)
    return (theta + total) * 2.0 / math.pi if odd else total


def _expand(probability: float, degrees: int) -> float:
    z = statistics.NormalDist().inv_cdf(probability)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / degrees + second / degrees**2 + third / degrees**3
