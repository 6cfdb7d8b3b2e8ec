"""Claims about `1_2`: how many clients train, and which."""

import itertools
from typing import Literal

import numpy as np

from fedelect.equations.intervals import Interval, mean_interval
from fedelect.vocabulary import Floats
from paper import published
from paper.catalogue import BUDGETS, LAST_FIVE, OPTIMAL, RANDOM, random_of
from paper.claims.claim import Check, Claim, Measure, exactly
from paper.claims.drawn import spread_of_sets
from paper.claims.measures import accuracy_gain
from paper.evidence import Evidence
from paper.measurements.losses import Losses
from paper.measurements.optimum import Optimum
from paper.ranges import Range, above, below, near

SLOTS = 50
ONE_POINT = 0.01
"""Accuracies that differ by less are called alike."""

CONVERGED = 0.01
"""A loss that falls by less than this share of itself in a round has converged."""

NO_OTHER_DRAWING = (
    "Left open: no other drawing has this figure, and one drawing, with the spread between drawings of the nearest "
    "figure that was measured, does not tell."
)

Loss = Literal["objective", "selected"]
"""Which loss: the mean over all clients, or that of those who train."""


def last_fall(budget: int) -> Measure:
    """By what share of itself the loss over all clients falls in the last round."""

    def measure(evidence: Evidence) -> Interval | None:
        losses = _losses(evidence, budget, "objective")
        return None if losses is None else mean_interval((losses[:, -2] - losses[:, -1]) / losses[:, -2])

    return measure


def loss_gain(fewer: int, more: int, kind: Loss) -> Measure:
    """By how much the last round's loss with `more` clients is below that with `fewer`, trial by trial."""

    def measure(evidence: Evidence) -> Interval | None:
        few, many = _losses(evidence, fewer, kind), _losses(evidence, more, kind)
        return None if few is None or many is None else mean_interval(few[:, -1] - many[:, -1])

    return measure


def _losses(evidence: Evidence, budget: int, kind: Loss) -> Floats | None:
    """(trials, rounds), or None if they are not on file."""
    measured = evidence.measurement("losses", Losses)
    if measured is None or budget not in measured.losses:
        return None
    return np.array([getattr(one, kind) for one in measured.losses[budget]], dtype=np.float64)


def best_other_less_first_five(evidence: Evidence) -> Interval | None:
    """By how much the best other cohort is above clients 1 to 5, over the trainings that did not choose it."""
    measured = evidence.measurement("optimum", Optimum)
    if measured is None:
        return None
    return mean_interval(np.array(measured.best_other) - np.array(measured.first_five))


def level_with_first_five(evidence: Evidence) -> Interval | None:
    """How many cohorts are not shown to be worse than clients 1 to 5."""
    measured = evidence.measurement("optimum", Optimum)
    return None if measured is None else exactly(measured.not_worse, measured.others)


_STEPS = tuple(itertools.pairwise(BUDGETS))
_LOSSES: dict[Loss, str] = {"objective": "over all clients", "selected": "over those who train"}

