"""Runs that were given no folder: numbered ones, and a link to the newest."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.test_cli import SCENARIO, Fedelect
from tests.cli.test_cli import fedelect as fedelect

from fedelect._run import Run
from fedelect.cli.run_folders import link_latest, play_numbered
from fedelect.errors import ConfigurationError, RunLockedError, RunMismatchError

ONE_TRIAL = ("run", "mine.toml", "--trials", "1")


def test_another_run_takes_the_next_number_and_the_same_command_its_own(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    assert "records: runs/1\n" in fedelect(*ONE_TRIAL)[1]
    assert "records: runs/2\n" in fedelect(*ONE_TRIAL, "--seed", "2")[1]
    assert "records: runs/2\n" in fedelect(*ONE_TRIAL, "--seed", "2")[1]
    assert (tmp_path / "runs/latest").resolve() == tmp_path / "runs/2"
    assert fedelect("show", "runs/latest")[0] == 0


def test_a_command_that_fails_leaves_no_folder_and_no_link(fedelect: Fedelect, tmp_path: Path) -> None:
    code, _, error = fedelect("run", "digits", "--selector", "nobody")
    assert code == 1 and "unknown selector 'nobody'" in error
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("refusal", [RunMismatchError, RunLockedError])
def test_a_folder_that_refuses_is_passed_over(refusal: type[Exception], tmp_path: Path) -> None:
    for name in ("1", "9", "10", "latest", "first"):
        (tmp_path / name).mkdir()
    tried: list[str] = []
    with pytest.raises(ConfigurationError):
        play_numbered(_refuse(tried, {"10": refusal, "11": ConfigurationError}), tmp_path)
    assert tried == ["10", "11"]


def test_other_errors_are_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    tried: list[str] = []
    with pytest.raises(ConfigurationError):
        play_numbered(_refuse(tried, {"3": ConfigurationError}), tmp_path)
    assert tried == ["3"]


def test_a_folder_called_latest_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    (tmp_path / "1").mkdir()
    link_latest(tmp_path / "1")
    assert not (tmp_path / "latest").is_symlink()


def _refuse(tried: list[str], errors: dict[str, type[Exception]]) -> Callable[[Path], Run]:
    def play(folder: Path) -> Run:
        tried.append(folder.name)
        raise errors[folder.name]("no")

    return play
