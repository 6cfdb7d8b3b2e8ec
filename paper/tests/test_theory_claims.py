"""Claims about convergence, complexity and regret, on made-up measurements."""

import pytest

from paper import Evidence
from paper.measurements.complexity import ComplexityRow, ComplexityTable
from paper.measurements.convergence import ConvergenceRow, ConvergenceTable
from paper.measurements.regret import Regret, RegretCurve, RegretWorld
from paper.tests.test_claims import evidence as evidence
from paper.tests.test_claims import judged, keep, means


def test_theory(evidence: Evidence) -> None:
    def row(scale: float, broken: int) -> ConvergenceRow:
        return ConvergenceRow(
            scale=scale,
            topologies=50,
            corollary_holds=50,
            theorem_holds=40,
            theorem_as_printed_holds=5,
            settled=50 - broken,
            settled_in_ten=10,
            median_rounds=3.0,
            broken_promises=broken,
        )

    keep(
        evidence, "convergence", ConvergenceTable(clients=20, tolerance=1e-9, rounds=9, rows=[row(1e-3, 0), row(1, 2)])
    )
    sufficient = judged("Theorem03.sufficient", evidence)
    assert means(sufficient) == [2.0] and sufficient.verdict == "does not hold"
    met = judged("Theorem03.met", evidence)
    assert means(met) == [0.1, 0.8, 1.0] and met.verdict == "holds in part"


def test_times_are_compared_within_a_repetition_and_judged_by_the_interval_over_repetitions(
    evidence: Evidence,
) -> None:
    def row(clients: int, quick: list[float], bp: list[float]) -> ComplexityRow:
        operations = {"quick_init_operations": 1.0, "bp_ucb_operations": 1.0}
        return ComplexityRow(clients=clients, arms=9, quick_init_ms=quick, bp_ucb_ms=bp, **operations)

    # The second repetition is four times as slow throughout, which changes no ratio.
    rows = [row(20, [0.05, 0.2], [0.1, 0.4]), row(100, [0.1, 0.4], [0.4, 1.6])]
    keep(evidence, "complexity", ComplexityTable(budget=5, slots=500, rows=rows))
    growth = judged("complexity.quick_init", evidence)
    assert means(growth) == [2.0] and growth.verdict == "does not hold"
    better = judged("complexity.bp_ucb", evidence)
    assert means(better) == [0.5, 0.25] and better.verdict == "does not hold"
    # Three times as long on average, but from 1 to 5 times: that decides nothing.
    rows = [row(20, [1.0, 1.0], [1.0, 1.0]), row(100, [1.0, 5.0], [1.0, 1.0])]
    keep(evidence, "complexity", ComplexityTable(budget=5, slots=500, rows=rows))
    noisy = judged("complexity.bp_ucb", evidence)
    assert means(noisy) == [3.0, 3.0] and noisy.verdict == "undecided"
    assert noisy.measured[0] is not None and noisy.measured[0].half_width == pytest.approx(12.706 * 2.0, rel=1e-4)


def test_a_vacuous_bound_never_holds(evidence: Evidence) -> None:
    def curve(selector: str, *, regret: float, bound: float, ceiling: float) -> RegretCurve:
        return RegretCurve(
            selector=selector,
            exploration=1.0,
            theorem="any",
            trials=4,
            slots=[1, 500],
            mean=[0.1, regret],
            half_width=[0.0, 1.0],
            bound=[9.0, bound],
            ceiling=[1.0, ceiling],
            violated=[],
        )

    def world(bound: float, regret: float) -> RegretWorld:
        curves = [curve(name, regret=regret, bound=bound, ceiling=100.0) for name in ("Quick-Init UCB", "BP-UCB")]
        gaps = {"optimum": 0.9, "smallest_gap": 0.1, "largest_gap": 0.2}
        return RegretWorld(name="any", clients=6, budget=2, curves=curves, **gaps)

    keep(evidence, "regret", Regret(worlds=[world(5000.0, 50.0), world(80.0, 20.0)]))
    finding = judged("Theorem00.regret", evidence)
    assert means(finding) == [50.0, 0.01, 0.8, 0.25] and finding.verdict == "holds in part"
    assert finding.measured[3] is not None and finding.measured[3].half_width == pytest.approx(1 / 80)
    keep(evidence, "regret", Regret(worlds=[world(5000.0, 50.0), world(200.0, 300.0)]))
    assert judged("Theorem02.regret", evidence).verdict == "does not hold"
