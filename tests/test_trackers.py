"""The snippets of docs/TRACKERS.md, and what on_slot promises in simulation."""

import importlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

import fedelect
from fedelect.errors import ConfigurationError, RunError
from fedelect.records import SlotRecord, read_run

PAGE = Path(__file__).parents[1] / "docs/TRACKERS.md"


def run_snippet(heading: str) -> dict[str, Any]:
    """Run the code below a heading of the page; return its names."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile("\n".join(code), f"{PAGE.name}, {heading}", "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of protobuf and of the tracker itself
def test_tensorboard_holds_what_the_slots_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.chdir(tmp_path)
    run_snippet("TensorBoard")
    read = events.EventAccumulator(str(tmp_path / "logs")).Reload()
    told = {tag: [(event.step, event.value) for event in read.Scalars(tag)] for tag in read.Tags()["scalars"]}
    again = fedelect.simulate("digits", slots=5, trials=2, progress=False, out=tmp_path / "run")
    for record in read_run(again.path).records:
        values = dict(told[f"{record.selector}/trial {record.trial}/opinion"])
        assert values[record.slot] == pytest.approx(record.mean_opinion, rel=1e-6)
    assert [len(values) for values in told.values()] == [5] * 4


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_weights_and_biases_gets_the_slots_in_offline_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    run_snippet("Weights & Biases")
    wandb.teardown()  # at the end of a process: the one that writes the file may be behind until then
    (stored,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert b"opinion" in stored.read_bytes() and b"reward" in stored.read_bytes()


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_mlflow_gets_the_slots_in_a_local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run_snippet("MLflow")
    (metrics,) = tmp_path.glob("mlruns/*/*/metrics/opinion")
    assert [line.split()[2] for line in metrics.read_text().splitlines()] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_slot_is_reported_once_in_this_process_and_in_order_of_its_replica(tmp_path: Path, workers: int) -> None:
    told: list[SlotRecord] = []
    run = tmp_path / "run"

    def note(record: SlotRecord) -> None:
        told.append(record)
        assert os.getpid() == here

    here = os.getpid()
    fedelect.simulate("digits", slots=4, trials=2, workers=workers, out=run, on_slot=note, progress=False)
    assert sorted(told, key=lambda one: (one.selector, one.trial, one.slot)) == sorted(
        read_run(run).records, key=lambda one: (one.selector, one.trial, one.slot)
    )
    replicas = {(record.selector, record.trial) for record in told}
    assert len(replicas) == 4
    for replica in replicas:
        assert [record.slot for record in told if (record.selector, record.trial) == replica] == [1, 2, 3, 4]
    before = len(told)
    fedelect.simulate("digits", slots=4, trials=2, workers=workers, out=run, on_slot=note, progress=False)
    assert len(told) == before


def test_a_function_that_fails_stops_the_run_and_nothing_is_lost_or_told_twice(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    options: dict[str, Any] = {"slots": 4, "trials": 2, "workers": 1, "progress": False}
    run = tmp_path / "run"

    def fail(record: SlotRecord) -> None:
        if record.slot == 3:
            raise ConnectionError("the tracker is away")
        told.append((record.selector, record.trial, record.slot))

    with pytest.raises(RunError, match=r"on_slot failed .*slot 3.*ConnectionError: the tracker is away.*is kept"):
        fedelect.simulate("digits", out=run, on_slot=fail, **options)
    kept = len(read_run(run).records)
    assert kept > len(told) > 0
    fedelect.simulate(
        "digits",
        out=run,
        on_slot=lambda record: told.append((record.selector, record.trial, record.slot)),
        **options,
    )
    assert len(told) == len(set(told)) and any(slot == 4 for _, _, slot in told)
    assert read_run(run).records == fedelect_records(tmp_path / "again", options)


def fedelect_records(run: Path, options: dict[str, Any]) -> Any:
    """The same run, in one go."""
    fedelect.simulate("digits", out=run, **options)
    return read_run(run).records


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"on_slot: got 3; allowed: a function of a SlotRecord, or None"):
        fedelect.simulate("digits", slots=1, trials=1, on_slot=3, progress=False)  # type: ignore[arg-type]
