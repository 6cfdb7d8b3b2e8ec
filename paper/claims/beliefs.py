"""Claims about `BP_value`: beliefs and who is elected."""

import numpy as np

from fedelect.equations.intervals import Interval, mean_interval
from fedelect.vocabulary import Floats
from paper import published
from paper.catalogue import MAIN, bp_ucb
from paper.claims.central import SLOTS
from paper.claims.claim import Check, Claim, Measure, exactly
from paper.evidence import Evidence, elections
from paper.ranges import Range, above, below, near

EARLY = slice(published.BELIEF_SLOTS, 2 * published.BELIEF_SLOTS)
"""Slots 11 to 20, in which beliefs should have converged."""

LATE = slice(SLOTS // 2, SLOTS)
CONVERGED = 0.005
"""A belief that is within this share of its late mean has converged."""

COMMON_CAUSE = (
    "A belief enters the index as a share of all beliefs, divided by N again: it moves clients apart hundreds of times "
    "less than their mean opinions do. Belief and mean opinion have a common cause, how easy the client's own test "
    "share is; with all beliefs made equal the correlation changes by less than 0.1 (8 trials of 100 slots: "
    "paper/tests/test_beliefs_and_elections.py)."
)


def _beliefs(evidence: Evidence) -> Floats | None:
    """(blocks, T, K) mean beliefs of the first K clients in each block of trials."""
    curves = evidence.curves(bp_ucb(), slots=SLOTS)
    if curves is None or curves.belief_blocks is None or curves.belief_blocks.shape[1] < SLOTS:
        return None
    return curves.belief_blocks[:, :, : MAIN.budget]


def early_deviation(client: int) -> Measure:
    """By what share the belief of a client in slots 11 to 20 is off its mean over the last 100 slots.

    Sums over trials are kept for each block of trials, so the interval is over blocks.
    """

    def measure(evidence: Evidence) -> Interval | None:
        beliefs = _beliefs(evidence)
        if beliefs is None:
            return None
        return mean_interval(beliefs[:, EARLY, client].mean(axis=1) / beliefs[:, LATE, client].mean(axis=1) - 1.0)

    return measure


def late_spread(evidence: Evidence) -> Interval | None:
    """How far apart the highest and the lowest mean belief of the first five clients are, over the last 100 slots.

    The two clients are chosen by the other blocks of trials: chosen by the same block, the difference would be biased.
    """
    beliefs = _beliefs(evidence)
    if beliefs is None or len(beliefs) < 2:
        return None
    late = beliefs[:, LATE].mean(axis=1)
    apart = []
    for number, block in enumerate(late):
        others = np.delete(late, number, axis=0).mean(axis=0)
        apart.append(float(block[others.argmax()] - block[others.argmin()]))
    return mean_interval(apart)


def largest_residual(evidence: Evidence) -> Interval | None:
    """Largest residual of the messages after the rounds of a slot, over all slots and trials."""
    curves = evidence.curves(bp_ucb(), slots=SLOTS)
    if curves is None or curves.residuals is None:
        return None
    return exactly(float(curves.residuals.max()), len(curves.trials))


def belief_and_election(evidence: Evidence) -> Interval | None:
    """Correlation over clients between mean belief and number of elections in a trial."""
    curves = evidence.curves(bp_ucb(), slots=SLOTS)
    if curves is None or curves.beliefs is None:
        return None
    beliefs = curves.beliefs.mean(axis=0)
    beliefs = beliefs - beliefs.mean()
    counts = elections(curves).astype(np.float64)
    counts -= counts.mean(axis=1, keepdims=True)
    scale = np.sqrt((counts**2).sum(axis=1) * (beliefs**2).sum())
    return mean_interval(np.divide(counts @ beliefs, scale, out=np.full(len(counts), np.nan), where=scale > 0))


def belief_in_the_index(evidence: Evidence) -> Interval | None:
    """How far apart beliefs alone put the indices of two clients at most, by their means over slots and trials."""
    curves = evidence.curves(bp_ucb(), slots=SLOTS)
    if curves is None or curves.beliefs is None:
        return None
    beliefs = curves.beliefs.mean(axis=0)
    return exactly(float(np.ptp(beliefs)) / beliefs.size, len(curves.trials))


CLAIMS = (
    Claim(
        key="BP_value.converge",
        where="BP_value",
        says="The beliefs of clients 1 to 5 converge within about 10 slots.",
        paper=f"{published.BELIEF_SLOTS} slots",
        checks=(
            *(
                Check(
                    name=f"belief of client {client + 1} in slots 11 to 20 off that in slots 101 to 200, share",
                    measure=early_deviation(client),
                    claimed=near(0.0, CONVERGED),
                    over="blocks of trials",
                )
                for client in range(MAIN.budget)
            ),
            Check(
                name="largest residual of the messages within a slot",
                measure=largest_residual,
                claimed=below(1e-6),
                digits=9,
                decides=False,
            ),
        ),
        why={
            "holds": "The messages settle within a slot, for the coupling is almost nil at the paper's C; over slots a "
            "belief follows the client's opinion of the slot's model, which is settled once the cohort is.",
            "holds in part": "The messages settle within a slot; the beliefs follow the slot's opinions, which go on "
            "changing while cohorts change.",
            "does not hold": "The beliefs follow the slot's opinions, which go on changing while cohorts change.",
        },
    ),
    Claim(
        key="BP_value.differ",
        where="BP_value",
        says="Different clients have different beliefs.",
        paper="-",
        checks=(
            Check(
                name="highest less lowest belief of clients 1 to 5",
                measure=late_spread,
                claimed=above(0.0),
                digits=5,
                over="blocks of trials",
            ),
        ),
        why={
            "holds": "All clients judge the same model, each on its own test share: the differences are small and are "
            "those of the test shares.",
            "does not hold": "All clients judge the same model, each on its own share of the same test distribution.",
            "undecided": "All clients judge the same model, each on its own share of the same test distribution: what "
            "differs between clients is less than what differs between trials.",
        },
    ),
    Claim(
        key="BP_value.elects",
        where="BP_value",
        says="The better a client's belief, the more likely it is to be elected.",
        paper="-",
        checks=(
            Check(name="correlation with elections over clients", measure=belief_and_election, claimed=above(0.0)),
            Check(
                name="largest difference that beliefs make between the indices of two clients",
                measure=belief_in_the_index,
                claimed=Range(),
                digits=5,
                decides=False,
            ),
        ),
        why={
            "holds": f"{COMMON_CAUSE} So the correlation is there, but it is not the belief that elects.",
            "does not hold": COMMON_CAUSE,
            "undecided": COMMON_CAUSE,
        },
    ),
)
