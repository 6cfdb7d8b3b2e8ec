"""Every experiment end to end at a tiny size: played, measured, drawn; and what a figure says of itself."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from tests.reproduce.made_up_results import put
from tests.reproduce.small_library import TINY, fill, small, small_library

from fedelect.reproduce import CLAIMS, EXPERIMENTS, PRESETS, Evidence, Library, LibraryOnFile, assess, draw, experiment
from fedelect.reproduce.catalogue import OPTIMAL, RANDOM, ROUND_ROBIN, bp_ucb, quick_init
from fedelect.reproduce.claims import VERDICTS

pytestmark = pytest.mark.xdist_group("reproduce")  # one worker fills the library

TRIALS = {
    "network": "0 trials",
    "convergence": "10 trials",
    "complexity": "2 trials (repetitions)",
    "regret": "2 to 4 trials",
}


def texts(path: Path) -> str:
    """What is written on a figure."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".svg":
        return content
    return "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", content)).replace("&amp;", "&")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = small_library(tmp_path_factory.mktemp("small") / "results")
    fill(library)
    return library


def made_up(folder: Path) -> LibraryOnFile:
    return LibraryOnFile(folder=folder, base=small(), known_digest="none", block=4)


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS])
def test_every_experiment_is_drawn_and_says_its_trials_slots_and_preset(
    name: str, filled: Library, tmp_path: Path
) -> None:
    drawn = draw(experiment(name), filled, TINY, tmp_path)
    assert drawn
    for path in drawn:
        said = texts(path)
        if path.suffix == ".csv":
            assert all(row["trials"] == "2" and row["preset"] == "tiny" for row in csv.DictReader(said.splitlines()))
            continue
        assert f"preset tiny: {TRIALS.get(name, '2 trials')}" in said
        assert ("T = 6" in said) == (name not in ("network", "convergence"))
        assert "not run yet" not in said and "not measured yet" not in said


def test_a_figure_is_the_same_to_the_byte_whenever_it_is_drawn(filled: Library, tmp_path: Path) -> None:
    for name in ("decen_performance", "network"):
        (once,) = draw(experiment(name), filled, TINY, tmp_path / "once")
        (again,) = draw(experiment(name), filled, TINY, tmp_path / "again")
        assert once.read_bytes() == again.read_bytes()


def test_every_claim_can_be_assessed_at_any_size(filled: Library) -> None:
    evidence = Evidence(library=filled, preset=TINY)
    findings = {one.key: assess(one, evidence) for one in CLAIMS}
    assert all(finding.verdict in VERDICTS for finding in findings.values())
    missing = {key for key, finding in findings.items() if finding.verdict == "not measured yet"}
    # Six slots are too few for beliefs to converge in; regret needs an atlas.
    assert missing <= {"BP_value.converge", "BP_value.differ", "Theorem00.regret", "Theorem02.regret"}


def test_what_is_not_on_file_is_named_on_the_figure(tmp_path: Path) -> None:
    library = made_up(tmp_path / "results")
    put(library, RANDOM, np.full((4, 200), 0.7))
    (path,) = draw(experiment("cen_performance"), library, PRESETS["paper"], tmp_path)
    said = texts(path)
    assert "not run yet: optimal: clients 1 to 5; Quick-Init UCB; conventional UCB; round-robin" in said
    assert "preset paper: 4 trials, T = 200" in said and "(4 of 100 trials)" in said
    for name in ("1_2", "PreTheta", "Pre2Slot", "BP_value", "cen_selected_time", "comparison_table"):
        assert "not run yet" in texts(draw(experiment(name), library, PRESETS["paper"], tmp_path)[0])
    for name in ("1_2", "convergence", "complexity"):
        assert "not measured yet" in texts(draw(experiment(name), library, PRESETS["paper"], tmp_path)[0])


def test_the_papers_figures_are_marked_where_the_horizon_is_the_papers(tmp_path: Path) -> None:
    library = made_up(tmp_path / "results")
    for series in (OPTIMAL, quick_init(), bp_ucb(), ROUND_ROBIN, RANDOM):
        put(library, series, np.full((4, 200), 0.8))
    (path,) = draw(experiment("decen_performance"), library, PRESETS["paper"], tmp_path)
    said = texts(path)
    assert "paper, BP-UCB: 0.8628" in said and "paper, random: 0.7202" in said
    assert "Quick-Init UCB (FL&FA, same seeds): 0.7965 ± 0.0000 (4 of 100 trials)" in said
    (path,) = draw(experiment("decen_performance"), library, PRESETS["quick"], tmp_path)
    assert "paper, BP-UCB" not in texts(path) and "are for T = 200 and are not marked" in texts(path)


def test_the_table_has_slots_to_each_target_beside_the_papers(tmp_path: Path) -> None:
    library = made_up(tmp_path / "results")
    put(library, OPTIMAL, np.full((4, 200), 0.9), untrained=0.1)
    put(library, RANDOM, np.array([[0.9] * 500, [0.5] * 500] * 2), untrained=0.1)
    page, numbers = draw(experiment("comparison_table"), library, PRESETS["paper"], tmp_path)
    rows = {(row["target"], row["algorithm"]): row for row in csv.DictReader(numbers.read_text().splitlines())}
    assert rows["0.75", "optimal"]["slots"] == "5" and rows["0.75", "optimal"]["paper_slots"] == "6.0"
    assert rows["0.75", "random"]["slots"] == "252.5" and rows["0.75", "random"]["reached"] == "2"
    assert float(rows["0.75", "optimal"]["accuracy"]) == pytest.approx(4.6 / 6, abs=1e-6)
    said = page.read_text()
    assert "| 0.75 | optimal solution (4 of 100 trials) | 6.00 | 5.00 ± 0.00 | 4 of 4 (T = 200) | 0.7683 |" in said
    assert "not run yet: Quick-Init UCB, BP-UCB" in said
