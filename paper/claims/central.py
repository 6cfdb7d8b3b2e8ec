"""Claims about FL&FA: `cen_performance`."""

import math
from collections.abc import Mapping

from paper import published
from paper.catalogue import MAIN, OPTIMAL, RANDOM, ROUND_ROBIN, SUBSET_UCB, quick_init
from paper.claims.claim import Check, Claim, exactly
from paper.claims.drawn import (
    gain_over_drawings,
    gap_over_drawings,
    measure_over_drawings,
    spread_of_baseline,
    spread_of_sets,
)
from paper.claims.measures import (
    accuracy,
    accuracy_gain,
    mean_difference,
    slots_to,
)
from paper.claims.sets import ONE_POINT
from paper.ranges import above, below, near
from paper.series import Series

SLOTS = 200
EARLY_TARGETS = (0.75, 0.78)
"""Targets of the paper's table that can be reached within 200 slots; a trial that does not counts as 200 slots."""

EXPLORES = (
    "With mu = 1 one pull less outweighs any reward gap, so that Quick-Init UCB tries a new cohort in almost every "
    "slot up to T = 500, in the order of what the cold start gave (docs/EXACT.md)."
)
CALIBRATED = "The calibration aimed at this figure, so it is no evidence."


def sooner(name: str, series: Series, others: Mapping[str, Series]) -> tuple[Check, ...]:
    """That a method reaches the early targets in fewer slots than the others."""
    return tuple(
        Check(
            name=f"slots to {target:g}: {other} less {name}",
            measure=mean_difference(others[other], series, slots_to(target), slots=SLOTS),
            claimed=above(0.0),
            digits=2,
        )
        for target in EARLY_TARGETS
        for other in others
    )


