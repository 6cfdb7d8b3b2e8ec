"""What the figures `regret` and `sensitivity` say of themselves: sentences made from numbers."""

from pathlib import Path

import pytest

from fedelect.equations import theory
from paper import ResultStore, draw, experiment
from paper.figures.sensitivity import explanation
from paper.figures.theory import conditions, explain_bounds, find_coinciding
from paper.measurements.regret import Regret, RegretCurve, RegretWorld
from paper.measurements.sensitivity import Estimate, Sensitivity, Variant
from paper.tests.small_store import TINY
from paper.tests.test_reproduction_figures import prose, texts

pytestmark = pytest.mark.xdist_group("reproduce")  # one worker fills the store


def regret_curve(selector: str, exploration: float, mean: list[float], violated: list[str]) -> RegretCurve:
    return RegretCurve(
        selector=selector,
        exploration=exploration,
        theorem="Theorem 1",
        trials=9,
        slots=[1, 10],
        mean=mean,
        half_width=[0.0, 0.0],
        bound=[9.0, 9.0],
        ceiling=[1.0, 10.0],
        violated=violated,
    )


def regret_world(*curves: RegretCurve) -> RegretWorld:
    return RegretWorld(
        name="one", clients=6, budget=2, optimum=0.9, smallest_gap=0.001, largest_gap=0.5, curves=list(curves)
    )


def test_curves_of_regret_that_hide_each_other_are_named() -> None:
    same = regret_world(regret_curve("BP-UCB", 0.1, [1.0, 2.0], []), regret_curve("BP-UCB", 2**0.5, [1.0, 2.0], []))
    near = regret_world(regret_curve("BP-UCB", 0.1, [1.0, 2.0], []), regret_curve("BP-UCB", 1.0, [1.0, 2.01], []))
    apart = regret_world(regret_curve("BP-UCB", 0.1, [1.0, 2.0], []), regret_curve("BP-UCB", 1.0, [1.0, 2.1], []))
    other = regret_world(
        regret_curve("BP-UCB", 1.0, [1.0, 2.0], []), regret_curve("Quick-Init UCB", 1.0, [1.0, 2.0], [])
    )
    assert find_coinciding(Regret(worlds=[same, near])) == [
        "Left: the curves of BP-UCB for mu = 0.1 and 1.41 coincide at every slot.",
        "Right: the curves of BP-UCB for mu = 0.1 and 1 differ by at most 1 % at every slot and hide each other.",
    ]
    assert find_coinciding(Regret(worlds=[apart, other])) == []


def test_conditions_that_runs_do_not_meet_are_short_lines() -> None:
    once, root, alone = theory.EVERY_ARM_PLAYED_ONCE, theory.EXPLORATION_IS_ROOT_TWO, theory.REWARDS_IGNORE_COHORT
    curves = [
        regret_curve("Quick-Init UCB", 1.0, [1.0, 2.0], [root, once]),
        regret_curve("Quick-Init UCB", 2**0.5, [1.0, 2.0], [once]),
        regret_curve("BP-UCB", 0.01, [1.0, 2.0], [alone, "the moon is full (as it is now and then)"]),
    ]
    lines = conditions(curves)
    assert lines[1:] == [
        "- Quick-Init UCB, mu = 1: mu must be √2, or one of the bound's two terms does not follow.",
        "- Quick-Init UCB, every mu: every cohort must be played once at the start; here most are scored unplayed.",
        "- BP-UCB, every mu: a client's reward must not depend on who else trains; here it does.",
        "- BP-UCB, every mu: the moon is full.",
    ]
    assert conditions([regret_curve("BP-UCB", 2**0.5, [1.0, 2.0], [])]) == []


def test_what_the_bounds_rest_on_is_said_of_the_main_world(filled: ResultStore, tmp_path: Path) -> None:
    said = explain_bounds(regret_world())
    assert said.startswith("Left: R_min = 0.001 is the smallest") and "those of 14 others" in said
    (path,) = draw(experiment("regret"), filled, TINY, tmp_path)
    assert "those of 15,503 others" in prose(path) and "What the proofs suppose and these runs do not meet:" in texts(
        path
    )


def sensitivity(rows: list[tuple[str, float, str, float, float, float]], half: float | None) -> Sensitivity:
    """Made-up variants: selector, mu, ties, final gap, running gap, share; half-widths are shares, too."""
    made = [
        Variant(
            selector=selector,
            exploration=mu,
            ties=ties,
            final_gap=Estimate(mean=final, half_width=half),
            running_gap=Estimate(mean=running, half_width=half),
            share_of_first_five=Estimate(mean=share, half_width=half),
        )
        for selector, mu, ties, final, running, share in rows
    ]
    return Sensitivity(trials=9, slots=500, optimum=0.8, variants=made)


