"""The oracle that regret is measured against, the bound beside it, and which of its conditions a run breaks."""

import math
from pathlib import Path
from typing import Any

import pytest
from tests.sample_runs import sample_header, sample_record

from fedelect.equations import theory
from fedelect.records import Exchange, RunRecords, SelectorEntry
from fedelect.report import analyse_runs, load_runs, write_report
from fedelect.report.analysis import REGRET, RunAnalysis, choose_targets

LEVELS = {(0, 1): 0.8, (0, 2): 0.7, (1, 2): 0.5}


def levelled(kind: str, *, fixed: bool = True, selector: dict[str, Any] | None = None, **changes: Any) -> RunAnalysis:
    """A run in which each of three cohorts always has the same opinion: 0.8, 0.7 or 0.5."""
    ours = SelectorEntry(label="ours", kind=kind, parameters=selector or {})
    best = SelectorEntry(label="best", kind="FixedCohort" if fixed else "RandomCohort")
    record_changes = changes.pop("records", {})
    header = sample_header(clients=3, budget=2, groups={}, selectors=(ours, best), trials=1, **changes)
    played = {"ours": [(0, 2), (1, 2), (0, 1)] * 2, "best": [(0, 1)] * 6}
    records = [
        sample_record(
            header,
            label,
            0,
            slot,
            **{"cohort": cohort, "arrivals": (1, 1), "opinions": (LEVELS[cohort],) * 3, **record_changes},
        )
        for label, cohorts in played.items()
        for slot, cohort in enumerate(cohorts, 1)
    ]
    return analyse_runs(load_runs([RunRecords(header, tuple(records))]))[0]


def test_regret_and_gaps_come_from_the_best_fixed_cohort_and_the_cohorts_played() -> None:
    analysis = levelled("QuickInitUcb")
    assert analysis.oracle is not None and analysis.best == "best"
    assert analysis.oracle.value == pytest.approx(0.8)
    assert analysis.oracle.smallest_gap == pytest.approx(0.1) and analysis.oracle.largest_gap == pytest.approx(0.3)
    assert analysis.oracle.cohorts == 3 and analysis.oracle.above == 0
    assert analysis.curves[REGRET]["ours"][0].tolist() == pytest.approx([0.1, 0.4, 0.4, 0.5, 0.8, 0.8])


def test_without_a_fixed_cohort_the_best_cohort_seen_is_the_oracle_and_is_called_lucky() -> None:
    analysis = levelled("QuickInitUcb", fixed=False)
    assert analysis.best is None and analysis.oracle is not None
    assert "{0, 1}, played 8 times" in analysis.oracle.name and "luck" in analysis.oracle.name
    regret = next(one.regret for one in analysis.summaries if one.label == "ours")
    assert regret is not None and regret.mean == pytest.approx(6 * (0.8 - (0.7 + 0.5 + 0.8) / 3))


def test_the_bound_is_the_theorems_at_every_slot() -> None:
    (bound,) = levelled("QuickInitUcb").bounds
    for slot, value in enumerate(bound.curve.tolist(), 1):
        expected = 8 * 3 * math.log(slot) / 0.1 + (math.pi**2 / 3 + 1) * 3 * 0.3
        assert value == pytest.approx(expected)
    assert bound.at_end.vacuous and bound.at_end.ceiling == pytest.approx(6 * 0.3)
    (peers,) = levelled("PeerElection").bounds
    assert peers.at_end.theorem == "Theorem 3"
    assert levelled("RandomCohort").bounds == ()


def broken(analysis: RunAnalysis) -> set[str]:
    return {condition for condition, _ in analysis.bounds[0].broken}


def unknown(analysis: RunAnalysis) -> set[str]:
    return {condition for condition, _ in analysis.bounds[0].unknown}


def test_the_conditions_that_a_run_breaks_are_named() -> None:
    warm = levelled("QuickInitUcb", selector={"exploration": 1.0}, scenario={"start": "warm"})
    assert {theory.STATIONARY_REWARDS, theory.EXPLORATION_IS_ROOT_TWO, theory.GAPS_ARE_TRUE} <= broken(warm)
    cold = levelled("QuickInitUcb", selector={"exploration": math.sqrt(2.0)}, scenario={"start": "cold"})
    assert not {theory.STATIONARY_REWARDS, theory.EXPLORATION_IS_ROOT_TWO, theory.BOUNDED_REWARDS} & broken(cold)
    assert theory.EVERY_ARM_PLAYED_ONCE in broken(cold)
    noisy = levelled("QuickInitUcb", records={"reward_noise": 0.1})
    assert theory.BOUNDED_REWARDS in broken(noisy)
    assert {theory.STATIONARY_REWARDS, theory.EXPLORATION_IS_ROOT_TWO} <= unknown(noisy)


@pytest.mark.parametrize(("residual", "settled"), [(1e-15, True), (0.1, False), (None, False)])
def test_whether_beliefs_settled_is_read_from_the_exchanges(residual: float | None, settled: bool) -> None:
    exchange = Exchange(rounds=10, residual=residual, outcome="x", messages=1)
    analysis = levelled("BpUcb", framework="da", records={"exchange": exchange})
    assert (theory.BELIEFS_SETTLED in broken(analysis)) != settled
    assert theory.REWARDS_IGNORE_COHORT in broken(analysis)
    assert theory.BELIEFS_SETTLED in unknown(levelled("BpUcb", framework="da", records={"exchange": None}))


def test_the_page_calls_a_vacuous_bound_vacuous_and_says_what_the_oracle_is(tmp_path: Path) -> None:
    header = sample_header(selectors=(SelectorEntry(label="q", kind="QuickInitUcb"),), trials=1)
    records = tuple(sample_record(header, "q", 0, slot) for slot in range(1, 7))
    text = write_report(RunRecords(header, records), tmp_path / "report.html").read_text()
    assert "Theorem 1 for q" in text and "vacuous: it allows more than any run loses on average, as far as seen" in text
    assert (
        "Regret is measured against the best cohort seen" in text
        and "as far as seen, no run loses more than T R_max" in text
    )


@pytest.mark.parametrize(
    ("ends", "targets"),
    [
        ([[]], ()),
        ([[0.646, 0.72], [0.888]], (0.75, 0.8, 0.85)),
        ([[0.85, 0.852, 0.901]], (0.86, 0.88, 0.9)),
        ([[0.5]], (0.49, 0.495, 0.5)),
        ([[0.0]], ()),
    ],
)
def test_targets_are_round_and_below_the_best(ends: list[list[float]], targets: tuple[float, ...]) -> None:
    assert choose_targets(ends) == pytest.approx(targets)
