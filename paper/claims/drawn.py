"""Checks judged over drawings of the data, by the drawings of the pre-registered run.

Where that run measured the figure itself, its mean over drawings decides, on the paper's scale, with its interval.
Elsewhere the record's own mean decides, with an interval that contains the spread between drawings of the nearest
figure that was measured.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from fedelect.equations.intervals import Interval
from fedelect.vocabulary import Floats
from paper import averages
from paper.blocks import Curves
from paper.claims.claim import OverDrawings
from paper.claims.measures import CurveStatistic
from paper.evidence import final_accuracy
from paper.registered.drawings import CompleteDrawing, Drawings, DrawnWorld
from paper.registered.intervals import interval_of_one_drawing, interval_over_drawings
from paper.scale import map_opinions

WorldName = Literal["fa", "da"]
"""World of Quick-Init UCB, and of BP-UCB."""

SLOTS = 200

_Values = Sequence[Floats]
"""For each drawing one value for each trial."""


def measure_over_drawings(
    world: WorldName, reading: CurveStatistic = final_accuracy, *, slots: int = SLOTS
) -> OverDrawings:
    """Judge by a reading of the world's algorithm as printed, in each drawing, on the paper's scale.

    Args:
        world: The world.
        reading: One value for each trial.
        slots: T.
    """
    return _by_mean("over {} drawings", lambda drawings: _read(drawings, world, reading, slots))


def gain_over_drawings(world: WorldName, *, told: str = "") -> OverDrawings:
    """Judge by the average accuracy of the world's algorithm as printed less that of random selection, at T = 200."""

    def values(drawings: Drawings) -> _Values:
        return [one - _average(drawings[world].aim.random) for one in _read(drawings, world, final_accuracy, SLOTS)]

    return _by_mean(f"{told} over {{}} drawings".strip(), values)


def gap_over_drawings(world: WorldName) -> OverDrawings:
    """Judge by the average accuracy of clients 1 to 5 less that of the world's algorithm as printed, at T = 200."""

    def values(drawings: Drawings) -> _Values:
        return [_average(drawings[world].aim.fixed) - one for one in _read(drawings, world, final_accuracy, SLOTS)]

    return _by_mean("over {} drawings", values)


def difference_over_drawings(*, sign: Literal[1, -1]) -> OverDrawings:
    """Judge by Quick-Init UCB less BP-UCB (sign 1) or the reverse (-1), as printed, each on the scale of its framework.

    The two worlds of a drawing share its seed, but not its data.
    """

    def values(drawings: Drawings) -> _Values:
        quick, belief = (
            dict(
                zip(
                    (one.drawing for one in drawings[world].drawings),
                    _read(drawings, world, final_accuracy, SLOTS),
                    strict=True,
                )
            )
            for world in ("fa", "da")
        )
        return [sign * (quick[seed] - belief[seed].mean()) for seed in quick if seed in belief]

    return _by_mean("over {} drawings", values)


def spread_of_baseline(name: Literal["fixed", "random"]) -> OverDrawings:
    """Judge the record's figure of a baseline with the spread of that baseline between drawings, as trained."""
    told = {"fixed": "clients 1 to 5", "random": "random selection"}[name]
    return _by_spread(told, lambda one: np.nanmean(getattr(one, name).opinions, axis=1))


def spread_of_sets() -> OverDrawings:
    """Judge a difference of sets of clients that no other drawing has with the spread of clients 1 to 5 less random."""
    return _by_spread(
        "clients 1 to 5 less random selection, the nearest that was measured",
        lambda one: one.baselines.fixed - np.nanmean(one.random.opinions, axis=1),
    )


def _by_mean(told: str, values: Callable[[Drawings], _Values]) -> OverDrawings:
    def interval(trials: Interval, drawings: Drawings) -> Interval:
        found = values(drawings) if drawings else []
        return interval_over_drawings(found).interval if found else Interval(trials.mean, None, 0)

    return OverDrawings(told=told, interval=interval)


def _by_spread(told: str, read: Callable[[CompleteDrawing], Floats]) -> OverDrawings:
    def interval(trials: Interval, drawings: Drawings) -> Interval:
        found = [read(one) for one in drawings["fa"].drawings] if drawings else []
        if not found:
            return Interval(trials.mean, None, 0)
        return interval_of_one_drawing(trials, interval_over_drawings(found))

    return OverDrawings(told=f"with the spread between {{}} drawings of {told}", interval=interval)


def _read(drawings: Drawings, world: WorldName, reading: CurveStatistic, slots: int) -> _Values:
    own = drawings[world]
    return [reading(_on_papers_scale(one, own, slots)) for one in own.drawings]


def _on_papers_scale(drawing: CompleteDrawing, world: DrawnWorld, slots: int) -> Curves:
    """The algorithm as printed, its opinions mapped by the drawing's baselines, cut to `slots` slots."""
    curves = drawing.as_printed
    mapped = map_opinions(curves.opinions[:, :slots], ours=drawing.baselines, aim=world.aim)
    return dataclasses.replace(curves, opinions=mapped, cohorts=curves.cohorts[:, :slots])


def _average(opinion: float) -> float:
    """Average accuracy at T = 200 where every slot has this opinion."""
    flat = np.full((1, SLOTS), opinion)
    average = averages.average_accuracy(flat, untrained=math.nan, first_term=averages.FIRST_TERM)
    return float(average[0, -1])
