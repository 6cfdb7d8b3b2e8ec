"""Claims about `PreTheta`, `PreNum` and `Pre2Slot`: upload probability and number of clients."""

import itertools
import math
from collections.abc import Callable, Sequence

from fedelect.reproduce import paper
from fedelect.reproduce.catalogue import (
    CLIENT_COUNTS,
    MAIN,
    TRIALS,
    UPLOAD_PROBABILITIES,
    bp_ucb,
    frugal_quick_init,
    quick_init,
)
from fedelect.reproduce.claims.claim import Check, Claim, Verdict, above, below, exactly
from fedelect.reproduce.claims.measures import (
    Reading,
    accuracy_gain,
    counted,
    difference_of_declines,
    mean_difference,
)
from fedelect.reproduce.readings import final_accuracy, last_opinion
from fedelect.reproduce.series import Series, World

MANY_TRIALS = 25
"""Trials of `Pre2Slot`."""

MU_DECIDES = (
    "With mu = 1 Quick-Init UCB explores cohorts all along, while BP-UCB with mu = 0.01 exploits after the cold start; "
    "the difference in mu outweighs the global information that the paper names."
)

_THETAS = tuple(World(upload_probability=theta) for theta in UPLOAD_PROBABILITIES)
_COUNTS = tuple(World(clients=clients) for clients in CLIENT_COUNTS)
_METHODS: tuple[tuple[str, Callable[[World], Series]], ...] = (("Quick-Init UCB", quick_init), ("BP-UCB", bp_ucb))


def _theta(world: World) -> str:
    return f"theta = {world.upload_probability:g}"


def _clients(world: World) -> str:
    return f"N = {world.clients}"


def _ahead(
    worlds: Sequence[World],
    setting: Callable[[World], str],
    *,
    slots: int = 200,
    trials: int = TRIALS,
    last_slot: bool = False,
) -> tuple[Check, ...]:
    """That Quick-Init UCB is ahead of BP-UCB in each world: in average accuracy, the last slot's beside it if asked."""
    readings: list[tuple[str, Reading, bool]] = [("average accuracy", final_accuracy, True)]
    readings += [("accuracy in slot T", last_opinion, False)] if last_slot else []
    return tuple(
        Check(
            name=f"Quick-Init UCB less BP-UCB at {setting(world)}{'' if decides else ', ' + name}",
            measure=mean_difference(quick_init(world), bp_ucb(world), reading, slots=slots, trials=trials),
            claimed=above(0.0),
            decides=decides,
        )
        for name, reading, decides in readings
        for world in worlds
    )


def _ahead_with_one_mu(worlds: Sequence[World], *, slots: int, trials: int) -> tuple[Check, ...]:
    """The same if both have mu = 0.01, shown beside the claim."""
    return tuple(
        Check(
            name=f"with mu = 0.01 for both: Quick-Init UCB less BP-UCB at {_clients(world)}",
            measure=accuracy_gain(frugal_quick_init(world), bp_ucb(world), slots=slots, trials=trials),
            claimed=above(0.0),
            decides=False,
        )
        for world in worlds
    )


def _declines(worlds: Sequence[World], setting: Callable[[World], str]) -> tuple[Check, ...]:
    """That both methods are better in each world than in the next."""
    return tuple(
        Check(
            name=f"{name}: {setting(one)} less {setting(other)}",
            measure=accuracy_gain(make(one), make(other)),
            claimed=above(0.0),
        )
        for name, make in _METHODS
        for one, other in itertools.pairwise(worlds)
    )


_AHEAD_WHY: dict[Verdict, str] = {
    "holds": "As in the paper.",
    "holds in part": MU_DECIDES,
    "does not hold": MU_DECIDES,
    "undecided": "The two are close to each other.",
}

