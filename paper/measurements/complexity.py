"""The paper's complexity formulas beside the measured cost of a decision: both selectors against N.

Times are noisy. So everything is repeated, both selectors and all N in turn, and conclusions are drawn from ratios
within a repetition, with an interval over repetitions.
"""

import math
import statistics
import time

import msgspec

from fedelect.equations.theory import bp_ucb_complexity, quick_init_complexity
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector, BpUcb, QuickInitUcb
from fedelect.vocabulary import Feedback
from paper.catalogue import CLIENT_COUNTS
from paper.measurements.context import Context
from paper.measurements.parts import MeasurementParts

SLOTS = 500
REPETITIONS = 7
BEYOND = (1_000, 10_000)
"""Numbers of clients that the paper does not try."""

SETTINGS = {"clients": (*CLIENT_COUNTS, *BEYOND), "slots": SLOTS, "repetitions": REPETITIONS}
"""What the measurement depends on besides the scenario."""


class ComplexityRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of clients.

    Attributes:
        clients: N.
        arms: C(N, K).
        quick_init_operations: The paper's count for choosing, over all slots, its leading term: T |A|^2.
        bp_ucb_operations: The paper's count for choosing: T N^3.
        quick_init_ms: Median measured time of an ask and tell after the cold start, in milliseconds; one for each
            repetition.
        bp_ucb_ms: The same for BP-UCB.
    """

    clients: int
    arms: int
    quick_init_operations: float
    bp_ucb_operations: float
    quick_init_ms: list[float]
    bp_ucb_ms: list[float]


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


def measure_complexity(context: Context, parts: MeasurementParts) -> ComplexityTable:
    """Let both selectors decide T times on random opinions and take the time. The times are this machine's."""
    budget, seed = context.store.base.budget, context.store.seed
    slots = min(SLOTS, context.preset.slots or SLOTS)
    counts, repetitions = (*CLIENT_COUNTS, *BEYOND), range(min(REPETITIONS, context.preset.trials or REPETITIONS))
    requests = {
        f"N = {clients}, repetition {number}": (clients, budget, slots, seed + number)
        for number in repetitions
        for clients in counts
    }
    took = parts.compute(_Took, _took, requests, alone=True)
    rows = []
    for clients in counts:
        own = [took[f"N = {clients}, repetition {number}"] for number in repetitions]
        rows.append(_row(clients, budget, slots, own))
    return ComplexityTable(budget=budget, slots=slots, rows=rows)


class _Took(msgspec.Struct, frozen=True):
    """Median milliseconds of a decision, in one repetition."""

    quick_init: float
    bp_ucb: float


def _took(clients: int, budget: int, slots: int, seed: int) -> _Took:
    return _Took(
        _milliseconds(QuickInitUcb(clients=clients, budget=budget, exploration=1.0, seed=seed), slots, seed),
        _milliseconds(BpUcb(clients=clients, budget=budget, seed=seed), slots, seed),
    )


def _row(clients: int, budget: int, slots: int, took: list[_Took]) -> ComplexityRow:
    training = {"batch": 0, "epochs": 0, "samples": 0}  # the cost of choosing alone
    quick = quick_init_complexity(clients=clients, budget=budget, slots=slots, **training)
    beliefs = bp_ucb_complexity(clients=clients, budget=budget, slots=slots, **training)
    return ComplexityRow(
        clients=clients,
        arms=math.comb(clients, budget),
        quick_init_operations=float(quick.simplified),
        bp_ucb_operations=float(beliefs.simplified),
        quick_init_ms=[one.quick_init for one in took],
        bp_ucb_ms=[one.bp_ucb for one in took],
    )


def _milliseconds(selector: AbstractSelector, slots: int, seed: int) -> float:
    cold = math.ceil(selector.clients / selector.budget)
    took = []
    for slot in range(1, cold + slots + 1):
        opinions = stream(seed, "complexity", slot).random(selector.clients)
        begun = time.perf_counter()
        selection = selector.ask()
        feedback = Feedback(opinions=opinions, beliefs=opinions if "beliefs" in selector.needs else None)
        selector.tell(selection, feedback)
        if slot > cold:
            took.append(time.perf_counter() - begun)
    return round(1e3 * statistics.median(took), 4)
