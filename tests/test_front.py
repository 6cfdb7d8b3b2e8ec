"""The front door: `fedelect.simulate`, `load_scenario`, `load_run`, and what a `Run` gives."""

import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.sample_runs import measured_run
from tests.worlds import tiny

import fedelect
from fedelect.atlas import shipped_atlases
from fedelect.datasets import load_dataset
from fedelect.errors import ConfigurationError, DataError, MissingExtraError, RunError, RunMismatchError
from fedelect.federation import PlainEngine
from fedelect.records import (
    Measures,
    mean_opinion,
    open_run,
    read_run,
    read_table,
    sorted_records,
    summary_table,
)
from fedelect.selectors import QuickInitUcb, RandomCohort

QUIET: dict[str, Any] = {"progress": False, "workers": 1}


class Lowest(fedelect.AbstractSelector):
    """The available clients with the lowest numbers."""

    symmetric = False

    def _choose(self, slot: int, available: Any) -> Any:
        return tuple(self._candidates(available)[: self.budget].tolist()), ()


def careful(clients: int, budget: int, seed: int) -> fedelect.AbstractSelector:
    return QuickInitUcb(clients=clients, budget=budget, exploration=0.01, seed=seed)


@pytest.fixture(scope="module")
def run() -> fedelect.Run:
    selectors: list[Any] = ["quick-init-ucb:exploration=0.01", "random", Lowest, careful]
    return fedelect.simulate(tiny(), selectors=selectors, slots=5, trials=3, seed=4, **QUIET)


def test_names_classes_and_functions_play_side_by_side(run: fedelect.Run) -> None:
    here = __name__
    assert run.selectors == ("quick-init-ucb:exploration=0.01", "random", f"{here}:Lowest", f"{here}:careful")
    assert run.complete and run.header.planned == 4 * 3 * 5
    assert (run.cohorts(f"{here}:Lowest") == np.arange(run.header.budget)).all()
    np.testing.assert_array_equal(run.cohorts("quick-init-ucb:exploration=0.01"), run.cohorts(f"{here}:careful"))


def test_arrays_hold_what_is_on_record(run: fedelect.Run) -> None:
    header = run.header
    opinions, rewards, cohorts = run.opinions("random"), run.rewards("random"), run.cohorts("random")
    assert opinions.shape == (3, 5, header.clients) and rewards.shape == (3, 5)
    assert cohorts.shape == (3, 5, header.budget) and cohorts.dtype == np.int64
    for record in read_run(run.path).records:
        if record.selector == "random":
            place = record.trial, record.slot - 1
            assert tuple(opinions[place]) == record.opinions and rewards[place] == record.reward
            assert tuple(cohorts[place]) == record.cohort


def test_what_is_not_on_record_is_nan_or_minus_one(tmp_path: Path) -> None:
    finished = fedelect.simulate(tiny(), selectors=["random"], slots=3, out=tmp_path / "run", **QUIET)
    lines = (tmp_path / "run/slots.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run/slots.jsonl").write_bytes(b"".join(lines[:2]))
    assert not finished.complete
    assert np.isnan(finished.opinions("random")[0, 2]).all() and np.isnan(finished.rewards("random")[0, 2])
    assert (finished.cohorts("random")[0, 2] == -1).all()


def test_the_summary_is_that_of_the_command_line_as_figures_text_and_html(run: fedelect.Run) -> None:
    summary = run.summary()
    assert summary == summary_table(read_table(run.path))
    assert [row.label for row in summary] == list(run.selectors) and len(summary) == 4
    assert summary[1].running_mean.mean == pytest.approx(run.rewards("random").mean())
    text = str(summary)
    assert text.startswith("tiny, FL&FA") and all(label in text for label in run.selectors)
    page = run._repr_html_()
    assert page.count("<tr>") == 5 and "random" in page and "<table>" in page
    assert summary.title in repr(run)