CLAIMS = (
    Claim(
        key="PreTheta.order",
        where="PreTheta",
        says="Quick-Init UCB is better than BP-UCB at every upload probability.",
        paper="-",
        checks=_ahead(_THETAS, _theta),
        why=_AHEAD_WHY,
    ),
    Claim(
        key="PreTheta.decline",
        where="PreTheta",
        says="Both decline as the upload probability falls from 1 to 0.5.",
        paper="-",
        checks=_declines(_THETAS, _theta),
        why={
            "holds": "Uploads that are lost are samples that do not count.",
            "holds in part": "From a cold start a slot has 15 rounds: with theta = 0.75 or 0.5 enough uploads arrive, "
            "and which clients train matters more.",
            "does not hold": "Fifteen rounds leave enough uploads at theta = 0.5, and changing subsets within a slot "
            "mix the cohort's models.",
            "undecided": "The loss of uploads costs less than what differs between trials.",
        },
    ),
    Claim(
        key="PreTheta.pronounced",
        where="PreTheta",
        says="The decline is more pronounced for BP-UCB.",
        paper="-",
        checks=(
            Check(
                name="decline of BP-UCB from theta = 1 to 0.5 less that of Quick-Init UCB",
                measure=difference_of_declines(
                    (bp_ucb(_THETAS[0]), bp_ucb(_THETAS[-1])), (quick_init(_THETAS[0]), quick_init(_THETAS[-1]))
                ),
                claimed=above(0.0),
            ),
        ),
        why={
            "holds": "BP-UCB commits to few cohorts and feels their losses.",
            "does not hold": "BP-UCB's cohorts lose no more than the many that Quick-Init UCB tries.",
            "undecided": "The two declines do not differ by more than chance.",
        },
    ),
    Claim(
        key="PreNum.order",
        where="PreNum",
        says="Quick-Init UCB is better than BP-UCB at N = 20, 40, 60.",
        paper="-",
        checks=_ahead(_COUNTS[:3], _clients),
        why=_AHEAD_WHY,
    ),
    Claim(
        key="PreNum.decline",
        where="PreNum",
        says="Both decline as the number of clients grows.",
        paper="-",
        checks=_declines(_COUNTS[:3], _clients),
        why={
            "holds": "Five i.i.d. clients among more others are harder to find, and cold starts take longer.",
            "holds in part": "The decline is there where the search is the harder one; among more clients there are "
            "also more good ones by luck.",
            "does not hold": "Among more clients there are more good ones by luck.",
        },
    ),
    Claim(
        key="Pre2Slot.order",
        where="Pre2Slot",
        says="Quick-Init UCB is better than BP-UCB at N = 20 to 80 for T = 500.",
        paper="-",
        checks=(
            *_ahead(_COUNTS[:4], _clients, slots=500, trials=MANY_TRIALS, last_slot=True),
            *_ahead_with_one_mu(_COUNTS, slots=500, trials=MANY_TRIALS),
        ),
        why=_AHEAD_WHY,
    ),
    Claim(
        key="Pre2Slot.arms",
        where="Pre2Slot",
        says="At N = 100 there are more than 10^7 cohorts.",
        paper="> 10^7",
        checks=(
            Check(
                name="cohorts of 5 out of 100",
                measure=lambda evidence: exactly(math.comb(100, MAIN.budget)),
                claimed=above(paper.MANY_ARMS),
                digits=0,
            ),
        ),
        why={"holds": "Arithmetic: C(100, 5).", "does not hold": "Arithmetic: C(100, 5) is a smaller number."},
    ),
    Claim(
        key="Pre2Slot.impossible",
        where="Pre2Slot",
        says="Quick-Init UCB cannot be run at N = 100, for its arms exceed the memory.",
        paper="no trials",
        checks=(
            Check(
                name="trials of Quick-Init UCB at N = 100, T = 500",
                measure=counted(quick_init(_COUNTS[-1]), slots=500, trials=MANY_TRIALS),
                claimed=below(1.0),
                digits=0,
            ),
        ),
        why={
            "holds": "No trial is on file.",
            "does not hold": "The arms need not be held: those not played since the cold start all have one pull, so "
            "the best of them is the best additive subset (docs/EXACT.md). Exact, in O(N + T K) memory.",
        },
    ),
)
