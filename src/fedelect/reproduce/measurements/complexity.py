"""The paper's complexity formulas beside the measured cost of a decision: both selectors against N."""

import math
import statistics
import time

import msgspec

from fedelect.equations.theory import bp_ucb_complexity, quick_init_complexity
from fedelect.reproduce.catalogue import CLIENT_COUNTS
from fedelect.reproduce.measurements.context import Context
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector, BpUcb, QuickInitUcb
from fedelect.vocabulary import Feedback

SLOTS = 500
BEYOND = (1_000, 10_000)
"""Numbers of clients that the paper does not try."""


class ComplexityRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of clients.

    Attributes:
        clients: N.
        arms: C(N, K).
        quick_init_operations: The paper's count for choosing, over all slots: T (|A| + |A|^2).
        bp_ucb_operations: The paper's count for choosing: T N^3.
        quick_init_ms: Median measured time of an ask and tell after the cold start, in milliseconds.
        bp_ucb_ms: The same for BP-UCB.
    """

    clients: int
    arms: int
    quick_init_operations: float
    bp_ucb_operations: float
    quick_init_ms: float
    bp_ucb_ms: float


class ComplexityTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row for each N.

    Attributes:
        budget: K.
        slots: T.
        rows: In order of N.
    """

    budget: int
    slots: int
    rows: list[ComplexityRow]


def measure_complexity(context: Context) -> ComplexityTable:
    """Let both selectors decide T times on random opinions and take the time. The times are this machine's."""
    budget = context.library.base.budget
    slots = min(SLOTS, context.preset.slots or SLOTS)
    rows = [_row(clients, budget, slots, context.library.seed) for clients in (*CLIENT_COUNTS, *BEYOND)]
    return ComplexityTable(budget=budget, slots=slots, rows=rows)


def _row(clients: int, budget: int, slots: int, seed: int) -> ComplexityRow:
    training = {"batch": 0, "epochs": 0, "samples": 0}  # the cost of choosing alone
    quick = quick_init_complexity(clients=clients, budget=budget, slots=slots, **training)
    beliefs = bp_ucb_complexity(clients=clients, budget=budget, slots=slots, **training)
    return ComplexityRow(
        clients=clients,
        arms=math.comb(clients, budget),
        quick_init_operations=float(quick.simplified),
        bp_ucb_operations=float(beliefs.simplified),
        quick_init_ms=_milliseconds(QuickInitUcb(clients=clients, budget=budget, seed=seed), slots, seed),
        bp_ucb_ms=_milliseconds(BpUcb(clients=clients, budget=budget, seed=seed), slots, seed),
    )


def _milliseconds(selector: AbstractSelector, slots: int, seed: int) -> float:
    cold = math.ceil(selector.clients / selector.budget)
    took = []
    for slot in range(1, cold + slots + 1):
        opinions = stream(seed, "complexity", slot).random(selector.clients)
        begun = time.perf_counter()
        ask = selector.ask()
        feedback = Feedback(opinions=opinions, beliefs=opinions if "beliefs" in selector.needs else None)
        selector.tell(ask, feedback)
        if slot > cold:
            took.append(time.perf_counter() - begun)
    return round(1e3 * statistics.median(took), 4)
