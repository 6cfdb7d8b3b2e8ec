"""Claims by cause, and the one page."""

from pathlib import Path

from paper import CLAIMS
from paper.claims.causes import CAUSES, cause_of
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
    page = write_page(committed(tmp_path), tmp_path / "docs").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| Quick-Init UCB: average accuracy, T = 200 |"))
    paper, printed, percent = [cell.strip() for cell in row.strip("|").split("|")][1:4]
    assert f"\n| Quick-Init UCB | {paper} | {printed} | {percent} |\n" in readme
