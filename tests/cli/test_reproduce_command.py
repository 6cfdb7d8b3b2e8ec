"""`fedelect reproduce`, as a user meets it, on a world that is small enough."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.reproduce.made_up_results import put
from tests.reproduce.small_library import TINY, small

from fedelect.cli import main
from fedelect.records.lock import FolderLock
from fedelect.reproduce import EXPERIMENTS, PRESETS, committed_library
from fedelect.reproduce.catalogue import RANDOM

Reproduce = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Reproduce:
    """Run the command in an empty folder; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedelect", "reproduce", *arguments])
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
    monkeypatch.setattr("fedelect.cli.reproduce.scenario_preset", lambda name: small())
    monkeypatch.setitem(PRESETS, "quick", TINY)
    code, out, _ = reproduce("BP_value", "--workers", "1", "--results", "kept")
    assert code == 0 and "1 blocks to play, about" in out and "BP_value: kept/figures/BP_value.svg" in out
    assert "2 trials, T = 6" in (tmp_path / "kept/figures/BP_value.svg").read_text()
    code, out, _ = reproduce("BP_value", "--workers", "1", "--results", "kept", "--figures", "drawn")
    assert code == 0 and "to play" not in out and (tmp_path / "drawn/BP_value.svg").exists()
    code, out, _ = reproduce("convergence", "--results", "kept")
    assert code == 0 and "measuring: convergence" in out and (tmp_path / "kept/figures/convergence.svg").exists()


def test_two_commands_in_one_folder_at_once_are_refused(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("fedelect.cli.reproduce.scenario_preset", lambda name: small())
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


def test_the_document_needs_results_and_calibration_but_no_data(reproduce: Reproduce, tmp_path: Path) -> None:
    code, _, told = reproduce("document")
    assert code == 1 and "`fedelect reproduce calibration` makes it" in told
    (tmp_path / "reproduction").mkdir()
    shutil.copyfile(ROOT / "reproduction/calibration.json", tmp_path / "reproduction/calibration.json")
    put(committed_library(tmp_path), RANDOM, np.full((25, 500), 0.7))
    code, out, _ = reproduce("document")
    assert code == 0 and "written: docs/REPRODUCTION.md" in out
    assert "| random (N20-K5-theta1, FL&FA) | 500 | 25 | 100 | (1) |" in (tmp_path / "docs/REPRODUCTION.md").read_text()
    assert (tmp_path / "reproduction/verdicts.json").exists()
