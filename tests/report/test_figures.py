"""Figures for papers."""

import sys
from pathlib import Path

import pytest
from tests.report.test_run_data import with_beliefs
from tests.sample_runs import sample_run

from fedelect.errors import ConfigurationError, MissingExtraError, RunError
from fedelect.records import SelectorEntry
from fedelect.report import write_figures

BEGINNINGS = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}


@pytest.mark.parametrize("format", BEGINNINGS)
def test_every_format_gives_a_file_for_each_figure(tmp_path: Path, format: str) -> None:
    paths = write_figures(with_beliefs(), tmp_path / "figures", format=format)
    assert [path.stem for path in paths] == ["map", "opinion", "running_mean", "regret", "beliefs", "elections"]
    for path in paths:
        assert path.suffix == f".{format}" and path.read_bytes().startswith(BEGINNINGS[format])


def test_a_figure_is_one_column_wide_and_shows_every_selector(tmp_path: Path) -> None:
    strange = "<b>$x$</b> & co"
    run = sample_run(selectors=(SelectorEntry(label=strange, kind="RandomCohort"),), groups={})
    paths = {path.stem: path.read_text() for path in write_figures(run, tmp_path, format="svg")}
    assert 'width="244.8pt"' in paths["opinion"]  # 3.4 inches of 72 points
    assert "&lt;b&gt;$x$&lt;/b&gt; &amp; co" in paths["opinion"]
    assert "beliefs" not in paths


def test_the_same_run_gives_the_same_figures(tmp_path: Path) -> None:
    first, second = (write_figures(sample_run(), tmp_path / name, format="svg") for name in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_single_slot_of_a_single_trial_can_be_drawn(tmp_path: Path) -> None:
    assert len(write_figures(sample_run(slots=1, trials=1), tmp_path, format="svg")) == 5


def test_a_run_without_records_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing to draw"):
        write_figures(sample_run(until=0), tmp_path)
    with pytest.raises(ConfigurationError, match="unknown format 'gif'; use one of pdf, svg, png"):
        write_figures(sample_run(), tmp_path, format="gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*file/map\.pdf"):
        write_figures(sample_run(), tmp_path / "file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is there on Linux only")
@pytest.mark.parametrize("format", BEGINNINGS)
def test_a_full_disk_is_named_in_every_format(tmp_path: Path, format: str) -> None:
    (tmp_path / f"map.{format}").symlink_to("/dev/full")
    with pytest.raises(RunError, match=rf"cannot write .*map\.{format}: No space left on device"):
        write_figures(sample_run(), tmp_path, format=format)


def test_without_matplotlib_the_error_holds_the_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"drawing figures needs .* pip install 'fedelect\[lab\]'"):
        write_figures(sample_run(), tmp_path)
