"""Names from files are shown as text: no markup is obeyed, and nothing reaches the terminal but what we print."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.sample_runs import sample_header, sample_records

import fedelect
from fedelect._text import printable
from fedelect.cli.console import make_console
from fedelect.records import SelectorEntry, open_run

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"[/bold][red]{TITLE}\x1b[2J\x9b31m\u202e:smile: [link=file:///etc/passwd]<script>alert(1)</script>"
ROOT = Path(__file__).parents[2]

WORLD = """
name = "[/bold][red]\\u001b]0;owned\\u0007\\u001b[2J"
clients = 8
budget = 2

[data]
source = "digits"
iid_clients = 2
samples = [20, 40]
"""


def fedelect_prints(*arguments: str, code: int = 0, colour: bool = False, cwd: Path = ROOT) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"}
    environment |= {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if colour else {}
    done = subprocess.run(
        [sys.executable, "-m", "fedelect", *arguments], cwd=cwd, env=environment, capture_output=True, check=False
    )
    assert done.returncode == code, done.stderr.decode()
    return (done.stdout + done.stderr).decode()


def hostile_run(folder: Path) -> Path:
    names = tuple(f"{HOSTILE}{number}" for number in range(7))
    header = sample_header(
        selectors=(SelectorEntry(label=HOSTILE, kind=HOSTILE), SelectorEntry(label="random", kind="RandomCohort")),
        scenario={"name": HOSTILE},
        groups={HOSTILE: (0, 1)},
        client_names=names,
    )
    with open_run(folder, header) as writer:
        writer.append(sample_records(header))
    return folder


def harmless(text: str) -> bool:
    return printable(text) == text


def test_run_and_scenario_show_the_name_as_it_is_written_and_obey_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "world.toml").write_text(WORLD)
    (tmp_path / "[red]own.toml").write_text(WORLD)
    options = ["--slots", "2", "--selector", "random", "--workers", "1"]
    shown = fedelect_prints("run", "world.toml", *options, "--out", "[bold]out", cwd=tmp_path)
    assert harmless(shown) and "[/bold][red]�]0;owned" in shown
    assert "records: [bold]out" in shown
    shown = fedelect_prints("run", "[red]own.toml", *options, "--out", "other", cwd=tmp_path, colour=True)
    assert TITLE not in shown and "\x1b[2J" not in shown and "[red]own" in shown
    assert harmless(fedelect_prints("scenario", "show", "world.toml", cwd=tmp_path))


def test_show_and_report_print_hostile_records_as_text(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    shown = fedelect_prints("show", str(folder))
    assert harmless(shown) and "[/bold][red]" in shown and ":smile:" in shown
    coloured = fedelect_prints("show", str(folder), colour=True)
    assert TITLE not in coloured and "\x1b[2J" not in coloured and "\x9b" not in coloured and "\u202e" not in coloured
    assert harmless(fedelect_prints("show", str(folder), "--json"))
    assert harmless(fedelect_prints("report", str(folder), "--out", str(tmp_path / "[red]page.html")))
    assert "<script>alert(1)" not in (tmp_path / "[red]page.html").read_text()
    assert harmless(str(fedelect.load_run(folder).summary()))


def test_errors_show_what_a_file_says_as_text(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('start = "[/red]\\u001b]0;owned\\u0007"\n')
    shown = fedelect_prints("run", "bad.toml", code=1, cwd=tmp_path)
    assert harmless(shown) and shown.strip().startswith("error: ") and "[/red]" in shown
    folder = hostile_run(tmp_path / "run")
    with pytest.raises(fedelect.errors.RunError):
        open_run(folder, sample_header())
    (folder / "slots.jsonl").write_text(f'{{"selector": "{TITLE}"}}\n')
    assert harmless(fedelect_prints("show", str(folder), code=1))


def test_live_prints_its_address_and_serves_the_names_as_text(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run[red]")
    later = tmp_path / "later[/red]"
    command = [sys.executable, "-m", "fedelect", "live", str(folder), str(later), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert harmless(line) and line.startswith("live: http://127.0.0.1:")
            assert child.stdout.readline() == f"waiting for a run to begin in {later}\n", "and none for the other"
            with urllib.request.urlopen(line.split()[1]) as answer:
                page = answer.read().decode()
            assert "<script>alert(1)" not in page
        finally:
            child.kill()


def test_show_of_a_run_that_lost_its_slots_is_an_error(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    (folder / "slots.jsonl").unlink()
    shown = fedelect_prints("show", str(folder), code=1)
    assert "slots.jsonl is missing, and with it the records of the run; restore it from a copy" in shown
    assert "nan" not in shown


def test_show_of_a_run_without_a_finished_slot_says_so_and_prints_no_nan(tmp_path: Path) -> None:
    open_run(tmp_path / "run", sample_header()).close()
    shown = fedelect_prints("show", str(tmp_path / "run"))
    assert "0 of 24 records so far" in " ".join(shown.split()) and "nan" not in shown


@pytest.mark.parametrize("text", ["\x1b[31m", "\x07", "\x9b", "\u202e", "\r", "\x7f", "\ud800"])
def test_a_console_prints_no_control_character(text: str) -> None:
    console = make_console()
    with console.capture() as captured:
        console.print(f"a{text}b [bold]c[/nonsense]", soft_wrap=True)
    printed = captured.get()
    assert text not in printed and printed.endswith("b [bold]c[/nonsense]\n")
