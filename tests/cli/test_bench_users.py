"""`fedelect bench users`, as a user meets it."""

import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.sample_runs import measured_run

from fedelect.bench import judge_worlds
from fedelect.cli import main
from fedelect.cli.bench_users import print_verdicts, print_worlds
from fedelect.records import tabulate

LABELS = ("mine", "random", "oracle")


def printed(width: int) -> list[str]:
    """What is printed of a world with a clear gap and of two without, one of them honest."""
    clear, unclear = (tabulate(measured_run(trials=trials)).measured for trials in (4, 1))
    found = judge_worlds({"mixed": clear, "copies": unclear, "unflawed": clear}, LABELS)
    text = io.StringIO()
    console = Console(width=width, file=text)
    print_worlds(found, console)
    print_verdicts(found, console)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_show_the_figures_of_every_world_and_the_verdicts(width: int) -> None:
    lines = printed(width)
    mine = tabulate(measured_run()).measured.summary("mine")
    assert mine is not None and mine.difference is not None and mine.difference.half_width is not None
    assert mine.closure is not None
    difference = f"{100 * mine.difference.mean:+.1f} ±{100 * mine.difference.half_width:.1f}"
    closure = f"{mine.closure.value:.2f} [{mine.closure.low:.2f}, {mine.closure.high:.2f}]"
    rows = [line.split() for line in lines]
    assert [row[0] for row in rows if row and row[0] in ("mixed", "copies", "unflawed")] == [
        "mixed",
        "copies",
        "unflawed",
    ]
    in_worlds = [" ".join(row) for row in rows if row and row[0] == "mine"]
    assert len(in_worlds) == 4 and difference in in_worlds[0] and closure in in_worlds[0]
    assert "[" not in in_worlds[1], "no closure without a clear gap"
    assert in_worlds[3] == f"mine {closure} {difference} unflawed"
    text = " ".join(" ".join(row) for row in rows)
    assert "mean closure worst minus random 1 world" in text.replace("selector ", "")
    assert "not clearly more than one point ahead: copies" in text


def test_tables_and_json_are_written_and_the_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["bench", "users", "--selector", "cycle", "--world", "unflawed", "--trials", "1", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["fedelect", *command, "--out", "users.json"])
    with pytest.raises(SystemExit) as end:
        main()
    shown = capsys.readouterr().out
    assert end.value.code == 0, shown
    assert "unflawed" in shown and "1 trial can only give a first look; a claim needs at least 20" in shown
    figures = json.loads(Path("users.json").read_text())
    assert [one["label"] for one in figures["verdicts"]] == ["cycle", "random", "oracle"]
    assert set(figures["worlds"][0]["selectors"]) == {"cycle", "random", "oracle"}
    assert len(list(Path("runs/users").iterdir())) == 1
