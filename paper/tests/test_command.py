"""`python -m paper`, as a user meets it, on a world that is small enough."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedelect.federation import train
from fedelect.records.lock import FolderLock
from paper import EXPERIMENTS, PRESETS, committed_results
from paper.__main__ import main
from paper.catalogue import RANDOM
from paper.tests.made_up_results import put
from paper.tests.small_store import TINY, small

Reproduce = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Reproduce:
    """Run the command in an empty folder; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["paper", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return int(end.value.code or 0), shown.out, shown.err

    return run


def test_list_names_every_figure_and_table(reproduce: Reproduce) -> None:
    code, out, _ = reproduce("list")
    assert code == 0 and all(one.name in out for one in EXPERIMENTS)


def test_unknown_names_are_told_what_is_known(reproduce: Reproduce) -> None:
    code, _, told = reproduce("figure_9")
    assert code == 1 and "unknown experiment 'figure_9'" in told and "cen_performance" in told
    code, _, told = reproduce("network", "--preset", "huge")
    assert code == 1 and "use quick or paper" in told


def test_a_figure_is_one_command_and_the_second_time_only_drawn(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    code, out, _ = reproduce("BP_value", "--workers", "1", "--results", "kept")
    assert code == 0 and "1 blocks to play, about" in out and "BP_value: kept/figures/BP_value.svg" in out
    assert "2 trials, T = 6" in (tmp_path / "kept/figures/BP_value.svg").read_text()
    code, out, _ = reproduce("BP_value", "--workers", "1", "--results", "kept", "--figures", "drawn")
    assert code == 0 and "to play" not in out and (tmp_path / "drawn/BP_value.svg").exists()
    code, out, _ = reproduce("convergence", "--results", "kept")
    assert code == 0 and "measuring: convergence" in out and (tmp_path / "kept/figures/convergence.svg").exists()


def test_a_measurement_is_made_alone_and_a_stopped_one_goes_on(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    stop_at = iter([False] * 3 + [True] + [False] * 99)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if next(stop_at):
            raise KeyboardInterrupt
        return train(*arguments, **options)

    monkeypatch.setattr("paper.measurements.losses.train", interrupted)
    code, out, _ = reproduce("losses", "--workers", "1", "--results", "kept")
    assert code == 130 and "1 of 4 parts" in out and "2 of 4" not in out and "give the same command again" in out
    assert not (tmp_path / "kept/measurements/losses.json").exists()
    code, out, _ = reproduce("losses", "--workers", "1", "--results", "kept")
    assert code == 0 and "0 of 4" not in out and "measuring: losses, 1 of 4 parts" in out and "4 of 4 parts" in out
    assert "to play" not in out and "1_2: kept/figures/1_2.svg" in out  # panel (a) alone; the rest is not run yet
    assert (tmp_path / "kept/measurements/losses.json").exists()
    assert not (tmp_path / "kept/measurements/losses.parts").exists()


def test_two_commands_in_one_folder_at_once_are_refused(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    (tmp_path / "kept").mkdir()
    lock = FolderLock(tmp_path / "kept/lock")
    code, _, told = reproduce("network", "--results", "kept")
    assert code == 1 and f"kept is being written by process {os.getpid()}" in told and "another folder" in told
    lock.release()
    code, _, _ = reproduce("network", "--results", "kept")
    assert code == 0


def test_other_worlds_than_the_atlas_has_are_refused_by_name(reproduce: Reproduce) -> None:
    code, _, told = reproduce("PreTheta", "--on-atlas")
    assert code == 1 and "PreTheta needs other worlds" in told and "cen_performance" in told


def test_a_measurement_alone_cannot_be_had_on_the_atlas(reproduce: Reproduce) -> None:
    code, _, told = reproduce("losses", "--on-atlas")
    assert code == 1 and "losses needs other worlds than the atlas', or is no matter of runs in one" in told


def test_an_atlas_that_cannot_be_used_is_told_of_before_anything_is_played(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    code, out, told = reproduce("all", "--atlas", "missing.npz", "--results", "kept")
    assert code == 1 and "missing.npz" in told and "to play" not in out and not (tmp_path / "kept").exists()
    code, out, told = reproduce("all", "--results", "kept")  # the one that comes with fedelect is of another scenario
    assert code == 1 and "an atlas of another scenario" in told and "to play" not in out


def test_a_measurement_on_file_that_cannot_be_taken_is_told_of_before_anything_is_played(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    kept = tmp_path / "kept/measurements/convergence.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("torn")
    code, out, told = reproduce("convergence", "--results", "kept")
    assert code == 1 and "convergence.json cannot be read" in told and "measuring" not in out


def test_without_matplotlib_nothing_is_played(reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, told = reproduce("BP_value", "--results", "kept")
    assert code == 1 and "to play" not in out and "lab" in told


def test_a_folder_that_cannot_be_made_is_named(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("paper.__main__.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    (tmp_path / "file").write_text("")
    for option in ("--results", "--figures"):
        code, _, told = reproduce("network", option, "file")
        assert code == 1 and "cannot make the folder file" in told and "unexpected" not in told


def test_the_document_needs_results_and_calibration_but_no_data(reproduce: Reproduce, tmp_path: Path) -> None:
    code, _, told = reproduce("document")
    assert code == 1 and "`python -m paper calibration` makes it" in told
    (tmp_path / "paper/results").mkdir(parents=True)
    shutil.copyfile(ROOT / "paper/results/calibration.json", tmp_path / "paper/results/calibration.json")
    put(committed_results(tmp_path), RANDOM, np.full((25, 500), 0.7))
    code, out, _ = reproduce("document")
    assert code == 0 and "written: docs/REPRODUCTION.md" in out and "written: paper/RECORD.md" in out
    assert "| random (N20-K5-theta1, FL&FA) | 500 | 25 | 100 | (1) |" in (tmp_path / "paper/RECORD.md").read_text()
    assert "0 of 6 drawings complete" in (tmp_path / "docs/REPRODUCTION.md").read_text()
    assert (tmp_path / "paper/results/verdicts.json").exists()