QUICK, BP, NUMBER = "Quick-Init UCB", "BP-UCB", "by client number"


def test_what_sensitivity_says_is_made_from_its_numbers() -> None:
    rows = [
        (QUICK, 0.01, "at random", 0.02, 0.03, 0.50),
        (QUICK, 1.0, "at random", 0.10, 0.08, 0.40),
        (QUICK, 0.01, NUMBER, 0.02, 0.03, 0.60),
        (QUICK, 1.0, NUMBER, 0.02, 0.03, 0.405),
        (BP, 0.01, "at random", 0.05, 0.05, 0.50),
        (BP, 1.0, "at random", 0.01, 0.052, 0.50),
    ]
    beside, best, ties = explanation(sensitivity(rows, 0.003))
    assert (
        "with mu = 1 by 6.40 ± 0.24 points (more) over all slots and 8.00 ± 0.24 points (more) in the last 50 slots; "
        "with mu = 0.01 by 2.40 ± 0.24 points (more) over all slots and 1.60 ± 0.24 points (the paper's is within the "
        "interval) in the last 50 slots." in beside
    )
    assert "1.44 points below clients 1 to 5 at T = 200" in beside
    assert beside.endswith("0.01 comes nearest to the paper's gap over all slots, not the paper's 1.")
    assert "with mu = 0.01 for Quick-Init UCB, ties at random;" in best
    assert "mu = 0.01 or 1 for Quick-Init UCB, ties by client number;" in best
    assert "mu = 0.01 or 1 over all slots and 1 in the last 50 slots for BP-UCB, ties by a hash (" in best
    assert "60.00 ± 0.30 % instead of 50.00 ± 0.30 % at mu = 0.01 (more)" in ties
    assert "40.50 ± 0.30 % instead of 40.00 ± 0.30 % at mu = 1 (intervals overlap)" in ties
    assert ties.endswith("in the paper it is 45.8 %.")


def test_what_sensitivity_says_turns_with_its_numbers() -> None:
    rows = [
        (QUICK, 0.01, "at random", 0.10, 0.10, 0.60),
        (QUICK, 1.0, "at random", 0.01, 0.01, 0.60),
        (QUICK, 0.01, NUMBER, 0.02, 0.03, 0.50),
    ]
    beside, best, ties = explanation(sensitivity(rows, 0.001))
    assert "with mu = 1 by 0.80 ± 0.08 points (less) over all slots" in beside
    assert beside.endswith("Of the mu tried, 1 comes nearest to the paper's gap over all slots, the paper's own.")
    assert "with mu = 1 for Quick-Init UCB, ties at random; mu = 0.01" in best and "BP-UCB" not in best
    assert "50.00 ± 0.10 % instead of 60.00 ± 0.10 % at mu = 0.01 (less);" in ties


def test_without_intervals_sensitivity_does_not_judge() -> None:
    rows = [
        (QUICK, 0.01, "at random", 0.10, 0.10, 0.60),
        (QUICK, 1.0, "at random", 0.01, 0.01, 0.60),
        (QUICK, 1.0, NUMBER, 0.01, 0.01, 0.90),
    ]
    beside, best, ties = explanation(sensitivity(rows, None))
    assert "0.80 points (no interval) over all slots" in beside
    assert "mu = 1 or 0.01 for Quick-Init UCB, ties at random" in best and "do not tell them apart" in best
    assert "90.00 % instead of 60.00 % at mu = 1 (no intervals)" in ties
    (best,) = explanation(sensitivity([(BP, 1.0, "at random", 0.01, 0.01, 0.5)], None))
    assert best.endswith("with mu = 1 for BP-UCB, ties by a hash.")


def test_sensitivity_has_the_looks_and_words_of_the_other_figures(filled: ResultStore, tmp_path: Path) -> None:
    picture, table = draw(experiment("sensitivity"), filled, TINY, tmp_path)
    said, drawn = prose(picture), picture.read_text(encoding="utf-8")
    assert "gap in the last 6 slots, % of the optimum" in said and "gap over all slots, % of the optimum" in said
    assert "BP-UCB, ties by a hash" in said and "not to clients 1 to 5" in said
    assert "#d55e00" in drawn and "#0072b2" in drawn and "#009e73" not in drawn
    lines = table.read_text(encoding="utf-8").splitlines()
    assert "| gap, last 6 slots, % of the optimum | gap, all slots, % of the optimum |" in lines[0]
    assert any(line.startswith("| BP-UCB | 0.01 | by a hash |") for line in lines)
    assert "Gaps are to the best cohort of the atlas' table" in "\n".join(lines)
    assert [line[:2] for line in lines[-3:]] == ["- "] * 3