def test_a_dataframe_has_a_row_for_each_selector_trial_and_slot(run: fedelect.Run) -> None:
    pytest.importorskip("pandas")
    frame = run.to_dataframe()
    assert list(frame.columns[:7]) == ["selector", "trial", "slot", "status", "cohort", "reward", "mean_opinion"]
    assert len(frame) == run.header.planned
    assert list(frame.selector.drop_duplicates()) == list(run.selectors)
    records = {(one.selector, one.trial, one.slot): one for one in run.records()}
    for row in frame.itertuples():
        record = records[row.selector, row.trial, row.slot]
        assert row.cohort == record.cohort and row.mean_opinion == mean_opinion(record)


def test_measures_are_an_array_and_columns_of_their_own(run: fedelect.Run, tmp_path: Path) -> None:
    made_up = measured_run(until=20)
    with open_run(tmp_path, made_up.header) as writer:
        writer.append(made_up.records)
    measured = fedelect.load_run(tmp_path)
    accuracy = measured.accuracy("mine")
    assert accuracy.shape == (4, 30) and np.isnan(accuracy[:, 20:]).all()
    rows = {(row["selector"], row["trial"], row["slot"]): row for row in measured.rows()}
    for record in made_up.records:
        row = rows[record.selector, record.trial, record.slot]
        assert record.measures is not None
        assert {name: row[name] for name in Measures.__struct_fields__} == msgspec.structs.asdict(record.measures)
        assert (row["available"], row["failed"], row["left_out"], row["joined"]) == (None, (), (), ())
        if record.selector == "mine":
            assert accuracy[record.trial, record.slot - 1] == record.measures.accuracy
    assert np.isnan(run.accuracy("random")).all()
    assert {row["accuracy"] for row in run.rows()} == {None}
    assert "clean accuracy" in str(measured.summary()) and "clean accuracy" not in str(run.summary())


def test_without_pandas_the_rows_are_there_and_the_package_is_named(
    run: fedelect.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingExtraError, match="needs pandas, which is not installed; run: pip install pandas"
    ) as told:
        run.to_dataframe()
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    assert len(list(run.rows())) == run.header.planned