CLAIMS = (
    Claim(
        key="1_2.a.converged",
        where="1_2",
        says="The training loss of every number of clients has converged after 15 rounds.",
        paper=f"{published.ROUNDS_TO_CONVERGE} rounds",
        checks=tuple(
            Check(name=f"fall in round 15, {k} clients, share", measure=last_fall(k), claimed=near(0.0, CONVERGED))
            for k in BUDGETS
        ),
        why={
            "holds": "The paper states no criterion; ours is a fall of less than 1 % of the loss in the last round.",
            "holds in part": "By our criterion (less than 1 % in the last round) only some numbers of clients are "
            "there; the paper states none.",
            "does not hold": "With a step of 1e-7 the loss still falls by more than 1 % in the last round; the paper "
            "states no criterion.",
        },
    ),
    Claim(
        key="1_2.a.more",
        where="1_2",
        says="The more clients train, the lower the training loss.",
        paper="-",
        checks=tuple(
            Check(
                name=f"loss {name}: {few} less {many} clients",
                measure=loss_gain(few, many, kind),
                claimed=above(0.0),
                decides=kind == "objective",
            )
            for kind, name in _LOSSES.items()
            for few, many in _STEPS
        ),
        why={
            "holds": "Judged by the loss over all clients, which is what federated learning minimises in the paper: "
            "the more of them train, the less of the data is left out.",
            "holds in part": "Judged by the loss over all clients. Once most of the data take part, more clients "
            "change little.",
            "does not hold": "Judged by the loss over all clients: who trains matters more than how many.",
        },
    ),
    Claim(
        key="1_2.b.more",
        where="1_2",
        says="The more clients train, the higher the accuracy.",
        paper="-",
        checks=tuple(
            Check(
                name=f"gain of {many} over {few} clients",
                measure=accuracy_gain(random_of(many), random_of(few), slots=SLOTS),
                claimed=above(0.0),
            )
            for few, many in _STEPS
        ),
        why={
            "holds": "The more clients are drawn at random, the more evenly their data cover the classes.",
            "holds in part": "Once the classes are covered evenly more clients add little.",
            "does not hold": "More clients bring more skewed data into the average; which of them train matters more "
            "than how many.",
        },
    ),
    Claim(
        key="1_2.b.enough",
        where="1_2",
        says="Beyond 15 clients the accuracy hardly improves.",
        paper=f"{published.ENOUGH_CLIENTS} clients",
        checks=(
            Check(
                name="gain of 20 over 15 clients",
                measure=accuracy_gain(random_of(20), random_of(15), slots=SLOTS),
                claimed=below(ONE_POINT),
                drawn=spread_of_sets(),
            ),
        ),
        why={
            "holds": "We call less than a point hardly.",
            "does not hold": "The last five clients still bring more than a point.",
            "undecided": NO_OTHER_DRAWING,
        },
    ),
    Claim(
        key="1_2.c.best",
        where="1_2",
        says="Set 4 (the five i.i.d. clients) is the best of the four sets.",
        paper="-",
        checks=(
            *(
                Check(
                    name=f"set 4 less {name}", measure=accuracy_gain(OPTIMAL, series, slots=SLOTS), claimed=above(0.0)
                )
                for name, series in (
                    ("set 1 (last five)", LAST_FIVE),
                    ("set 2 (random five)", RANDOM),
                    ("set 3 (all)", random_of(20)),
                )
            ),
        ),
        why={
            "holds": "The five i.i.d. clients pull in one direction; averaging in skewed models costs more than "
            "their samples bring.",
            "holds in part": "All twenty clients together train on more samples than the five, and skewed models "
            "that are averaged often enough balance out.",
            "does not hold": "In this drawing of the data skewed clients cover the classes as well as the five, and "
            "hold more samples.",
        },
    ),
    Claim(
        key="1_2.c.close_to_all",
        where="1_2",
        says="Set 4 is close to having all clients train.",
        paper="-",
        checks=(
            Check(
                name="set 4 less set 3 (all)",
                measure=accuracy_gain(OPTIMAL, random_of(20), slots=SLOTS),
                claimed=near(0.0, ONE_POINT),
                drawn=spread_of_sets(),
            ),
        ),
        why={
            "holds": "They differ by less than a point.",
            "does not hold": "They differ by more than the point that we call close.",
            "undecided": NO_OTHER_DRAWING,
        },
    ),
    Claim(
        key="1_2.c.optimal",
        where="1_2",
        says="Set 4 can be regarded as the optimal solution.",
        paper="-",
        checks=(
            Check(
                name="best other cohort of all 15,504 less set 4, by fresh trainings",
                measure=best_other_less_first_five,
                claimed=below(ONE_POINT),
                over="trainings",
                drawn=spread_of_sets(),
            ),
            Check(
                name="cohorts that these cannot tell from set 4, or that are better",
                measure=level_with_first_five,
                claimed=Range(),
                digits=0,
                decides=False,
                over="cohorts trained afresh",
            ),
        ),
        why={
            "holds": "All cohorts were trained for the atlas, the best 100 of them afresh (docs/ATLAS.md); one half of "
            "these trainings chose the best other, the other half compares. No other is better by the point that we "
            "call close.",
            "does not hold": "All cohorts were trained for the atlas, the best 100 of them afresh (docs/ATLAS.md): "
            "another is better by more than the point that we call close.",
            "undecided": NO_OTHER_DRAWING,
        },
    ),
    Claim(
        key="1_2.c.worst",
        where="1_2",
        says="Set 1 (the last five clients) is the worst, worse than random selection.",
        paper="-",
        checks=(
            *(
                Check(
                    name=f"{name} less set 1", measure=accuracy_gain(series, LAST_FIVE, slots=SLOTS), claimed=above(0.0)
                )
                for name, series in (
                    ("set 2 (random five)", RANDOM),
                    ("set 3 (all)", random_of(20)),
                    ("set 4 (first five)", OPTIMAL),
                )
            ),
        ),
        why={
            "holds": "Of some classes these five skewed clients hold only few samples; most random cohorts have an "
            "i.i.d. client among them.",
            "holds in part": "Which five skewed clients are bad is luck of the drawing of the data.",
            "does not hold": "In this drawing of the data the last five clients happen to cover the classes well: "
            "which five skewed clients are bad is luck.",
            "undecided": "Which five skewed clients are bad is luck of the drawing of the data.",
        },
    ),
)
