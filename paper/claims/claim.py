"""A claim of the paper as data: what it says, what we measure, and the rule that turns measurements into a verdict.

A claim has one or more checks. A check states that a measured mean lies in a range, and is judged by the mean's 95 %
interval. The interval is over drawings of the data where the check says how, else over trials of one drawing. It holds
if the whole interval is inside the range, fails if the whole interval is outside, and is undecided if the interval
straddles an end of it. The claim holds if all checks hold, holds in part if some hold, does not hold if none does and
some fail, and is undecided otherwise. Where a check lacks results, the claim is not measured yet. Checks that decide
nothing are only shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedelect.equations.intervals import Interval
from paper.evidence import Evidence
from paper.ranges import CheckOutcome, Range
from paper.registered.drawings import Drawings

Verdict = Literal["holds", "holds in part", "does not hold", "undecided", "not measured yet"]

Side = Literal["too low", "too high"]

VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "does not hold", "undecided", "not measured yet")

UNDECIDED = "The interval reaches over an end of the claimed range: more trials would tell."
"""Why a claim is undecided, where nothing better is known."""

OPEN_OVER_DRAWINGS = "The interval over drawings reaches over an end of the claimed range: more drawings would tell."
"""The same, where that interval is over drawings."""

REST_UNDECIDED = "No check fails. Where one is undecided its interval reaches over an end of the claimed range."
"""Added to the reason of a claim that holds in part, if none of its other checks fails."""

Measure = Callable[[Evidence], Interval | None]
"""Reads a mean with its interval off the results; None if they are not on file."""


def exactly(value: float, count: int = 1) -> Interval:
    """A figure without chance in it, such as a count; `count` is what it was counted over."""
    return Interval(float(value), 0.0, count)


@dataclass(frozen=True, kw_only=True)
class OverDrawings:
    """How a check is judged over drawings of the data.

    Attributes:
        told: What the interval is over, to print before it; {} stands for the number of drawings.
        interval: The interval that decides, from that over trials of the record's one drawing; it has no half width
            where fewer than two drawings are at hand.
    """

    told: str
    interval: Callable[[Interval, Drawings], Interval]


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
        drawn: How it is judged over drawings; None for a statement on the one drawing.
    """

    name: str
    measure: Measure
    claimed: Range
    digits: int = 4
    decides: bool = True
    over: str = "trials"
    drawn: OverDrawings | None = None


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
        judged: The interval by which each check is judged: the same, or that over drawings.
        outcomes: One for each check.
        verdict: Of all checks together.
    """

    claim: Claim
    measured: tuple[Interval | None, ...]
    judged: tuple[Interval | None, ...]
    outcomes: tuple[CheckOutcome, ...]
    verdict: Verdict

    @property
    def why(self) -> str:
        """Why we think it came out so; empty only where nothing is measured yet."""
        why = self.claim.why
        if self.verdict == "holds in part" and "fails" not in select_deciding(self.claim, self.outcomes):
            return f"{why['holds']} {REST_UNDECIDED}"
        if self.verdict == "does not hold" and self.side is not None and self.side in why:
            return why[self.side]
        return why.get(self.verdict, self._undecided if self.verdict == "undecided" else "")

    @property
    def _undecided(self) -> str:
        checks = zip(self.claim.checks, self.outcomes, strict=True)
        drawn = any(check.drawn is not None for check, outcome in checks if check.decides and outcome == "undecided")
        return OPEN_OVER_DRAWINGS if drawn else UNDECIDED

    @property
    def side(self) -> Side | None:
        """On which side of its range everything is that fails; None if nothing does, or on both."""
        failing = [
            (check.claimed, judged)
            for check, judged, outcome in zip(self.claim.checks, self.judged, self.outcomes, strict=True)
            if check.decides and outcome == "fails" and judged is not None
        ]
        if failing and all(judged.mean <= claimed.low for claimed, judged in failing):
            return "too low"
        if failing and all(judged.mean >= claimed.high for claimed, judged in failing):
            return "too high"
        return None


def assess(claim: Claim, evidence: Evidence) -> Finding:
    """Judge a claim by the results on file."""
    measured = tuple(check.measure(evidence) for check in claim.checks)
    judged = tuple(
        one if one is None or check.drawn is None else check.drawn.interval(one, evidence.drawings)
        for check, one in zip(claim.checks, measured, strict=True)
    )
    outcomes = tuple(check.claimed.judge(one) for check, one in zip(claim.checks, judged, strict=True))
    verdict = verdict_of(select_deciding(claim, outcomes))
    return Finding(claim=claim, measured=measured, judged=judged, outcomes=outcomes, verdict=verdict)


def select_deciding(claim: Claim, outcomes: Sequence[CheckOutcome]) -> list[CheckOutcome]:
    """The outcomes of the checks that the verdict depends on."""
    return [outcome for check, outcome in zip(claim.checks, outcomes, strict=True) if check.decides]


def verdict_of(outcomes: Sequence[CheckOutcome]) -> Verdict:
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