CLAIMS = (
    Claim(
        key="cen_performance.random",
        where="cen_performance",
        says="Random selection reaches 76.62 % at T = 200 under FL&FA.",
        paper=f"{published.RANDOM_CENTRAL}",
        checks=(
            Check(
                name="average accuracy",
                measure=accuracy(RANDOM),
                claimed=near(published.RANDOM_CENTRAL, ONE_POINT),
                drawn=spread_of_baseline("random"),
            ),
        ),
        why={
            "holds": CALIBRATED,
            "does not hold": f"{CALIBRATED} Its rule leaves more than a point of slack.",
            "undecided": CALIBRATED,
        },
    ),
    Claim(
        key="cen_performance.optimal",
        where="cen_performance",
        says="The optimal cohort is at about 88.01 % at T = 200 (Quick-Init UCB's 86.57 % and its gap of 1.44 %).",
        paper=f"{published.QUICK_INIT + published.QUICK_INIT_GAP:.4f}",
        checks=(
            Check(
                name="average accuracy",
                measure=accuracy(OPTIMAL),
                claimed=near(published.QUICK_INIT + published.QUICK_INIT_GAP, ONE_POINT),
                drawn=spread_of_baseline("fixed"),
            ),
        ),
        why={
            "holds": CALIBRATED,
            "does not hold": f"{CALIBRATED} It is just outside the range: a first term of 0 costs 0.004, and "
            "the three trainings of this cohort in the table may be unlucky.",
            "undecided": CALIBRATED,
        },
    ),
    Claim(
        key="cen_performance.quick_init",
        where="cen_performance",
        says="Quick-Init UCB reaches 86.57 % at T = 200.",
        paper=f"{published.QUICK_INIT}",
        checks=(
            Check(
                name="average accuracy",
                measure=accuracy(quick_init()),
                claimed=near(published.QUICK_INIT, ONE_POINT),
                drawn=measure_over_drawings("fa"),
            ),
        ),
        why={"holds": "Within a point.", "does not hold": EXPLORES, "undecided": EXPLORES},
    ),
    Claim(
        key="cen_performance.gain",
        where="cen_performance",
        says="Quick-Init UCB improves on random selection, from 76.62 % to 86.57 %.",
        paper=f"+{published.QUICK_INIT - published.RANDOM_CENTRAL:.4f}",
        checks=(
            Check(name="gain over random", measure=accuracy_gain(quick_init(), RANDOM), claimed=above(0.0)),
            Check(
                name="gain over random, to a point",
                measure=accuracy_gain(quick_init(), RANDOM),
                claimed=near(published.QUICK_INIT - published.RANDOM_CENTRAL, ONE_POINT),
                drawn=gain_over_drawings("fa"),
            ),
        ),
        why={
            "holds": "The additive scores find i.i.d. clients quickly.",
            "holds in part": f"It improves, by another amount. {EXPLORES}",
            "does not hold": EXPLORES,
        },
    ),
    Claim(
        key="cen_performance.gap",
        where="cen_performance",
        says="Quick-Init UCB is about 1.44 % below the optimal solution (by the abstract less than that).",
        paper=f"{published.QUICK_INIT_GAP}",
        checks=(
            Check(
                name="gap to the cohort of clients 1 to 5",
                measure=accuracy_gain(OPTIMAL, quick_init()),
                claimed=below(published.QUICK_INIT_GAP + ONE_POINT / 2),
                drawn=gap_over_drawings("fa"),
            ),
        ),
        why={"holds": "To half a point, or closer.", "does not hold": EXPLORES},
    ),
    Claim(
        key="cen_performance.conventional",
        where="cen_performance",
        says="Conventional UCB is much worse than Quick-Init UCB and performs like random selection.",
        paper="-",
        checks=(
            Check(
                name="conventional UCB less random",
                measure=accuracy_gain(SUBSET_UCB, RANDOM),
                claimed=near(0.0, ONE_POINT),  # both draw uniformly within T = 200: no drawing has a part in it
            ),
            Check(
                name="Quick-Init less conventional UCB",
                measure=accuracy_gain(quick_init(), SUBSET_UCB),
                claimed=above(ONE_POINT),
                drawn=gain_over_drawings("fa", told="Quick-Init less random, which draws alike,"),
            ),
        ),
        why={
            "holds": "Until every cohort has been tried, conventional UCB draws cohorts at random without repetition.",
            "holds in part": "Until every cohort has been tried, conventional UCB is random selection without "
            "repetition; how far Quick-Init UCB is ahead is another matter.",
            "does not hold": "Conventional UCB never repeats a cohort, which random selection may, and Quick-Init UCB "
            f"does the same for long. {EXPLORES}",
        },
    ),
    Claim(
        key="cen_performance.initiation",
        where="cen_performance",
        says="Conventional UCB needs about 15,504 slots to try every cohort, far more than T = 200.",
        paper=f"{published.SUBSETS:,}",
        checks=(
            Check(
                name="cohorts of 5 out of 20",
                measure=lambda evidence: exactly(math.comb(MAIN.clients, MAIN.budget)),
                claimed=near(published.SUBSETS, 0.5),
                digits=1,
            ),
        ),
        why={"holds": "Arithmetic: C(20, 5).", "does not hold": "Arithmetic: C(20, 5) is another number."},
    ),
    Claim(
        key="cen_performance.baselines_last",
        where="cen_performance",
        says="Round-robin and random selection have the lowest accuracy (under FL&FA).",
        paper="-",
        checks=tuple(
            Check(
                name=f"{name} less {low}",
                measure=accuracy_gain(series, baseline),
                claimed=claimed,
                drawn=spread_of_sets() if (series, baseline) == (SUBSET_UCB, ROUND_ROBIN) else None,
            )
            for name, series, claimed in (
                ("optimal", OPTIMAL, above(0.0)),
                ("Quick-Init", quick_init(), above(0.0)),
                # Of which the paper says that it performs like random selection: it may be level.
                ("conventional UCB", SUBSET_UCB, above(-ONE_POINT)),
            )
            for low, baseline in (("round-robin", ROUND_ROBIN), ("random", RANDOM))
        ),
        why={
            "holds": "Neither looks at opinions; conventional UCB, which does not within T = 200, is level with them "
            "(to a point), as the paper says.",
            "holds in part": "Conventional UCB, which tries every cohort once before it looks at opinions, is worse "
            "than one of them.",
            "does not hold": EXPLORES,
        },
    ),
    Claim(
        key="cen_performance.faster",
        where="cen_performance",
        says="Quick-Init UCB converges faster than existing methods of selection.",
        paper="-",
        checks=sooner(
            "Quick-Init UCB",
            quick_init(),
            {"conventional UCB": SUBSET_UCB, "round-robin": ROUND_ROBIN, "random": RANDOM},
        ),
        why={
            "holds": "After the cold start it begins with what did best there. It gets ahead early, and not further "
            "ahead with time.",
            "holds in part": "It gets ahead of some of them early.",
            "does not hold": EXPLORES,
        },
    ),
)
