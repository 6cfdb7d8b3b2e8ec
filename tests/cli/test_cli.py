"""The command line, as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer

from fedelect.cli import main
from fedelect.cli.main import run_app
from fedelect.datasets import load_dataset
from fedelect.errors import RunError
from fedelect.protocol import PeerConfig
from fedelect.records import read_run, sorted_records

Fedelect = Callable[..., tuple[int, str, str]]

SCENARIO = """
name = "mine"
clients = 6
budget = 2
slots = 3
rounds_per_slot = 1
[data]
source = "digits"
iid_clients = 2
samples = [10, 20]
[model]
step = 5e-4
epochs = 1
batch = 10
"""


OWN = """
from fedelect.selectors import AbstractSelector
class Own(AbstractSelector):
    def __init__(self, *, clients, budget):
        {init}
        super().__init__(clients=clients, budget=budget)
    def _choose(self, slot, available):
        return {choose}
"""


@pytest.fixture
def fedelect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Fedelect:
    """Run a command in an empty folder; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # a command may add to it
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedelect", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return int(end.value.code or 0), shown.out, shown.err

    return run


def test_run_show_and_report_from_a_scenario_file(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    selectors = ("--selector", "bp-ucb:exploration=0.1", "--selector", "random")
    code, out, _ = fedelect("run", "mine.toml", "--framework", "da", *selectors, "--trials", "2", "--out", "first")
    assert code == 0 and "bp-ucb:exploration=0.1" in out and "fedelect report first" in out
    code, out, _ = fedelect("show", "first", "--json")
    figures = json.loads(out)
    assert (
        code == 0
        and figures["complete"]
        and [row["label"] for row in figures["selectors"]]
        == [
            "bp-ucb:exploration=0.1",
            "random",
        ]
    )
    code, out, _ = fedelect("report", "first")
    assert code == 0 and "first/report.html" in out.replace(os.sep, "/")
    assert "<html" in (tmp_path / "first" / "report.html").read_text()


def test_a_run_can_be_repeated_by_the_command_in_its_records(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    fedelect("run", "mine.toml", "--seed", "7", "--out", "one")
    command = read_run(tmp_path / "one").header.provenance.command
    assert command == "fedelect run mine.toml --seed 7 --out one"
    fedelect(*command.replace("one", "two").split()[1:])
    assert sorted_records(read_run(tmp_path / "two")) == sorted_records(read_run(tmp_path / "one"))


def test_ones_own_data_is_read_from_beside_the_scenario(fedelect: Fedelect, tmp_path: Path) -> None:
    data = load_dataset("digits")
    (tmp_path / "own").mkdir()
    np.savez(
        tmp_path / "own" / "mine.npz",
        X=data.inputs,
        y=data.labels,
        X_test=data.test_inputs,
        y_test=data.test_labels,
    )
    (tmp_path / "own" / "mine.toml").write_text(SCENARIO.replace('"digits"', '"mine.npz"'))
    (tmp_path / "digits.toml").write_text(SCENARIO)
    assert fedelect("run", "own/mine.toml", "--out", "a")[0] == 0
    assert fedelect("run", "digits.toml", "--out", "b")[0] == 0
    assert sorted_records(read_run(tmp_path / "a")) == sorted_records(read_run(tmp_path / "b"))


def test_ones_own_selector_in_the_folder_is_named_by_module(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    (tmp_path / "my_cli_selector.py").write_text(
        "from fedelect.selectors import AbstractSelector\n"
        "class MyUcb(AbstractSelector):\n"
        "    def _choose(self, slot, available):\n"
        "        return tuple(range(self.budget)), ()\n"
    )
    code, _, _ = fedelect("run", "mine.toml", "--selector", "my_cli_selector:MyUcb", "--out", "own")
    assert code == 0 and {record.cohort for record in read_run(tmp_path / "own").records} == {(0, 1)}


def test_a_machine_without_enough_memory_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command()
    def too_large() -> None:
        np.empty(2**57)

    monkeypatch.setattr(sys, "argv", ["fedelect"])
    with pytest.raises(SystemExit):
        run_app(app)
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("error: not enough memory: Unable to allocate 1.00 EiB") and "take smaller numbers" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run nowhere.toml", "neither a preset nor a file; presets are digits, paper, "),
        ("run digits --framework xx", "unknown framework 'xx'; use fa or da"),
        ("run digits --selector nobody", "unknown selector 'nobody'"),
        ("run digits --selector bp-ucb --out x", "use framework da"),
        ("run digits --selector fixed --out x", "for example fixed:cohort=0,1,2"),
        ("run digits --slots 0", "slots must be at least 1"),
        ("show nowhere", "is no run folder"),
        ("report nowhere", "is no run folder"),
        ("data fetch imagenet", "unknown data set 'imagenet'"),
        ("data fetch minst", "did you mean 'mnist'?"),
        ("scenario show nothing", "neither a preset"),
        (f"scenario show {'long' * 100}", "neither a preset"),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(fedelect: Fedelect, arguments: str, says: str) -> None:
    code, _, err = fedelect(*arguments.split())
    assert code == 1
    assert err.startswith("error: ") and says in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("budgett = 3", "budgett"),
        ('clients = "many"', "clients"),
        ("budget = 9", "budget"),
        ('start = "tepid"', "start"),
        ("broken = = 1", "mine.toml"),
    ],
)
def test_a_wrong_scenario_names_file_and_key(fedelect: Fedelect, tmp_path: Path, line: str, says: str) -> None:
    key = line.split(" ")[0]
    kept = "\n".join(row for row in SCENARIO.splitlines() if not row.startswith(f"{key} "))
    (tmp_path / "mine.toml").write_text(f"{line}\n{kept}")
    code, _, err = fedelect("run", "mine.toml")
    assert code == 1 and "mine.toml" in err and says in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("def broken(:", "SyntaxError"),
        (OWN.format(init="1 / 0", choose="(0, 1), ()"), "cannot be built: division by zero"),
        (OWN.format(init="pass", choose="1 / 0"), "failed in trial 0: ZeroDivisionError"),
        (OWN.format(init="pass", choose="(0,), ()"), "Own elected (0,)"),
        (OWN.format(init="pass", choose="None"), "failed in trial 0: TypeError"),
    ],
)
def test_a_users_failing_selector_is_told_in_one_line(fedelect: Fedelect, tmp_path: Path, body: str, says: str) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    (tmp_path / "my_broken.py").write_text(body)
    sys.modules.pop("my_broken", None)
    code, _, err = fedelect("run", "mine.toml", "--selector", "my_broken:Own", "--trials", "1", "--out", "x")
    assert code == 1 and says in err and err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize("body", ["raise RuntimeError('not today')", "def f(scores, labels):\n    return 3\n"])
