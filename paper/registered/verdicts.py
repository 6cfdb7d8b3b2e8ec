"""Verdicts of the pre-registered run, by the rules of the registration, from the drawings that are complete."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fedelect.equations import metrics
from fedelect.vocabulary import Floats
from paper import averages
from paper.blocks import Curves
from paper.calibration import BEST_KNOWN
from paper.ranges import near
from paper.registered.drawings import CompleteDrawing, complete_drawing, complete_drawings, data_digest
from paper.registered.intervals import TwoLevelMean, interval_over_drawings
from paper.registered.registration import RegisteredNumber, RegisteredWorld, Registration
from paper.registered.run import parts_of, parts_of_check
from paper.scale import map_opinions

NumberVerdict = Literal["agrees", "differs", "open"]
ReadingVerdict = Literal["supported", "contradicted", "left open"]

_WORDS: dict[str, NumberVerdict] = {"holds": "agrees", "fails": "differs", "undecided": "open"}


@dataclass(frozen=True, kw_only=True)
class NumberResult:
    """One of the twelve numbers.

    Attributes:
        number: The number.
        reading: The reading's, on the paper's scale.
        as_printed: The same of the algorithm as printed.
        unmapped: The reading's without the map; decides nothing.
        verdict: By the interval.
        nearer: Whether the reading is nearer to the paper than as printed.
    """

    number: RegisteredNumber
    reading: TwoLevelMean
    as_printed: TwoLevelMean
    unmapped: TwoLevelMean
    verdict: NumberVerdict
    nearer: bool


@dataclass(frozen=True, kw_only=True)
class WorldResult:
    """A world's six numbers and the verdict on its reading.

    Attributes:
        world: The world.
        drawings: The complete drawings, of `planned`.
        planned: How many drawings there will be.
        numbers: None if no drawing is complete.
        verdict: On the reading; interim while drawings are missing. None if no drawing is complete. That of one
            drawing, which has no interval, is not told.
    """

    world: RegisteredWorld
    drawings: tuple[CompleteDrawing, ...]
    planned: int
    numbers: tuple[NumberResult, ...]
    verdict: ReadingVerdict | None

    @property
    def interim(self) -> bool:
        """Whether drawings are missing."""
        return len(self.drawings) < self.planned

    @property
    def verdict_text(self) -> str:
        """The verdict in words, with the number of drawings while some are missing."""
        if len(self.drawings) < 2:
            alone = ", and one has no interval" if self.drawings else ""
            return f"no verdict yet ({len(self.drawings)} of {self.planned} drawings complete{alone})"
        said = f"**{self.verdict}**"
        return f"{said}, interim: {len(self.drawings)} of {self.planned} drawings" if self.interim else said


@dataclass(frozen=True, kw_only=True)
class GradientResult:
    """What the other gradient changes: average accuracy at the end of the check, on the paper's scale.

    Each is the mean over the drawings of the check of the mean over trials. It decides nothing.

    Attributes:
        drawings: Seeds of the drawings.
        slots: T.
        reading: The reading, with the gradient as a mean over the batch, and as a sum.
        as_printed: The same of the algorithm as printed.
    """

    drawings: tuple[int, ...]
    slots: int
    reading: tuple[float, float]
    as_printed: tuple[float, float]


def judge_registered(registration: Registration, root: Path) -> list[WorldResult]:
    """Judge both readings by what is on file below `root`."""
    results = []
    for world in registration.worlds:
        drawings = complete_drawings(world, registration, root)
        numbers = tuple(_result(one, world, drawings, registration.confidence) for one in world.numbers if drawings)
        verdict = judge_reading(numbers, registration) if numbers else None
        results.append(
            WorldResult(
                world=world,
                drawings=drawings,
                planned=len(registration.drawings),
                numbers=numbers,
                verdict=verdict,
            )
        )
    return results


def compare_gradients(registration: Registration, root: Path) -> GradientResult | None:
    """Compare the two gradients by what is on file below `root`; None while any of it is missing."""
    check, world, digest = registration.gradient, registration.worlds[0], data_digest(root)
    values: dict[str, list[float]] = {}
    for drawing in check.drawings:
        for gradient, parts in (("mean", parts_of(world, drawing)), ("sum", parts_of_check(registration, drawing))):
            found = complete_drawing(parts, drawing, root, digest)
            if found is None:
                return None
            for role, curves in (("reading", found.reading), ("as printed", found.as_printed)):
                mapped = map_opinions(curves.opinions[:, : check.slots], ours=found.baselines, aim=world.aim)
                average = averages.average_accuracy(mapped, untrained=curves.untrained, first_term=averages.FIRST_TERM)
                values.setdefault(f"{role}, {gradient}", []).append(float(average[:, -1].mean()))
    means = {name: float(np.mean(some)) for name, some in values.items()}
    return GradientResult(
        drawings=tuple(check.drawings),
        slots=check.slots,
        reading=(means["reading, mean"], means["reading, sum"]),
        as_printed=(means["as printed, mean"], means["as printed, sum"]),
    )


def judge_reading(numbers: Sequence[NumberResult], registration: Registration) -> ReadingVerdict:
    """The verdict on a reading from its numbers, by the registered rule."""
    differing = sum(one.verdict == "differs" for one in numbers)
    farther = sum(not one.nearer for one in numbers)
    decisive = numbers[registration.decisive]
    if decisive.verdict == "differs" or max(differing, farther) >= registration.contradicted_by:
        return "contradicted"
    within = abs(decisive.reading.interval.mean - decisive.number.paper) <= decisive.number.tolerance
    most = registration.most_differing
    return "supported" if within and differing <= most and farther <= most else "left open"


def read_number(number: RegisteredNumber, opinions: Floats, curves: Curves) -> Floats:
    """One value for each trial. Shape (R,).

    Args:
        number: What to read off.
        opinions: (R, T) mean opinions, mapped or not.
        curves: Whose cohorts were elected.
    """
    if number.measured == "elections":
        return np.asarray(np.isin(curves.cohorts[:, : number.slots], BEST_KNOWN).sum(axis=(1, 2)) / len(BEST_KNOWN))
    average = averages.average_accuracy(
        opinions[:, : number.slots], untrained=curves.untrained, first_term=averages.FIRST_TERM
    )
    if number.measured == "average accuracy":
        return np.asarray(average[:, -1])
    assert number.target is not None
    when = metrics.time_to_target(average, number.target)
    return when.slot.astype(np.float64) if number.measured == "slots to target" else when.value


def _result(
    number: RegisteredNumber, world: RegisteredWorld, drawings: Sequence[CompleteDrawing], confidence: float
) -> NumberResult:
    def mean(curves: Sequence[Curves], *, mapped: bool = True) -> TwoLevelMean:
        values = []
        for one, drawing in zip(curves, drawings, strict=True):
            opinions = map_opinions(one.opinions, ours=drawing.baselines, aim=world.aim) if mapped else one.opinions
            values.append(read_number(number, opinions, one))
        return interval_over_drawings(values, confidence=confidence)

    readings = [drawing.reading for drawing in drawings]
    reading, printed = mean(readings), mean([drawing.as_printed for drawing in drawings])
    return NumberResult(
        number=number,
        reading=reading,
        as_printed=printed,
        unmapped=mean(readings, mapped=False),
        verdict=_WORDS[near(number.paper, number.tolerance).judge(reading.interval)],
        nearer=abs(reading.interval.mean - number.paper) < abs(printed.interval.mean - number.paper),
    )
