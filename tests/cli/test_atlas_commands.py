"""`fedelect atlas`, runs on an atlas, and `fedelect bench`, as a user meets them."""

import json
from pathlib import Path

import pytest
from tests.cli.test_cli import SCENARIO, Fedelect
from tests.cli.test_cli import fedelect as fedelect

from fedelect.records import read_run

BUILD = ("--seeds", "2", "--contenders", "4", "--fresh", "4", "--engine", "plain", "--workers", "1")


@pytest.fixture
def built(fedelect: Fedelect, tmp_path: Path) -> Fedelect:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    code, out, err = fedelect("atlas", "build", "mine.toml", "--out", "a.npz", *BUILD)
    assert code == 0, err
    assert "46/46 trainings" in out and "all 15 cohorts of 2 out of 6 clients, 2 seeds each" in out
    return fedelect


def test_an_atlas_is_built_shown_and_run(built: Fedelect, tmp_path: Path) -> None:
    code, out, _ = built("atlas", "show", "a.npz")
    assert code == 0 and "optimum, by fresh seeds" in out and "R_min" in out
    code, out, _ = built("atlas", "show", "a.npz", "--json")
    figures = json.loads(out)
    assert code == 0 and (figures["cohorts"], figures["seeds"], figures["opinions"]) == (15, 2, "counts")
    assert figures["built"]["by"].startswith("fedelect atlas build mine.toml")
    (tmp_path / "mine.toml").unlink()  # the atlas needs nothing else
    code, out, _ = built("run", "a.npz", "--framework", "da", "--trials", "2", "--slots", "5", "--out", "run")
    run = read_run(tmp_path / "run")
    assert code == 0 and run.complete and run.header.engine == "atlas"
    assert run.header.data_digest == figures["digest"]
    code, out, _ = built("show", "run")
    assert code == 0 and "bp-ucb" in out


def test_selectors_are_ranked_on_atlases(built: Fedelect, tmp_path: Path) -> None:
    options = ("--trials", "2", "--slots", "6", "--workers", "1", "--selector", "bp-ucb:exploration=0.5")
    code, out, _ = built("bench", "selectors", "a.npz", *options, "--out", "ranking.json")
    assert code == 0 and "exploration=0.5" in out and "optimum" in out
    (ranking,) = json.loads((tmp_path / "ranking.json").read_text())["rankings"]
    assert (ranking["slots"], ranking["trials"], len(ranking["rows"])) == (6, 2, 22)
    assert set(ranking["rows"][0]) >= {"final_gap", "running_gap", "slots_to_close", "regret", "jain_index", "ask_ms"}


def test_what_cannot_be_done_is_told_in_one_line(built: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:500])
    (tmp_path / "warm.toml").write_text('start = "warm"\n' + SCENARIO)
    for command, says in (
        ("run nowhere.npz", "there is no file nowhere.npz"),
        ("run broken.npz", "cannot be read as an atlas"),
        ("run a.npz --engine gram", "an atlas has been trained already"),
        ("atlas show mine.toml", "cannot be read as an atlas"),
        ("atlas build warm.toml", 'start: got "warm"'),
        ("atlas build mine.toml --out b.npz --limit 10 --workers 1", "there are 15 cohorts"),
        ("atlas build mine.toml --out a.npz", "a.npz holds another atlas"),
        ("atlas build mine.toml --out b.npz --workers 0", "workers must be at least 1"),
        ("bench selectors broken.npz", "cannot be read as an atlas"),
        ("bench selectors --world nowhere", "there is no world 'nowhere'"),
        ("atlas build mine.toml --out b.npz --losses 9", "losses: got 9; allowed: from 0 to the 3 training seeds"),
    ):
        code, _, err = built(*command.split())
        assert code == 1 and says in err and err.count("\n") == 1, command
