"""`fedelect atlas`, runs on an atlas, and `fedelect bench`, as a user meets them."""

import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.atlas.made_up import alike, made_up
from tests.cli.test_cli import OWN, SCENARIO, Fedelect
from tests.cli.test_cli import fedelect as fedelect

from fedelect.atlas import load_atlas, save_atlas, table_truth
from fedelect.bench import Ranked, Ranking
from fedelect.cli import figures_file
from fedelect.cli.bench import print_ranking
from fedelect.equations.intervals import Interval
from fedelect.errors import RunError
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
    assert code == 0 and "fresh seeds" in out and "R_min" in out
    code, out, _ = built("atlas", "show", "a.npz", "--json")
    figures = json.loads(out)
    first, atlas = figures["first_clients"], load_atlas(tmp_path / "a.npz")
    assert first["table_value"] == pytest.approx(float(table_truth(atlas).of((0, 1))))
    assert first["place"] == 1 + int((table_truth(atlas).values > table_truth(atlas).of((0, 1))).sum())
    assert code == 0 and (figures["cohorts"], figures["seeds"], figures["opinions"]) == (15, 2, "counts")
    assert figures["built"]["by"].startswith("fedelect atlas build mine.toml")
    (tmp_path / "mine.toml").unlink()  # the atlas needs nothing else
    code, out, _ = built("run", "a.npz", "--framework", "da", "--trials", "2", "--slots", "5", "--out", "run")
    run = read_run(tmp_path / "run")
    assert code == 0 and run.complete and run.header.engine == "atlas"
    assert run.header.data_digest == figures["digest"]
    truth = table_truth(atlas)
    assert run.header.optimum is not None and run.header.optimum.value == truth.optimum.mean
    for one in json.loads(built("show", "run", "--json")[1])["selectors"]:
        assert one["gap_to_best"]["mean"] == pytest.approx(truth.optimum.mean - one["running_mean"]["mean"])
        assert one["regret"]["mean"] == pytest.approx(5 * one["gap_to_best"]["mean"])
    code, out, _ = built("show", "run")
    assert code == 0 and "bp-ucb" in out


@pytest.mark.parametrize("contender", [True, False])
def test_the_first_clients_place_stands_beside_the_value_that_it_goes_with(
    fedelect: Fedelect, tmp_path: Path, contender: bool
) -> None:
    """Second in the table with 0.8; 0.6 by fresh seeds."""
    values = np.linspace(0.3, 0.7, 15)
    values[[0, 7]] = 0.8, 0.9
    atlas = made_up(alike(values[np.newaxis]), alike(np.full((4, 2), [0.6, 0.7])), [0 if contender else 6, 7], "m:f")
    save_atlas(atlas, tmp_path / "a.npz")
    code, out, _ = fedelect("atlas", "show", "a.npz")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "first clients, place 2" in line]
    assert line.split()[-2:] == ["0.6000" if contender else "-", "0.8000"]
    first = json.loads(fedelect("atlas", "show", "a.npz", "--json")[1])["first_clients"]
    assert first == {
        "cohort": [0, 1],
        "place": 2,
        "table_value": pytest.approx(0.8),
        "fresh_value": pytest.approx(0.6) if contender else None,
    }


