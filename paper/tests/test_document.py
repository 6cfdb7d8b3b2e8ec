"""The document: written from results alone, the same whenever they are."""

import dataclasses
import re
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedelect.atlas import level_contenders, load_atlas, scenario_truth, shipped_atlases
from fedelect.equations.intervals import Interval
from paper import (
    CLAIMS,
    EXPERIMENTS,
    PRESETS,
    Evidence,
    ResultStoreOnFile,
    assess,
    experiment,
    write_record,
)
from paper.blocks import read_block, write_block
from paper.catalogue import OPTIMAL, RANDOM, quick_init
from paper.claims import Finding, Verdict
from paper.claims.democratized import MU
from paper.document import read_verdicts, verdicts_path
from paper.document.calibration_section import COMMIT_LINE, commit_of
from paper.document.claims_section import check_text, claim_lines, so_far
from paper.document.decisions import decision_lines
from paper.document.on_file import on_file_lines, trials_line
from paper.measurements.sensitivity import Sensitivity
from paper.published import fitted_first_term
from paper.tests.committed import ROOT, committed, committed_on_atlas
from paper.tests.made_up_results import put
from paper.tests.small_store import small

pytestmark = pytest.mark.xdist_group("reproduce")


def made_up(folder: Path) -> ResultStoreOnFile:
    return ResultStoreOnFile(folder=folder / "results", base=small(), known_digest="none", block=4)


