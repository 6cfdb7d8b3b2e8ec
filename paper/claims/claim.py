"""A claim of the paper as data: what it says, what we measure, and the rule that turns measurements into a verdict.

A claim has one or more checks. A check states that a measured mean lies in a range, and is judged by the mean's 95 %
interval over trials: it holds if the whole interval is inside the range, fails if the whole interval is outside, and
is undecided if the interval straddles an end of it. The claim holds if all checks hold, holds in part if some hold,
does not hold if none does and some fail, and is undecided otherwise. Where a check lacks results, the claim is not
measured yet. Checks that decide nothing are only shown.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedelect.equations.intervals import Interval
from paper.evidence import Evidence

Outcome = Literal["holds", "fails", "undecided", "not measured yet"]
Verdict = Literal["holds", "holds in part", "does not hold", "undecided", "not measured yet"]

Side = Literal["too low", "too high"]

VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "does not hold", "undecided", "not measured yet")

UNDECIDED = "The interval reaches over an end of the claimed range: more trials would tell."
"""Why a claim is undecided, where nothing better is known."""

REST_UNDECIDED = "No check fails. Where one is undecided its interval reaches over an end of the claimed range."
"""Added to the reason of a claim that holds in part, if none of its other checks fails."""

Measure = Callable[[Evidence], Interval | None]
"""Reads a mean with its interval off the results; None if they are not on file."""


@dataclass(frozen=True)
class Range:
    """Range in which a mean is claimed to be.

    Attributes:
        low: Lower end, excluded.
        high: Upper end, excluded.
    """

    low: float = -math.inf
    high: float = math.inf

    def judge(self, interval: Interval | None) -> Outcome:
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


def exactly(value: float, count: int = 1) -> Interval:
    """A figure without chance in it, such as a count; `count` is what it was counted over."""
    return Interval(float(value), 0.0, count)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One measured figure of a claim.

    Attributes:
        name: What is measured.
        measure: How.
        claimed: The range in the paper.
        digits: Decimals to print.
        decides: Whether the verdict depends on it.
        over: What the mean is over.
    """

    name: str
    measure: Measure
    claimed: Range
    digits: int = 4
    decides: bool = True
    over: str = "trials"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper that can be tested.

    Attributes:
        key: Unique name; begins with the label of the figure, table or theorem.
        where: The experiment that measures it.
        says: What the paper says, in our words.
        paper: The paper's figure, or "-" where it states none.
        checks: How it is tested.
        why: By verdict, why we think it comes out so; for every verdict that its checks can give, but "undecided" may
            be left to `UNDECIDED`. "too low" and "too high" go before "does not hold" where all that fails is on that
            side of its range.
    """

    key: str
    where: str
    says: str
    paper: str
    checks: tuple[Check, ...]
    why: Mapping[Verdict | Side, str]

    @property
    def command(self) -> str:
        """What makes the results it is judged by."""
        return f"python -m paper {self.where} --preset paper"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim judged by the results on file.

    Attributes:
        claim: The claim.
        measured: One figure for each check; None where results are missing.
        outcomes: One for each check.
        verdict: Of all checks together.
    """

    claim: Claim
    measured: tuple[Interval | None, ...]
    outcomes: tuple[Outcome, ...]
    verdict: Verdict

    @property
    def why(self) -> str:
        """Why we think it came out so; empty only where nothing is measured yet."""
        why = self.claim.why
        if self.verdict == "holds in part" and "fails" not in select_deciding(self.claim, self.outcomes):
            return f"{why['holds']} {REST_UNDECIDED}"
        if self.verdict == "does not hold" and self.side is not None and self.side in why:
            return why[self.side]
        return why.get(self.verdict, UNDECIDED if self.verdict == "undecided" else "")

    @property
    def side(self) -> Side | None:
        """On which side of its range everything is that fails; None if nothing does, or on both."""
        failing = [
            (check.claimed, measured)
            for check, measured, outcome in zip(self.claim.checks, self.measured, self.outcomes, strict=True)
            if check.decides and outcome == "fails" and measured is not None
        ]
        if failing and all(measured.mean <= claimed.low for claimed, measured in failing):
            return "too low"
        if failing and all(measured.mean >= claimed.high for claimed, measured in failing):
            return "too high"
        return None


def assess(claim: Claim, evidence: Evidence) -> Finding:
    """Judge a claim by the results on file."""
    measured = tuple(check.measure(evidence) for check in claim.checks)
    outcomes = tuple(check.claimed.judge(one) for check, one in zip(claim.checks, measured, strict=True))
    return Finding(
        claim=claim, measured=measured, outcomes=outcomes, verdict=verdict_of(select_deciding(claim, outcomes))
    )


def select_deciding(claim: Claim, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of the checks that the verdict depends on."""
    return [outcome for check, outcome in zip(claim.checks, outcomes, strict=True) if check.decides]


def verdict_of(outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict on a claim from the outcomes of its checks, by the rule of this module.

    >>> verdict_of(["holds", "fails"]), verdict_of(["fails", "fails"]), verdict_of(["undecided", "fails"])
    ('holds in part', 'does not hold', 'does not hold')
    """
    if not outcomes or "not measured yet" in outcomes:
        return "not measured yet"
    if all(outcome == "holds" for outcome in outcomes):
        return "holds"
    if "holds" in outcomes:
        return "holds in part"
    return "does not hold" if "fails" in outcomes else "undecided"


def _trim(value: float, digits: int) -> str:
    return f"{value:g}" if abs(value) < 10.0**-digits or value == round(value) else f"{value:.{digits}f}"
