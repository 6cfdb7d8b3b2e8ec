"""Theorem 2 and Corollary 1 compared with belief propagation, over many topologies and strengths of coupling."""

import functools

import msgspec
import numpy as np

from fedelect.equations.beliefs import Settled, local_field, path_loss_coupling, settle
from fedelect.equations.theory import convergence
from fedelect.scenario import ScenarioConfig
from fedelect.scenario.topology import draw_topology
from fedelect.seeds import stream
from paper.measurements.context import Context
from paper.measurements.parts import MeasurementParts

TOPOLOGIES = 200
ROUNDS = 200
"""Rounds after which belief propagation that has not settled is taken not to."""

TOLERANCE = 1e-9
SCALES = (1e-3, 1e-2, 3e-2, 1e-1, 1.0, 3.0, 10.0, 30.0, 100.0)
"""C of the coupling; the paper's is -30 dB = 1e-3."""

SETTINGS = {"topologies": TOPOLOGIES, "rounds": ROUNDS, "tolerance": TOLERANCE, "scales": SCALES}
"""What the measurement depends on besides the scenario."""


class ConvergenceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All topologies with one C.

    Attributes:
        scale: C.
        topologies: How many were drawn.
        corollary_holds: On how many Corollary 1 promises convergence.
        theorem_holds: On how many Theorem 2 does, with C.
        theorem_as_printed_holds: On how many it does as printed, without C.
        settled: On how many belief propagation settled.
        settled_in_ten: On how many it settled within ten rounds.
        median_rounds: Rounds it took, over those on which it settled; None if on none.
        broken_promises: On how many it did not settle though Corollary 1 or Theorem 2 with C promises it.
    """

    scale: float
    topologies: int
    corollary_holds: int
    theorem_holds: int
    theorem_as_printed_holds: int
    settled: int
    settled_in_ten: int
    median_rounds: float | None
    broken_promises: int


class ConvergenceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row for each C.

    Attributes:
        clients: N.
        tolerance: Residual at which messages count as settled.
        rounds: Most rounds that were tried.
        rows: In order of C.
    """

    clients: int
    tolerance: float
    rounds: int
    rows: list[ConvergenceRow]


def measure_convergence(context: Context, parts: MeasurementParts) -> ConvergenceTable:
    """Draw topologies of the main world and random opinions, and run belief propagation with each C."""
    store = context.store
    config = store.base
    count = TOPOLOGIES if context.preset.trials is None else 5 * context.preset.trials
    make = functools.partial(_row, count=count, config=config, seed=store.seed)
    made = parts.compute(ConvergenceRow, make, {f"C = {scale:g}": (scale,) for scale in SCALES})
    return ConvergenceTable(clients=config.clients, tolerance=TOLERANCE, rounds=ROUNDS, rows=list(made.values()))


def _row(scale: float, *, count: int, config: ScenarioConfig, seed: int) -> ConvergenceRow:
    beliefs = config.beliefs
    drawn = [draw_topology(config.topology, config.clients, seed=config.seed, draw=draw) for draw in range(count)]
    promised = {"corollary": 0, "theorem": 0, "printed": 0}
    took, broken = [], 0
    for number, topology in enumerate(drawn):
        clients, exponent = len(topology.positions_km), beliefs.coupling_exponent
        couplings = path_loss_coupling(topology.edge_lengths_km, scale=scale, exponent=exponent)
        said = convergence(
            topology.edges,
            couplings,
            clients=clients,
            positions_km=topology.positions_km,
            scale=scale,
            exponent=exponent,
        )
        assert said.theorem is not None and said.theorem_as_printed is not None
        promised["corollary"] += said.corollary.holds
        promised["theorem"] += said.theorem.holds
        promised["printed"] += said.theorem_as_printed.holds
        opinions = stream(seed, "convergence", number).random(clients)
        settling = settle(local_field(opinions), topology.edges, couplings, rounds=ROUNDS, tolerance=TOLERANCE)
        if isinstance(settling.outcome, Settled):
            took.append(settling.residuals.size)
        else:
            broken += said.corollary.holds or said.theorem.holds
    return ConvergenceRow(
        scale=scale,
        topologies=len(drawn),
        corollary_holds=promised["corollary"],
        theorem_holds=promised["theorem"],
        theorem_as_printed_holds=promised["printed"],
        settled=len(took),
        settled_in_ten=sum(rounds <= 10 for rounds in took),
        median_rounds=float(np.median(took)) if took else None,
        broken_promises=broken,
    )