@pytest.mark.parametrize("apart", [True, False])
def test_the_optimum_and_the_first_clients_are_valued_by_the_same_seeds(
    fedelect: Fedelect, tmp_path: Path, apart: bool
) -> None:
    """The first half of the fresh seeds chooses cohort 7, the other half values the first clients higher."""
    values = np.linspace(0.3, 0.7, 15)
    values[[0, 7]] = 0.8, 0.9
    choosing, valuing = [[0.80, 0.90]] * 2, [[0.895, 0.886], [0.895, 0.886 if apart else 0.905]]
    atlas = made_up(alike(values[np.newaxis]), alike(np.array(choosing + valuing)), [0, 7], "m:f")
    save_atlas(atlas, tmp_path / "a.npz")
    out = " ".join(fedelect("atlas", "show", "a.npz")[1].split())
    facts = json.loads(fedelect("atlas", "show", "a.npz", "--json")[1])
    assert facts["optimum"]["fresh_value"] == facts["optimum"]["value"] == pytest.approx(0.886 if apart else 0.8955)
    assert facts["first_clients"]["fresh_value"] == pytest.approx(0.895)
    assert facts["optimum"]["table_value"] == pytest.approx(0.9)
    above = "{0, 1} is 0.0090 above the optimum by the same seeds: they cannot tell the two apart"
    assert (above in out) == apart and ("above the optimum" in out) == apart


def test_selectors_are_ranked_on_atlases(built: Fedelect, tmp_path: Path) -> None:
    options = ("--trials", "2", "--slots", "6", "--workers", "1", "--selector", "bp-ucb:exploration=0.5")
    code, out, _ = built("bench", "selectors", "a.npz", *options, "--out", "new/folder/ranking.json")
    assert code == 0 and "exploration=0.5" in out and "optimum" in out
    (ranking,) = json.loads((tmp_path / "new/folder/ranking.json").read_text())["rankings"]
    assert (ranking["slots"], ranking["trials"], len(ranking["rows"])) == (
        6,
        2,
        5,
    )  # it, set-gp, random, two fixed cohorts
    assert set(ranking["rows"][0]) >= {"final_gap", "running_gap", "slots_to_close", "regret", "jain_index", "ask_ms"}
    assert all(row["trials_close"] in range(3) for row in ranking["rows"])
    figures = json.loads(built("atlas", "show", "a.npz", "--json")[1])
    assert ranking["optimum_exact"] and ranking["best"] == figures["table"]["cohort"]
    assert ranking["optimum"]["mean"] == figures["table"]["value"]
    scenario = ranking["scenario_optimum"]
    assert ranking["scenario_best"] == figures["optimum"]["cohort"]
    assert (scenario["mean"], scenario["half_width"]) == (figures["optimum"]["value"], figures["optimum"]["half_width"])
    best, optimum = figures["table"], figures["optimum"]
    members = {key: ", ".join(map(str, of["cohort"])) for key, of in (("best", best), ("optimum", optimum))}
    assert f"best in the table: {{{members['best']}}} {best['value']:.4f}, exact; gaps are to this" in out
    assert (
        f"optimum of the scenario, by fresh seeds: {{{members['optimum']}}} {optimum['value']:.4f} "
        f"±{optimum['half_width']:.4f}"
    ) in out


