"""Claims about `cen_selected_time`: how often Quick-Init UCB elects each client."""

from paper import published
from paper.calibration import BEST_KNOWN
from paper.catalogue import MAIN, quick_init
from paper.claims.central import EXPLORES
from paper.claims.claim import Check, Claim
from paper.claims.drawn import measure_over_drawings
from paper.claims.measures import (
    elections_of,
    excess_over_others,
    late_gain,
    late_share,
    least_over_most,
    mean_of,
    new_share,
)
from paper.ranges import Range, above, near

LONG = 500
OTHERS = tuple(range(len(BEST_KNOWN), MAIN.clients))

CLAIMS = (
    Claim(
        key="cen_selected_time.counts",
        where="cen_selected_time",
        says="Quick-Init UCB elects an i.i.d. client 228.95 times in 500 slots, another one 90.34 times.",
        paper=f"{published.IID_ELECTIONS} and {published.SKEWED_ELECTIONS}",
        checks=tuple(
            Check(
                name=f"elections of a client with {name} data",
                measure=mean_of(quick_init(), elections_of(members), slots=LONG),
                claimed=near(value, 0.1 * value),
                digits=2,
                drawn=measure_over_drawings("fa", elections_of(members), slots=LONG),
            )
            for name, members, value in (
                ("i.i.d.", BEST_KNOWN, published.IID_ELECTIONS),
                ("other", OTHERS, published.SKEWED_ELECTIONS),
            )
        ),
        why={
            "holds": "Within 10 % of the paper's.",
            "holds in part": EXPLORES,
            "does not hold": EXPLORES,
            "undecided": EXPLORES,
        },
    ),
    Claim(
        key="cen_selected_time.ratio",
        where="cen_selected_time",
        says="An i.i.d. client is elected at least 153 % more often than another one.",
        paper="153 %",
        checks=(
            Check(
                name="elections of an i.i.d. client less 2.53 times those of another",
                measure=mean_of(quick_init(), excess_over_others(BEST_KNOWN, 2.53), slots=LONG),
                claimed=above(0.0),
                digits=2,
            ),
        ),
        why={
            "holds": "The rewards guide the additive scores towards these clients.",
            "does not hold": EXPLORES,
            "undecided": EXPLORES,
        },
    ),
    Claim(
        key="cen_selected_time.most",
        where="cen_selected_time",
        says="Clients 1 to 5 are elected most often.",
        paper="-",
        checks=(
            Check(
                name="elections of an i.i.d. client less those of another",
                measure=mean_of(quick_init(), excess_over_others(BEST_KNOWN), slots=LONG),
                claimed=above(0.0),
                digits=2,
            ),
            Check(
                name="elections of the least elected i.i.d. client less those of the most elected other",
                measure=mean_of(quick_init(), least_over_most(BEST_KNOWN), slots=LONG),
                claimed=above(0.0),
                digits=2,
            ),
        ),
        why={
            "holds": "Cohorts with i.i.d. clients are worth more, and the cold start shows some of that.",
            "holds in part": "As a group they are; one by one some other client is elected more often than some of "
            "them.",
            "does not hold": EXPLORES,
        },
    ),
    Claim(
        key="cen_selected_time.finds",
        where="cen_selected_time",
        says="Quick-Init UCB finds the optimal set.",
        paper="-",
        checks=(
            Check(
                name="share of the last 100 slots in which it is elected",
                measure=mean_of(quick_init(), late_share(BEST_KNOWN), slots=LONG),
                claimed=above(0.5),
            ),
            Check(
                name="share of the 500 slots in which a new cohort is tried",
                measure=mean_of(quick_init(), new_share(), slots=LONG),
                claimed=Range(),
                decides=False,
            ),
            Check(
                name="accuracy of the last 100 slots less that of the first 20 after the cold start",
                measure=mean_of(quick_init(), late_gain(early=20, late=100), slots=LONG),
                claimed=Range(),
                decides=False,
            ),
        ),
        why={
            "holds": "It settles on the set.",
            "does not hold": f"{EXPLORES} It does not get better with time (shown).",
        },
    ),
)