def test_a_report_and_figures_are_written_where_asked(run: fedelect.Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = run.report(tmp_path / "page.html")
    assert page == tmp_path / "page.html" and "random" in page.read_text(encoding="utf-8")
    drawn = run.figures(tmp_path / "figures", format="svg")
    assert drawn and all(path.suffix == ".svg" and path.exists() for path in drawn)


def test_an_unknown_selector_is_answered_with_those_there_are(run: fedelect.Run) -> None:
    with pytest.raises(ConfigurationError, match=r"no selector 'ramdom'.*did you mean 'random'\?"):
        run.opinions("ramdom")


def test_a_temporary_run_goes_with_its_object_and_can_be_saved(tmp_path: Path) -> None:
    run = fedelect.simulate(tiny(), selectors=["random"], slots=2, **QUIET)
    folder, records = run.path, list(run.records())
    kept = run.save(tmp_path / "kept")
    with pytest.raises(RunError, match="exists; name a new folder"):
        run.save(tmp_path / "kept")
    del run
    gc.collect()
    assert not folder.exists()
    assert list(kept.records()) == records == list(fedelect.load_run(tmp_path / "kept").records())


def test_a_run_in_a_folder_is_resumed_and_another_one_is_refused(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    options: dict[str, Any] = {"selectors": ["random"], "slots": 4, "trials": 1, "out": tmp_path / "run", "workers": 1}
    fedelect.simulate(tiny(), progress=False, **options)
    again = fedelect.simulate(tiny(), progress=lambda finished, total: told.append((finished, total)), **options)
    assert told == [(4, 4)] and again.complete
    with pytest.raises(RunMismatchError, match="slots"):
        fedelect.simulate(tiny(), progress=False, **options | {"slots": 5})


def test_the_call_is_noted_in_the_record(run: fedelect.Run) -> None:
    command = run.header.provenance.command
    assert command.startswith("fedelect.simulate('tiny', selectors=['quick-init-ucb:exploration=0.01', 'random'")


def test_the_command_line_makes_the_same_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedelect", "run", "digits", "--selector", "random", "--slots", "2"]
    subprocess.run([*command, "--out", str(tmp_path / "run")], check=True, capture_output=True)
    ours = fedelect.simulate("digits", selectors=["random"], slots=2, **QUIET)
    theirs = read_run(tmp_path / "run")
    assert sorted_records(theirs) == sorted_records(read_run(ours.path))


SCRIPT = """
import fedelect

class Mine(fedelect.AbstractSelector):
    symmetric = False
    def _choose(self, slot, available):
        return tuple(range(self.budget)), ()

run = fedelect.simulate("digits", selectors=[Mine, lambda clients, budget, seed: Mine(clients=clients, budget=budget)],
                        slots=2, trials=2)
print(run.selectors, run.complete)
"""


def test_a_class_of_a_script_plays_in_one_process_and_a_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "('Mine', 'lambda') True\n"
    assert "all trials run in this process, for other processes cannot import Mine" in done.stderr


def test_a_scenario_is_changed_key_by_key() -> None:
    changed = fedelect.load_scenario("digits", clients=50, start="warm", data={"skew": "dirichlet", "alpha": 0.3})
    base = fedelect.load_scenario("digits")
    assert (changed.clients, changed.start, changed.data.alpha) == (50, "warm", 0.3)
    assert changed.data.samples == base.data.samples and changed.model == base.model
    assert fedelect.load_scenario(changed, clients=20).data.skew == "dirichlet"
    for wrong, says in (({"cleints": 3}, "cleints"), ({"clients": "many"}, "clients"), ({"data": {"skwe": 1}}, "skwe")):
        with pytest.raises(ConfigurationError, match=says):
            fedelect.load_scenario("digits", **wrong)
    with pytest.raises(ConfigurationError, match="neither a preset"):
        fedelect.load_scenario("digts")


def test_a_scenario_file_finds_its_data_beside_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_dataset("digits")
    (tmp_path / "worlds").mkdir()
    arrays: dict[str, Any] = {
        "X": data.inputs,
        "y": data.labels,
        "X_test": data.test_inputs,
        "y_test": data.test_labels,
    }
    np.savez(tmp_path / "worlds/mine.npz", **arrays)
    text = 'name = "mine"\nclients = 4\nbudget = 2\nslots = 2\n[data]\nsource = "mine.npz"\niid_clients = 2\n'
    (tmp_path / "worlds/mine.toml").write_text(text + "samples = [20, 30]\n")
    by_path = fedelect.simulate(tmp_path / "worlds/mine.toml", selectors=["random"], **QUIET)
    assert by_path.header.scenario["data"]["source"] == "mine.npz"
    config = fedelect.load_scenario(tmp_path / "worlds/mine.toml", slots=1)
    monkeypatch.chdir(tmp_path)
    assert fedelect.simulate(config, selectors=["random"], **QUIET).complete


@pytest.mark.parametrize("as_mapping", [False, True])
def test_data_may_be_arrays(as_mapping: bool) -> None:
    data = load_dataset("digits")
    images = data.inputs.reshape(-1, 8, 8)
    arrays: Any = (images, data.labels, data.test_inputs.reshape(-1, 8, 8), data.test_labels)
    if as_mapping:
        arrays = dict(zip(("X", "y", "X_test", "y_test"), arrays, strict=True))
    ours = fedelect.simulate(tiny(), selectors=["random"], slots=2, data=arrays, **QUIET)
    theirs = fedelect.simulate(tiny(), selectors=["random"], slots=2, **QUIET)
    assert ours.header.scenario["data"]["source"] == "arrays" and ours.header.data_digest == theirs.header.data_digest
    assert list(ours.records()) == list(theirs.records())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ((1, 2), r"must be \(X, y, X_test, y_test\)"),
        ({"X": 1}, "lacks y, X_test, y_test"),
        ("digits.csv", "got str"),
        ((np.zeros((3, 2)), [0, 1], np.zeros((1, 2)), [0]), "3 inputs but 2 labels"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        fedelect.simulate(tiny(), selectors=["random"], data=data, **QUIET)


def test_an_atlas_takes_the_place_of_training() -> None:
    path = shipped_atlases()["paper"]
    run = fedelect.simulate(path, selectors=["random"], slots=3, **QUIET)
    assert run.header.engine == "atlas"
    with pytest.raises(ConfigurationError, match="`data` is not used"):
        fedelect.simulate(path, selectors=["random"], data=(1, 2, 3, 4), **QUIET)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"framework": "fl"}, "unknown framework 'fl'; use fa or da"),
        ({"selectors": []}, "no selector is named"),
        ({"selectors": ["random", "random"]}, "named twice"),
        ({"selectors": [3]}, "a selector is a name, a class or a function, got 3"),
        ({"selectors": ["bp-ucb"]}, "needs 'beliefs'"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"scenario": 3}, "a scenario is a preset's name"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    options: dict[str, Any] = {"scenario": tiny(), "selectors": ["random"], "out": tmp_path / "run"} | QUIET
    with pytest.raises(ConfigurationError, match=says):
        fedelect.simulate(**options | change)
    assert not (tmp_path / "run").exists()


def test_the_top_level_is_small_and_typed_names_resolve() -> None:
    assert len(fedelect.__all__) <= 12 and dir(fedelect) == sorted(fedelect.__all__)
    assert all(hasattr(fedelect, name) for name in fedelect.__all__)
    assert issubclass(RandomCohort, fedelect.AbstractSelector)
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        fedelect.simulat  # noqa: B018


def test_one_selector_need_not_be_in_a_list_and_lambdas_are_numbered() -> None:
    assert fedelect.simulate(tiny(), selectors="random", slots=1, **QUIET).selectors == ("random",)
    assert fedelect.simulate(tiny(), selectors=RandomCohort, slots=1, **QUIET).selectors == ("random",)
    pair: list[Any] = [lambda **given: RandomCohort(**given), lambda **given: QuickInitUcb(exploration=0.1, **given)]
    numbers: dict[str, Any] = {"slots": np.int64(2), "trials": np.int64(1)}
    run = fedelect.simulate(tiny(), selectors=pair, **numbers, **QUIET)
    assert run.selectors == ("lambda", "lambda-2")
    assert [entry.kind for entry in run.header.selectors] == ["RandomCohort", "QuickInitUcb"]


class Starting(fedelect.AbstractSelector):
    """A constructor with a parameter that has the name of a setting of the scenario."""

    def __init__(self, *, clients: int, budget: int, start: float = 0.5) -> None:
        super().__init__(clients=clients, budget=budget)
        self.start = start

    def _choose(self, slot: int, available: Any) -> Any:
        return tuple(range(self.budget)), ()


def test_a_selectors_own_parameters_are_not_those_of_the_scenario() -> None:
    run = fedelect.simulate(tiny(), selectors=[Starting, f"{__name__}:Starting:start=0.25"], slots=1, **QUIET)
    assert [entry.parameters["start"] for entry in run.header.selectors] == [0.5, 0.25]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(DataError, match="must hold arrays"):
        fedelect.simulate(tiny(), data=([[1, 2], [3]], [0], [[1, 2]], [0]), **QUIET)
    with pytest.raises(ConfigurationError, match="a scenario is a preset's name"):
        fedelect.load_scenario(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="slots must be a whole number"):
        fedelect.simulate(tiny(), slots="2", **QUIET)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="leave the engine out"):
        fedelect.simulate(shipped_atlases()["paper"], selectors=["random"], engine=PlainEngine(), **QUIET)