def drawn(ranking: Ranking, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_ranking(ranking, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def a_ranking() -> Ranking:
    """Two selectors whose every figure is wide and occurs once."""

    def figures(start: int) -> dict[str, Interval]:
        names = ("final_gap", "running_gap", "slots_to_close", "regret", "jain_index", "ask_ms", "running_difference")
        wide = {name: Interval(1000.25 + start + n, 500.5 + start + n, 10) for n, name in enumerate(names)}
        return wide | {"final_difference": Interval(0.0, 0.0, 10)}

    rows = tuple(
        Ranked(label=label, role=role, framework="fa", trials_close=close, **figures(start))
        for label, role, close, start in (
            ("set-gp", "selector", 10, 10),
            ("my.very.long.package.name:Selector:patience=100.0,exploration=0.0", "selector", 0, 30),
            ("fixed:cohort=3,5", "optimum", 7, 50),
        )
    )
    return Ranking(
        scenario="made up",
        digest="",
        clients=6,
        budget=2,
        slots=2000,
        trials=10,
        seed=1,
        optimum=Interval(0.8733, 0.0, 3),
        optimum_exact=True,
        best=(3, 5),
        scenario_optimum=Interval(0.8744, 0.0005, 10),
        scenario_best=(0, 1),
        reference="set-gp",
        rows=rows,
    )


def test_a_wide_console_shows_every_column_and_a_narrow_one_whole_numbers_and_what_is_left_out() -> None:
    columns = {"regret": 3, "ms an ask": 5, "Jain's index": 4, "slots to 2 %": 2, "final gap %": 0, "running gap %": 1}
    for width in (10, 30, 50, 60, 70, 80, 90, 100, 120, 200):
        page = drawn(a_ranking(), width)
        missing = " ".join(page.split()).partition("for the console is narrow: ")[2].partition("; --out")[0].split(", ")
        assert "…" not in page and "running gap %" not in missing
        for start in (10, 30, 50):
            for name, place in columns.items():
                digits = 0 if name == "slots to 2 %" else 2
                for number in (1000.25 + start + place, 500.5 + start + place):
                    assert (f"{number:.{digits}f}" in page) == (name not in missing), (width, name)
        assert all(f" {close}/10 " in page for close in (10, 7, 0)) == ("got there" not in missing)
        assert ("regret" in missing) == (width < 100) and (missing == [""]) == (width >= 100)
        assert width < 50 or max(map(len, page.splitlines())) <= width
        assert "best in the table" in page


def test_how_many_trials_got_there_and_what_is_exact_are_shown() -> None:
    page = drawn(a_ranking(), 200)
    assert "0.8733, exact" in page and "0.8733 ±" not in page and "{0, 1} 0.8744 ±0.0005" in page
    estimated = drawn(dataclasses.replace(a_ranking(), optimum_exact=False), 200)
    assert "optimum: {3, 5} 0.8733 ±0.0000; gaps are to this" in estimated and "exact" not in estimated


def test_where_figures_cannot_be_written_nothing_is_played(built: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    cases = {
        "file/x.json": "write file/x.json",
        "folder": "write folder: Is a directory",
        ".": "write .: Is a directory",
    }
    for out, says in cases.items():
        code, shown, err = built("bench", "selectors", "a.npz", "--workers", "1", "--out", out)
        assert code == 1 and f"cannot {says}" in err and "name a file in a folder that you may write to" in err
        assert "selectors" not in shown and err.count("\n") == 1


def test_figures_that_cannot_be_written_after_all_are_not_said_to_be_kept(
    built: Fedelect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *parts: bytes) -> None:
        raise RunError("what is recorded is kept") from OSError(28, "No space left on device")

    monkeypatch.setattr(figures_file, "replace_file", full)
    options = ("--trials", "1", "--slots", "2", "--workers", "1", "--out", "x.json")
    code, shown, err = built("bench", "selectors", "a.npz", *options)
    assert code == 1 and "gaps are to this" in shown
    assert "cannot write the figures to x.json" in err and "No space left" in err and "is kept" not in err


def test_a_users_failing_selector_is_told_by_the_bench_as_by_a_run(built: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "my_broken_bench.py").write_text(OWN.format(init="pass", choose="1 / 0"))
    told = []
    for command in ("run a.npz --trials 1 --out x", "bench selectors a.npz --trials 1 --slots 2 --workers 1"):
        code, _, err = built(*command.split(), "--selector", "my_broken_bench:Own")
        assert code == 1 and err.count("\n") == 1
        told.append(err)
    assert told[0] == told[1] and "'my_broken_bench:Own' failed in trial 0: ZeroDivisionError: division" in told[0]


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
        ("bench selectors a.npz --seed -1", "seed: got -1; allowed: a whole number >= 0"),
        ("atlas build mine.toml --out b.npz --seed -1", "seed: got -1; allowed: a whole number >= 0"),
        ("atlas build mine.toml --out b.npz --losses 9", "losses: got 9; allowed: from 0 to the 3 training seeds"),
    ):
        code, _, err = built(*command.split())
        assert code == 1 and says in err and err.count("\n") == 1, command
