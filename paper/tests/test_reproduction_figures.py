"""Every experiment end to end at a tiny size: played, measured, drawn; and what a figure says of itself."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from fedelect.scenario import TopologyConfig
from paper import (
    CLAIMS,
    EXPERIMENTS,
    PRESETS,
    Evidence,
    ResultStore,
    ResultStoreOnFile,
    World,
    assess,
    draw,
    experiment,
)
from paper.catalogue import OPTIMAL, RANDOM, ROUND_ROBIN, bp_ucb, frugal_quick_init, quick_init
from paper.claims import VERDICTS
from paper.figures.clients import link_rule
from paper.measurements.convergence import SCALES, ConvergenceRow, ConvergenceTable
from paper.measurements.registry import keep_measurement
from paper.tests.made_up_results import put
from paper.tests.small_store import TINY, small

pytestmark = pytest.mark.xdist_group("reproduce")  # one worker fills the store

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


def prose(path: Path) -> str:
    """The same with lines joined, for sentences that go over several."""
    return texts(path).replace("\n", " ")


def made_up(folder: Path) -> ResultStoreOnFile:
    return ResultStoreOnFile(folder=folder, base=small(), known_digest="none", block=4)


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS])
def test_every_experiment_is_drawn_and_says_its_trials_slots_and_preset(
    name: str, filled: ResultStore, tmp_path: Path
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


def test_a_figure_is_the_same_to_the_byte_whenever_it_is_drawn(filled: ResultStore, tmp_path: Path) -> None:
    for name in ("decen_performance", "network", "1_2", "Pre2Slot", "cen_selected_time", "convergence", "regret"):
        (once,) = draw(experiment(name), filled, TINY, tmp_path / "once")
        (again,) = draw(experiment(name), filled, TINY, tmp_path / "again")
        assert once.read_bytes() == again.read_bytes()


def test_every_claim_can_be_assessed_at_any_size(filled: ResultStore) -> None:
    evidence = Evidence(store=filled, preset=TINY)
    findings = {one.key: assess(one, evidence) for one in CLAIMS}
    assert all(finding.verdict in VERDICTS for finding in findings.values())
    missing = {key for key, finding in findings.items() if finding.verdict == "not measured yet"}
    # Six slots are too few for beliefs to converge in; regret needs an atlas.
    assert missing <= {"BP_value.converge", "BP_value.differ", "Theorem00.regret", "Theorem02.regret"}


def test_what_is_not_on_file_is_named_on_the_figure(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    put(store, RANDOM, np.full((4, 200), 0.7))
    (path,) = draw(experiment("cen_performance"), store, PRESETS["paper"], tmp_path)
    said = texts(path)
    assert "not run yet: optimal: clients 1 to 5; Quick-Init UCB; conventional UCB; round-robin" in said
    assert "preset paper: 4 trials, T = 200" in said and "(4 of 100 trials)" in said
    for name in ("1_2", "PreTheta", "Pre2Slot", "BP_value", "cen_selected_time", "comparison_table"):
        assert "not run yet" in texts(draw(experiment(name), store, PRESETS["paper"], tmp_path)[0])
    for name in ("1_2", "convergence", "complexity"):
        assert "not measured yet" in texts(draw(experiment(name), store, PRESETS["paper"], tmp_path)[0])


def test_the_papers_figures_are_marked_where_the_horizon_is_the_papers(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    for series in (OPTIMAL, quick_init(), bp_ucb(), ROUND_ROBIN, RANDOM):
        put(store, series, np.full((4, 200), 0.8))
    (path,) = draw(experiment("decen_performance"), store, PRESETS["paper"], tmp_path)
    said = texts(path)
    assert "paper, BP-UCB: 0.8628" in said and "paper, random: 0.7202" in said
    assert "Quick-Init UCB (FL&FA, same seeds): 0.7960 ± 0.0000 (4 of 100 trials)" in said
    (path,) = draw(experiment("decen_performance"), store, PRESETS["quick"], tmp_path)
    assert "paper, BP-UCB" not in texts(path) and "are for T = 200 and are not marked" in texts(path)


def test_the_table_has_slots_to_each_target_beside_the_papers(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    put(store, OPTIMAL, np.full((4, 200), 0.92))
    put(store, RANDOM, np.array([[0.92] * 500, [0.5] * 500] * 2))
    page, numbers = draw(experiment("comparison_table"), store, PRESETS["paper"], tmp_path)
    rows = {(row["target"], row["algorithm"]): row for row in csv.DictReader(numbers.read_text().splitlines())}
    assert rows["0.75", "optimal"]["slots"] == "5" and rows["0.75", "optimal"]["paper_slots"] == "6.0"
    assert rows["0.75", "random"]["slots"] == "252.5" and rows["0.75", "random"]["reached"] == "2"
    assert float(rows["0.75", "optimal"]["accuracy"]) == pytest.approx(4.6 / 6, abs=1e-6)
    said = page.read_text()
    assert "| 0.75 | optimal solution (4 of 100 trials) | 6.00 | 5.00 ± 0.00 | 4 of 4 (T = 200) | 0.7683 |" in said
    assert "not run yet: Quick-Init UCB, BP-UCB" in said


def test_the_axis_of_accuracy_leaves_out_the_steep_start_and_says_so(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    put(store, OPTIMAL, np.full((4, 200), 0.9))
    put(store, RANDOM, np.full((4, 200), 0.81))
    (path,) = draw(experiment("cen_performance"), store, PRESETS["paper"], tmp_path)
    # In slot 10 the lower curve is at 10 * 0.81 / 11 = 0.736, in slot 6 it is at 0.694, in slot 7 at 0.709.
    assert "The vertical axis begins at 0.70; some curves are below that up to slot 6." in prose(path)
    # The paper's own 0.7202 has to be seen here.
    (path,) = draw(experiment("decen_performance"), store, PRESETS["paper"], tmp_path)
    assert "The vertical axis begins at 0.70; some curves are below that up to slot 6." in prose(path)


def test_with_few_slots_nothing_is_cut_off(filled: ResultStore, tmp_path: Path) -> None:
    (path,) = draw(experiment("cen_performance"), filled, TINY, tmp_path)
    assert re.search(r"The vertical axis begins at 0\.\d[05]\.", prose(path))


def test_the_papers_figures_have_four_decimals_and_an_upper_end_is_called_one(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    put(store, RANDOM, np.full((4, 200), 0.8))
    (path,) = draw(experiment("decen_performance"), store, PRESETS["paper"], tmp_path)
    assert "paper, optimal: below 0.8940" in texts(path)


@pytest.mark.parametrize("name", ["cen_performance", "decen_performance", "cen_selected_time", "BP_value"])
def test_a_figure_from_runs_on_the_atlas_says_so_in_its_title(name: str, tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    (trained,) = draw(experiment(name), store, PRESETS["paper"], tmp_path / "trained")
    (on_atlas,) = draw(experiment(name), store, PRESETS["paper"].on_atlas(), tmp_path / "on-atlas")
    titles = [line for line in texts(on_atlas).splitlines() if line.endswith(", on the atlas")]
    assert len(titles) == 1 and titles[0].removesuffix(", on the atlas") in texts(trained).splitlines()


def test_elections_of_both_kinds_of_clients_have_their_interval_over_trials(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    cohorts = np.broadcast_to(np.arange(5), (4, 500, 5)).copy()
    cohorts[:2] += 5  # two trials elect none of the first five
    put(store, quick_init(), np.full((4, 500), 0.8), cohorts=cohorts)
    (path,) = draw(experiment("cen_selected_time"), store, PRESETS["paper"], tmp_path)
    said = texts(path)
    # 0, 0, 500, 500: the t quantile of 3 degrees of freedom, 3.18, times 288.7 / 2.
    assert "i.i.d. data: mean 250.00 ± 459.35 (4 of 100 trials)" in said
    assert "other data: mean 83.33 ± 153.12 (4 of 100 trials)" in said
    assert "paper: mean 228.95 (i.i.d.) and 90.34 (other)" in said


def test_a_sweep_names_what_is_missing_by_its_setting_and_the_trials_of_each_line(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    for clients, trials in ((20, 8), (40, 4)):
        put(store, quick_init(World(clients=clients)), np.full((trials, 500), 0.8))
    (path,) = draw(experiment("Pre2Slot"), store, PRESETS["paper"], tmp_path)
    said = prose(path)
    assert "not run yet: Quick-Init UCB at N = 60, 80, 100;" in said and "theta" not in said
    assert "Quick-Init UCB (4 to 8 of 25 trials)" in said and "preset paper: 4 to 8 trials" in said
    assert "Quick-Init UCB at N = 100 impossible; here it is not run yet." in said and "included" not in said
    put(store, quick_init(World(clients=100)), np.full((4, 500), 0.8))
    (path,) = draw(experiment("Pre2Slot"), store, PRESETS["paper"], tmp_path)
    assert "Quick-Init UCB at N = 100 impossible; it is drawn here." in prose(path)
    (path,) = draw(experiment("PreTheta"), store, PRESETS["paper"], tmp_path)
    assert "BP-UCB at θ = 1, 0.75, 0.5" in prose(path)


def test_a_line_for_which_fewer_trials_are_planned_says_how_many(tmp_path: Path) -> None:
    store = ResultStoreOnFile(folder=tmp_path / "results", base=small(), known_digest="none", block=25)
    put(store, quick_init(), np.full((100, 200), 0.8))
    put(store, frugal_quick_init(), np.full((25, 200), 0.8))
    said = texts(draw(experiment("PreNum"), store, PRESETS["paper"], tmp_path)[0]).splitlines()
    assert "Quick-Init UCB" in said and "Quick-Init UCB with μ = 0.01 (25 trials)" in said


def test_both_panels_of_a_sweep_have_the_same_vertical_axis(tmp_path: Path) -> None:
    store = made_up(tmp_path / "results")
    rising = np.linspace(0.5, 0.9, 500) + np.linspace(0.0, 0.01, 4)[:, np.newaxis]
    put(store, quick_init(), rising)
    (path,) = draw(experiment("Pre2Slot"), store, PRESETS["paper"], tmp_path)
    ticks = re.findall(r"^0\.\d+$", texts(path), flags=re.MULTILINE)
    assert ticks and sorted(ticks) == sorted([*dict.fromkeys(ticks)] * 2)


def test_every_line_of_the_losses_and_of_the_beliefs_is_explained(filled: ResultStore, tmp_path: Path) -> None:
    (path,) = draw(experiment("1_2"), filled, TINY, tmp_path)
    assert "dotted: the same, over the samples of those who train" in prose(path)
    (path,) = draw(experiment("BP_value"), filled, TINY, tmp_path)
    assert "1/N = 0.05: all beliefs equal" in texts(path)


@pytest.mark.parametrize(
    ("topology", "rule"),
    [
        (
            TopologyConfig(neighbours=3),
            "Every client is linked to its 3 nearest; as links go both ways, some have more.",
        ),
        (TopologyConfig(link="radius", radius_km=0.5), "All clients at most 0.5 km apart are linked."),
        (TopologyConfig(link="edges", edges=((0, 1),)), "The links are listed in the scenario."),
    ],
)
def test_the_rule_of_links_is_read_from_the_scenario(topology: TopologyConfig, rule: str) -> None:
    assert link_rule(topology).startswith(rule) and link_rule(topology).endswith("the shortest link between them.")


def test_the_network_says_by_which_rule_clients_are_linked(tmp_path: Path) -> None:
    (path,) = draw(experiment("network"), made_up(tmp_path / "results"), PRESETS["paper"], tmp_path)
    assert link_rule(small().topology) in prose(path)


def test_convergence_is_drawn_from_whatever_rows_there_are(filled: ResultStore, tmp_path: Path) -> None:
    assert list(SCALES) == sorted(SCALES) and {0.001, 0.01, 0.03} <= set(SCALES)
    (path,) = draw(experiment("convergence"), filled, TINY, tmp_path)
    assert "topologies, of 10" in texts(path)
    store = made_up(tmp_path / "results")
    counts = dict.fromkeys(("corollary_holds", "theorem_holds", "theorem_as_printed_holds"), 3)
    row = ConvergenceRow(
        scale=0.5, topologies=7, **counts, settled=5, settled_in_ten=1, median_rounds=None, broken_promises=0
    )
    table = ConvergenceTable(clients=20, tolerance=1e-9, rounds=200, rows=[row])
    keep_measurement(store, PRESETS["paper"], "convergence", table)
    (path,) = draw(experiment("convergence"), store, PRESETS["paper"], tmp_path)
    assert "topologies, of 7" in texts(path) and "preset paper: 7 trials" in texts(path)