def made_up_on_atlas(folder: Path) -> ResultStoreOnFile:
    return ResultStoreOnFile(folder=folder / "results-on-atlas", base=small(), known_digest="table", block=4)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a little of everything: results, calibration, document."""
    folder = tmp_path_factory.mktemp("document")
    store = made_up(folder)
    put(store, OPTIMAL, np.full((4, 200), 0.88) + [[0.001], [-0.001]] * 2, untrained=0.0975)
    put(store, RANDOM, np.full((4, 500), 0.76) + [[0.001], [-0.001]] * 2, untrained=0.0975)
    (folder / "calibration.json").write_bytes((ROOT / "paper/results/calibration.json").read_bytes())
    on_atlas = made_up_on_atlas(folder)
    put(on_atlas, RANDOM, np.full((4, 500), 0.77) + [[0.001], [-0.001]] * 2, untrained=0.0975)
    write_record(store, folder / "docs", on_atlas=on_atlas)
    return folder


def test_the_document_is_written_identically_from_the_same_results(written: Path) -> None:
    write_record(made_up(written), written / "again", on_atlas=made_up_on_atlas(written))
    once = sorted(path for path in (written / "docs").rglob("*") if path.is_file())
    again = sorted(path for path in (written / "again").rglob("*") if path.is_file())
    assert [path.name for path in once] == [path.name for path in again]
    assert all(one.read_bytes() == other.read_bytes() for one, other in zip(once, again, strict=True))


def test_every_claim_command_and_figure_is_in_the_document(written: Path) -> None:
    page = (written / "docs/RECORD.md").read_text(encoding="utf-8")
    for claim in CLAIMS:
        assert claim.says in page and f"`{claim.command}`" in page
    for one in EXPERIMENTS:
        assert f"`{one.name}`" in page
    for name in re.findall(r"\]\((reproduction/[^)]+)\)", page):
        assert (written / "docs" / name).exists()
    twice = [one for one in EXPERIMENTS if one.in_main_world]
    assert page.count("](reproduction/") == len(EXPERIMENTS) + len(twice)
    assert page.count("](reproduction/on-atlas/") == len(twice) >= 4


def test_the_document_has_our_figures_with_interval_and_trials(written: Path) -> None:
    page = (written / "docs/RECORD.md").read_text(encoding="utf-8")
    random = 200 * 0.76 / 201
    half_width = 3.1824463 * 0.001 * np.sqrt(4 / 3 / 4) * 200 / 201  # Student's t, 3 degrees of freedom
    alone = "(4 of 100 trials; too few other drawings on file to judge it; claimed: 0.7562 to 0.7762; undecided)"
    assert f"average accuracy: {random:.4f} ± {half_width:.4f} {alone}" in page
    on_atlas = 200 * 0.77 / 201
    assert f"*on the atlas*<br>average accuracy: {on_atlas:.4f} ± {half_width:.4f} {alone}" in page
    assert "the untrained model's accuracy is 0.098 here" in page
    assert "| random (N20-K5-theta1, FL&FA) | 500 | 4 | 100 | (1) |" in page
    assert "Taken: **cold start, dirichlet(0.2), 400 to 1200 samples**" in page
    assert "Not measured yet:" in page


def test_fewer_trials_than_planned_are_never_passed_off_as_all(written: Path) -> None:
    page = (written / "docs/RECORD.md").read_text(encoding="utf-8")
    command = "`python -m paper comparison_table --preset paper"
    some = "4 of 100 trials of clients 1 to 5, random; none of 100 trials of quick-init-ucb:exploration=1.0, bp-ucb."
    assert f"**Trained**: {command}`. On file so far: {some}" in page
    some = "none of 100 trials of clients 1 to 5, quick-init-ucb:exploration=1.0, bp-ucb; 4 of 100 trials of random."
    assert f"**On the atlas** (looked up, not trained): {command} --on-atlas`. On file so far: {some}" in page
    early = "trained: **holds** so far (4 of 100 trials), no evidence: calibrated<br>on the atlas: **not measured yet**"
    assert early in page
    assert (
        "Of the 29 trained series that the figures need, 0 have all their trials on file; of all 2,075 trials, 8 "
        in page
    )
    figures = [path.read_text() for path in (written / "docs/reproduction").rglob("*performance.svg")]
    assert len(figures) == 4 and all("(4 of 100 trials)" in figure for figure in figures)


def test_a_figure_with_all_its_trials_says_so_and_mixed_versions_are_named(tmp_path: Path) -> None:
    store = ResultStoreOnFile(folder=tmp_path / "results", base=small(), known_digest="none", block=50)
    put(store, quick_init(), np.full((100, 500), 0.8))
    first, second = sorted((tmp_path / "results").rglob("trials-*.npz"))
    block = read_block(second)
    older = msgspec.structs.replace(block.key, versions=block.key.versions | {"numpy": "1.0"})
    write_block(second, dataclasses.replace(block, key=older))
    evidence = Evidence(store=store, preset=PRESETS["paper"])
    assert trials_line(experiment("cen_selected_time"), evidence) == "On file: all 100 trials."
    lines = on_file_lines(evidence)
    assert "| quick-init-ucb:exploration=1.0 (N20-K5-theta1, FL&FA) | 500 | 100 | 100 | (1) and (2) |" in lines
    assert f"- (1) {min(older.made_with, read_block(first).key.made_with)}" in lines
    assert any("numpy 1.0" in line for line in lines) and "Blocks of different versions" in lines[-1]
    ratio = assess(next(one for one in CLAIMS if one.key == "cen_selected_time.ratio"), evidence)
    assert "so far" not in claim_lines([ratio], {})[-1]


def test_where_the_two_verdicts_differ_each_has_its_own_reason(written: Path) -> None:
    page = (written / "docs/RECORD.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("| Random selection reaches 72.02 %"))
    assert line.count("two different figures for it") == 1  # the same verdict on both sides, and one reason
    (claim,) = (one for one in CLAIMS if one.key == "cen_performance.quick_init")

    def finding(verdict: Verdict) -> Finding:
        return Finding(claim=claim, measured=(None,), judged=(None,), outcomes=("undecided",), verdict=verdict)

    (row,) = claim_lines([finding("holds")], {claim.key: finding("does not hold")})[2:]
    assert "trained: Within a point.<br>on the atlas: With mu = 1" in row


def test_what_is_said_of_the_optimal_cohort_is_what_the_atlas_shows() -> None:
    atlas = load_atlas(shipped_atlases()["paper"])
    (said,) = (line for line in decision_lines(small()) if line.startswith('- **"Optimal"**'))
    assert atlas.cohort(scenario_truth(atlas).best) == (0, 1, 2, 3, 4)
    assert len(level_contenders(atlas)) == 3 and "cannot tell three others from it" in said


def test_what_is_said_of_equal_mu_is_what_sensitivity_shows(tmp_path: Path) -> None:
    measured = Evidence(store=committed(tmp_path), preset=PRESETS["paper"]).measurement("sensitivity", Sensitivity)
    assert measured is not None
    gaps = {(one.selector, one.exploration): one.running_gap for one in measured.variants if one.ties == "at random"}
    ahead = set()
    for mu in (0.01, 0.1, 1.0):
        quick, bp = gaps["Quick-Init UCB", mu], gaps["BP-UCB", mu]
        assert quick.half_width is not None and bp.half_width is not None
        assert abs(quick.mean - bp.mean) > quick.half_width + bp.half_width
        ahead |= {mu} if quick.mean < bp.mean else set()
    assert measured.slots == 500 and ahead == {0.01, 1.0} and "with 0.1 it is not" in MU
    assert "With the same mu, 0.01 or 1, the order is the paper's" in MU


def test_most_of_the_difference_goes_where_mu_is_the_same(tmp_path: Path) -> None:
    """The reason given for the order of the two methods in the sweeps."""
    evidence = Evidence(store=committed(tmp_path), preset=PRESETS["paper"])
    orders = [
        assess(one, evidence) for one in CLAIMS if one.key in ("PreTheta.order", "PreNum.order", "Pre2Slot.order")
    ]
    for finding in orders:
        assert "most of the difference goes" in finding.why
        measured = {
            c.name: m.mean for c, m in zip(finding.claim.checks, finding.measured, strict=True) if m is not None
        }
        alike = {name.partition(" at ")[2]: mean for name, mean in measured.items() if "with mu = 0.01 less" in name}
        assert len(alike) in (3, 5)
        for setting, mean in alike.items():
            told = f"Quick-Init UCB less BP-UCB at {setting}"
            assert told not in measured or abs(mean) < 0.25 * abs(measured[told])


def test_verdicts_are_kept_beside_the_results(written: Path) -> None:
    kept = read_verdicts(verdicts_path(made_up(written)))
    assert list(kept) == [claim.key for claim in CLAIMS]
    assert kept["comparison_table.optimal.0.75"].verdict == "holds"
    assert kept["cen_performance.optimal"].verdict == "undecided"  # no other drawing is on file
    assert kept["comparison_table.random.0.82"].verdict == "undecided"  # none of four: that may be luck
    assert kept["cen_performance.gain"].outcomes == ["not measured yet"] * 2


def test_verdicts_by_runs_on_the_atlas_are_kept_apart_and_only_for_the_main_world(written: Path) -> None:
    kept = read_verdicts(written / "verdicts-on-atlas.json")
    assert kept["comparison_table.random.0.75"].verdict == "holds"
    assert kept["cen_performance.optimal"].verdict == "not measured yet"
    assert not any(key.startswith(("PreTheta", "PreNum", "Pre2Slot", "1_2")) for key in kept)


def test_the_papers_optimal_column_fits_a_first_term_of_nought() -> None:
    fit = fitted_first_term()
    assert abs(fit.first) < 0.01 and fit.later == pytest.approx(0.896, abs=0.001) and fit.largest_error < 0.001


def test_a_check_is_printed_with_its_claim_and_outcome() -> None:
    (claim,) = (one for one in CLAIMS if one.key == "cen_performance.initiation")
    assert check_text(claim.checks[0], Interval(15504.0, 0.0, 1), "holds").endswith(
        "15504.0 (claimed: 15503.5 to 15504.5; holds)"
    )
    (finds,) = (one for one in CLAIMS if one.key == "cen_selected_time.finds")
    shown = check_text(finds.checks[1], Interval(0.98765, 0.001, 25), "holds", 100)
    assert shown.endswith("a new cohort is tried: 0.9877 ± 0.0010 (25 trials; shown only)")
    assert finds.checks[1].claimed.text(4) == "any"
    short = check_text(finds.checks[0], Interval(0.6, 0.01, 25), "holds", 100)
    assert short.endswith("0.6000 ± 0.0100 (25 of 100 trials; claimed: above 0.5000; holds)")
    (differ,) = (one for one in CLAIMS if one.key == "BP_value.differ")
    over = check_text(differ.checks[0], Interval(0.002, 0.001, 4), "holds", 100)
    assert over.endswith("0.00200 ± 0.00100 (4 blocks of trials; claimed: above 0; holds)")
    three = (Interval(0.002, 0.001, 3),)
    early = Finding(claim=differ, measured=three, judged=three, outcomes=("holds",), verdict="holds")
    assert so_far(early) == "3 of 4 blocks of trials"
    assert check_text(claim.checks[0], None, "x") == "cohorts of 5 out of 20: not measured yet"


def test_the_commit_of_a_file_is_the_one_that_changed_it_last(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text("1")
    assert commit_of(file) is None
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "file.json"], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    commit = commit_of(file)
    assert commit is not None and re.fullmatch("[0-9a-f]{10,}", commit)


def figure_texts(folder: Path) -> dict[str, list[str]]:
    """What is written on each figure; coordinates may differ between versions of matplotlib."""
    return {path.name: re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text()) for path in folder.glob("*.svg")}


@pytest.mark.integration  # draws all figures of the paper
def test_the_committed_document_is_what_the_committed_results_give(tmp_path: Path) -> None:
    page = ROOT / "paper/RECORD.md"
    docs = tmp_path / "docs"
    verdicts = tmp_path / "verdicts.json"
    write_record(committed(tmp_path), docs, on_atlas=committed_on_atlas(tmp_path), verdicts=verdicts)
    told = "run `python -m paper document` and commit what it writes"
    assert _lines(docs / "RECORD.md") == _lines(page), told
    for name in ("verdicts.json", "verdicts-on-atlas.json"):
        assert read_verdicts(tmp_path / name) == read_verdicts(ROOT / "paper/results" / name), told
    for name in ("reproduction", "reproduction/on-atlas"):
        assert figure_texts(docs / name) == figure_texts(ROOT / "paper" / name), told


def _lines(page: Path) -> list[str]:
    """All lines but the one that names a commit."""
    return [line for line in page.read_text(encoding="utf-8").splitlines() if not line.startswith(COMMIT_LINE)]
