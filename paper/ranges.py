"""Ranges in which the paper has a figure, judged by intervals."""

import math
from dataclasses import dataclass
from typing import Literal

from fedelect.equations.intervals import Interval

CheckOutcome = Literal["holds", "fails", "undecided", "not measured yet"]


@dataclass(frozen=True)
class Range:
    """Range in which a mean is claimed to be.

    Attributes:
        low: Lower end, excluded.
        high: Upper end, excluded.
    """

    low: float = -math.inf
    high: float = math.inf

    def judge(self, interval: Interval | None) -> CheckOutcome:
        """The outcome, by the rule of this module. A single trial has no interval and decides nothing."""
        if interval is None or math.isnan(interval.mean):
            return "not measured yet"
        if interval.low is None or interval.high is None:
            return "undecided"
        if self.low < interval.low and interval.high < self.high:
            return "holds"
        if interval.high <= self.low or interval.low >= self.high:
            return "fails"
        return "undecided"

    def text(self, digits: int) -> str:
        """The range in words, such as "above 0" or "0.8557 to 0.8757"."""
        if self.low == -math.inf and self.high == math.inf:
            return "any"
        if self.high == math.inf:
            return f"above {_trim(self.low, digits)}"
        if self.low == -math.inf:
            return f"below {_trim(self.high, digits)}"
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"


def above(bound: float) -> Range:
    """The claim that a mean is above `bound`."""
    return Range(low=bound)


def below(bound: float) -> Range:
    """The claim that a mean is below `bound`."""
    return Range(high=bound)


def near(value: float, tolerance: float) -> Range:
    """The claim that a mean is within `tolerance` of `value`."""
    return Range(value - tolerance, value + tolerance)


def _trim(value: float, digits: int) -> str:
    return f"{value:g}" if abs(value) < 10.0**-digits or value == round(value) else f"{value:.{digits}f}"
