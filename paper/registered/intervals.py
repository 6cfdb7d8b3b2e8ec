"""Intervals over drawings and trials: a mean with two levels of chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedelect.equations.intervals import Interval, student_t_quantile
from fedelect.errors import ConfigurationError


@dataclass(frozen=True)
class TwoLevelMean:
    """A mean over drawings and trials, by a model with a random effect of the drawing.

    Attributes:
        interval: Mean of the drawings' means, with its interval; `count` is the number of drawings.
        between: Standard deviation between drawings, without what chance between trials adds to their means.
        within: Standard deviation between trials of one drawing; nan if no drawing has two.
        by_drawing: Mean of each drawing.
    """

    interval: Interval
    between: float
    within: float
    by_drawing: tuple[float, ...]


def interval_over_drawings(drawings: Sequence[ArrayLike], *, confidence: float = 0.95) -> TwoLevelMean:
    """Mean over drawings and trials with its interval, in the model value = mean + effect of drawing + error of trial.

    The drawing is the unit. Where all have equally many trials, a drawing's mean has the variance between^2 + within^2
    / trials, the same for all. The drawings' means with Student's t on D - 1 degrees of freedom then give the exact
    interval of the model. Where they have not, every drawing counts alike all the same.

    Args:
        drawings: One array (trials,) for each drawing; nan is left out.
        confidence: Of the interval. One drawing alone has none.

    Raises:
        ConfigurationError: There is no drawing, or one without a value.
    """
    values = [_present(drawing) for drawing in drawings]
    if not values:
        raise ConfigurationError("an interval over drawings needs at least one drawing, got none")
    means = np.array([one.mean() for one in values])
    degrees = sum(one.size - 1 for one in values)
    squares = math.fsum(float(np.square(one - one.mean()).sum()) for one in values)
    within = math.sqrt(squares / degrees) if degrees else math.nan
    half, between = None, math.nan
    if len(values) > 1:
        variance = float(means.var(ddof=1))
        half = student_t_quantile((1.0 + confidence) / 2.0, len(values) - 1) * math.sqrt(variance / len(values))
        noise = within**2 * float(np.mean([1.0 / one.size for one in values])) if degrees else 0.0
        between = math.sqrt(max(variance - noise, 0.0))
    return TwoLevelMean(Interval(float(means.mean()), half, len(values)), between, within, tuple(means.tolist()))


def interval_of_one_drawing(trials: Interval, spread: TwoLevelMean) -> Interval:
    """Interval over drawings of a mean that was measured in one drawing, by the spread between other drawings.

    One drawing is off the mean over drawings by their standard deviation, so its interval is sqrt(D) times as wide as
    that of the mean of D drawings; the interval over its own trials is added as squares are. `spread` contains chance
    between few trials too: the interval is rather too wide than too narrow.

    Args:
        trials: The mean with its interval over trials of the one drawing.
        spread: The same figure, or the nearest that was measured, in D other drawings.

    Returns:
        The same mean; without an interval where either has none. `count` is D.
    """
    count = spread.interval.count
    if trials.half_width is None or spread.interval.half_width is None:
        return Interval(trials.mean, None, count)
    return Interval(trials.mean, math.hypot(trials.half_width, math.sqrt(count) * spread.interval.half_width), count)


def _present(drawing: ArrayLike) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    array = np.asarray(drawing, dtype=np.float64)
    if array.ndim != 1:
        raise ConfigurationError(f"a drawing needs one value for each trial, got shape {array.shape}")
    present = array[~np.isnan(array)]
    if not present.size:
        raise ConfigurationError("a drawing has no value; leave out drawings that are not complete")
    return present
