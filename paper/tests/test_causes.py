"""Claims by cause, and the one page."""

from pathlib import Path

from paper import CLAIMS, PRESETS, Evidence
from paper.catalogue import FEWER_TRIALS, OPTIMAL, RANDOM, TRIALS, bp_ucb, frugal_quick_init, quick_init
from paper.claims.causes import CAUSES, cause_of
from paper.claims.measures import accuracy
from paper.document import write_page
from paper.document.claims_section import cause_lines
from paper.tests.committed import ROOT, committed


def test_every_claim_has_exactly_one_cause() -> None:
    listed = [key for cause in CAUSES for key in cause.claims]
    assert sorted(listed) == sorted(claim.key for claim in CLAIMS)


def test_what_is_calibrated_arithmetic_a_theorem_or_avoidable_is_no_evidence() -> None:
    for claim in CLAIMS:
        why = " ".join(claim.why.values())
        if "The calibration aimed at this figure" in why or "Arithmetic:" in why or claim.key.startswith("Theorem"):
            assert not cause_of(claim.key).counts, claim.key
    assert not cause_of("Pre2Slot.impossible").counts and not cause_of("complexity.bp_ucb").counts
    assert cause_of("cen_performance.quick_init").counts


def test_a_cause_is_one_line_and_its_claims_are_counted_in_it() -> None:
    lines = cause_lines([])
    assert len(lines) == 2 + len(CAUSES) and all(" | 0 | " in line for line in lines[2:])


def test_the_committed_page_is_short_and_what_the_committed_results_give(tmp_path: Path) -> None:
    written = write_page(committed(tmp_path), tmp_path / "docs").read_text(encoding="utf-8")
    told = "run `python -m paper document` and commit what it writes"
    assert (ROOT / "docs/REPRODUCTION.md").read_text(encoding="utf-8") == written, told
    assert len(written.split()) <= 1200
    assert sum(line.startswith(("| Quick-Init UCB:", "| BP-UCB:")) for line in written.splitlines()) == 12
    assert written.count("of 6 drawings") >= 2


def test_the_figures_of_the_readme_are_those_of_the_record(tmp_path: Path) -> None:
    evidence = Evidence(store=committed(tmp_path), preset=PRESETS["paper"])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for series, trials, row in (
        (quick_init(), TRIALS, "| Quick-Init UCB, mu = 1 as printed | 0.8657 | {} |"),
        (frugal_quick_init(), FEWER_TRIALS, "| Quick-Init UCB, mu = 0.01 | | {} |"),
        (bp_ucb(), TRIALS, "| BP-UCB, mu = 0.01 | 0.8628 | {} |"),
    ):
        found = accuracy(series, trials=trials)(evidence)
        assert found is not None and found.count == trials
        assert row.format(f"{found.mean:.4f} ± {found.half_width:.4f}") in readme
    fixed, random = accuracy(OPTIMAL)(evidence), accuracy(RANDOM)(evidence)
    assert fixed is not None and random is not None
    assert f"| 0.8801; 0.7662 | {fixed.mean:.4f}; {random.mean:.4f} |" in readme
