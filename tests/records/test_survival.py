"""Real processes, really killed: nothing that was recorded is lost, and the run ends as if nothing had happened."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.records.appending_process import HEADER, undisturbed

from fedelect.errors import RunLockedError
from fedelect.records import RunRecords, open_run, read_run, sorted_records

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, forks and limits of POSIX")
ROOT = Path(__file__).parents[2]


@contextmanager
def process(what: str, folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.records.appending_process", what, str(folder), *more]
    child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("slots", [(1, 7, 8, 60), (6, 14, 35, 103)])
def test_a_run_killed_again_and_again_ends_with_the_records_of_an_undisturbed_run(
    tmp_path: Path, slots: tuple[int, ...]
) -> None:
    file = tmp_path / "run" / "slots.jsonl"
    kept: set[tuple[str, int, int]] = set()
    for number, slot in enumerate(slots):
        with process("stop", tmp_path / "run", str(slot)) as child:
            assert child.stdout is not None and int(child.stdout.readline()) == slot
            child.kill()
            child.wait()
        if number % 2:  # as if it had died amid the next write
            file.write_bytes(file.read_bytes() + file.read_bytes()[: 40 * number])
        on_disk = {(record.selector, record.trial, record.slot) for record in read_run(tmp_path / "run").records}
        assert kept < on_disk and len(on_disk) == slot * len(HEADER.labels) * HEADER.trials
        kept = on_disk
    with process("run", tmp_path / "run") as child:
        assert child.wait() == 0
    run = read_run(tmp_path / "run")
    assert run.complete
    assert sorted_records(run) == sorted_records(RunRecords(HEADER, tuple(undisturbed())))


def test_a_second_process_is_refused_while_the_first_lives_and_accepted_after_its_kill(tmp_path: Path) -> None:
    with process("hold", tmp_path / "run") as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        with pytest.raises(RunLockedError, match=f"is being written by process {pid}"):
            open_run(tmp_path / "run", HEADER)
        assert read_run(tmp_path / "run").records == ()
        child.kill()
        child.wait()
        open_run(tmp_path / "run", HEADER).close()


def test_a_forked_worker_does_not_keep_the_folder_of_its_killed_parent_locked(tmp_path: Path) -> None:
    with process("fork", tmp_path / "run") as child:
        assert child.stdout is not None and child.stdin is not None
        int(child.stdout.readline())
        with pytest.raises(RunLockedError):
            open_run(tmp_path / "run", HEADER)
        child.kill()
        child.wait()
        # The worker lives on until its input ends.
        open_run(tmp_path / "run", HEADER).close()
        child.stdin.close()
        assert child.stdout.read() == ""


def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with process("full", tmp_path / "run") as child:
        assert child.stdout is not None
        message = child.stdout.read()
        assert child.wait() == 0
    assert f"cannot write {tmp_path / 'run' / 'slots.jsonl'}: File too large" in message
    assert "check free space" in message
    assert sorted_records(read_run(tmp_path / "run")) == sorted_records(RunRecords(HEADER, tuple(undisturbed())))