def test_a_users_failing_opinion_is_told_in_one_line(fedelect: Fedelect, tmp_path: Path, body: str) -> None:
    (tmp_path / "mine.toml").write_text('opinion = "my_opinion:f"\n' + SCENARIO)
    (tmp_path / "my_opinion.py").write_text(body)
    sys.modules.pop("my_opinion", None)
    code, _, err = fedelect("run", "mine.toml", "--trials", "1", "--out", "x")
    assert code == 1 and "opinion" in err and err.startswith("error: ") and err.count("\n") == 1


def test_peers_are_refused_where_there_is_a_server(fedelect: Fedelect) -> None:
    code, _, err = fedelect("run", "digits", "--selector", "peers", "--out", "x")
    assert code == 1 and "use framework da" in err


def test_chaos_counts_slots_and_names_the_seed_that_breaks_a_promise(
    fedelect: Fedelect, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--clients", "4", "--slots", "2", "--byzantine", "1")
    code, out, _ = fedelect("chaos", "--seeds", "0:5", *options)
    assert code == 0 and "5 runs of 2 slots" in out and "0 split" in out
    assert fedelect("chaos", "--seeds", "3", "--clients", "4", "--slots", "1", "--calm")[0] == 0
    code, out, _ = fedelect("chaos", "--seeds", "0:2", "--rule", "bp-gp", *options)
    assert code == 0 and "2 runs of 2 slots" in out
    assert "rule must be one of" in fedelect("chaos", "--rule", "set-gp")[2]
    assert "behaviour must be one of two values" in fedelect("chaos", "--behaviour", "nice")[2]
    code, out, _ = fedelect("chaos", "--seeds", "0:2", "--calm", "--behaviour", "proof to some", *options)
    assert code == 0 and "4 decided, 0 skipped, 0 split; 2 of 2 Byzantine peers proven" in out
    for seeds in ("5:2", "x", "-1:3"):
        code, _, err = fedelect("chaos", "--seeds", seeds)
        assert code == 1 and "FIRST:END" in err
    monkeypatch.setattr(PeerConfig, "quorum", property(lambda config: 1))
    code, out, _ = fedelect("chaos", "--seeds", "0:9", *options)
    assert code == 1 and "seed " in out and "violated a guarantee" in out


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fedelect", "show", "nowhere", "--debug"])
    with pytest.raises(RunError):
        main()


def test_a_preset_is_printed_as_a_scenario_that_runs(fedelect: Fedelect, tmp_path: Path) -> None:
    code, out, _ = fedelect("scenario", "show", "digits")
    assert code == 0
    (tmp_path / "copy.toml").write_text(out)
    code, again, _ = fedelect("scenario", "show", "copy.toml")
    assert again == out
    assert "digits: 20 clients" in fedelect("scenario", "list")[1]


def test_help_version_and_selectors(fedelect: Fedelect) -> None:
    assert "demo" in fedelect("--help")[1]
    assert "--selector" in fedelect("run", "--help")[1]
    assert fedelect("--version")[1].startswith("fedelect 0.")
    out = fedelect("selectors")[1]
    assert all(name in out for name in ("fixed", "random", "round-robin", "subset-ucb", "quick-init-ucb", "bp-ucb"))
    assert (
        out.index("baseline") < out.index("paper") < out.index("literature: loss") < out.index("literature: fairness")
    )
    listed = json.loads(fedelect("selectors", "--json")[1])
    (choice,) = [one for one in listed if one["name"] == "power-of-choice"]
    assert choice["family"] == "literature: loss" and choice["class"] == "PowerOfChoice"
    assert (choice["needs"], choice["uses"], choice["asks"]) == (["loss", "sizes"], [], ["loss"])


def test_the_demo_runs_a_users_world_and_both_loops_and_names_its_report(fedelect: Fedelect, tmp_path: Path) -> None:
    code, out, _ = fedelect("demo", "--slots", "5", "--trials", "1", "--out", "d")
    assert code == 0
    assert "FL&FA" in out and "FL&DA" in out and "iid" in out and "users-small" in out and "clean accuracy" in out
    labels = ("auto", "quick-init-ucb", "cycle", "random", "oracle")
    assert read_run(tmp_path / "d" / "users").header.labels == labels
    assert [line.split()[0] for line in out.splitlines()[-5:]] == ["who", "Users'", "Paper's", "The", "open"]
    assert all(" is first: " in line for line in out.splitlines()[-4:-1])
    page = (tmp_path / "d" / "report.html").read_text()
    assert "selectors compared in users-small and digits" in page
    assert "report.html" in out.splitlines()[-1]


def test_runs_are_compared_and_drawn(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    for seed, name in enumerate(("a", "b")):
        options = ("--workers", "1", "--live", "--live-port", "0", "--seed", str(seed), "--out", name)
        assert fedelect("run", "mine.toml", *options)[0] == 0
    code, out, _ = fedelect("report", "a", "b", "--target", "0.25")
    assert code == 0 and "comparison.html" in out
    page = (tmp_path / "comparison.html").read_text()
    assert 'id="table-won"' in page and 'id="table-won-1"' in page and '<th scope="col">mean 0.25</th>' in page
    code, out, _ = fedelect("figures", "a", "--format", "svg")
    assert code == 0 and (tmp_path / "a" / "figures" / "map.svg").exists()
    code, _, err = fedelect("figures", "a", "--format", "gif")
    assert code == 1 and "pdf, svg, png" in err
    code, _, err = fedelect("report", "nowhere")
    assert code == 1 and "is no run folder" in err


def test_an_address_that_cannot_be_served_is_one_line(fedelect: Fedelect) -> None:
    code, _, err = fedelect("live", "run", "--port", "99999")
    assert code == 1 and "cannot listen on 127.0.0.1:99999" in err and "--port" in err


WAITING_OPINION = """
import pathlib
import time

from fedelect.analytics import accuracy

asked = 0


def opinion(scores, labels):
    global asked
    asked += 1
    while asked > 40 and not pathlib.Path("go").exists():
        pathlib.Path("reached").touch()
        time.sleep(0.01)
    return accuracy(scores, labels)
"""


@pytest.mark.integration  # two processes, of which one is interrupted
def test_ctrl_c_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING_OPINION)
    (tmp_path / "mine.toml").write_text('opinion = "waiting:opinion"\n' + SCENARIO)
    options = ["--selector", "random", "--slots", "30", "--out", "run"]
    command = [sys.executable, "-m", "fedelect", "run", "mine.toml", *options]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "reached").exists():  # it waits in the middle of a slot
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate()
    assert child.returncode == 130 and "give the same command again" in out
    recorded = len(read_run(tmp_path / "run").records)
    assert 0 < recorded < 30
    (tmp_path / "go").touch()
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert read_run(tmp_path / "run").complete


def test_the_engine_can_be_chosen_and_is_recorded(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCENARIO)
    for option, name in ((("--engine", "plain"), "plain"), ((), "stacked-auto")):
        code, _, _ = fedelect("run", "mine.toml", *option, "--workers", "1", "--out", name)
        assert code == 0
        assert (read_run(tmp_path / name).header.engine or "").removesuffix("-numpy") == name
    code, _, err = fedelect("run", "mine.toml", "--engine", "fast", "--out", "none")
    assert code == 1 and "allowed" in err and "auto, plain, gram, primal" in err


@pytest.mark.parametrize("words", [("rnu",), ("peers", "ini"), ("bench", "usrs"), ("atlas", "sho")])
def test_a_misspelt_command_is_asked_about_once(fedelect: Fedelect, words: tuple[str, ...]) -> None:
    code, _, err = fedelect(*words)
    assert code == 2 and err.count("Did you mean") == 1
