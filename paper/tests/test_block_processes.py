"""Processes that play blocks: they end with their parent, whatever ends it, and lose nothing that was finished."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.worlds import digits

from fedelect.errors import RunLockedError
from paper.runner import ResultStore, play
from paper.series import RunRequest
from paper.tests.test_kept_results import BP, QUICK, store

SCRIPT = """
import sys
from pathlib import Path
from paper.tests.test_kept_results import BP, QUICK, store
from paper.runner import play
from paper.series import RunRequest
from tests.worlds import digits
kept = store(Path(sys.argv[1]))
tasks = kept.missing([RunRequest(series=series, trials=8, slots=8) for series in (QUICK, BP)])
def wait(task):
    print("finished", flush=True)
    sys.stdin.read(1)  # blocks go on in the workers

with kept.writing():
    play(tasks, digits(), workers=2, finished=wait)
"""
REQUESTS = [RunRequest(series=series, trials=8, slots=8) for series in (QUICK, BP)]


@contextlib.contextmanager
def play_in_another_process(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", list[int]]]:
    """A process that plays `REQUESTS` with two workers and has finished a block; with the numbers of its workers."""
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"finished\n"
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        yield process, [int(number) for number in listed.split()]


def until_ended(processes: list[int]) -> None:
    deadline = time.monotonic() + 300
    while [pid for pid in processes if _alive(pid)] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in processes if _alive(pid)]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def goes_on(kept: ResultStore) -> None:
    """The rest is played, and what was finished is left as it was."""
    before = {task.path: task.path.stat().st_mtime_ns for task in kept.tasks(REQUESTS) if task.path.exists()}
    assert before
    with kept.writing():
        play(kept.missing(REQUESTS), digits(), workers=1)
    assert not kept.missing(REQUESTS)
    for written, at in before.items():
        assert written.stat().st_mtime_ns == at


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@needs_proc
@pytest.mark.integration
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_their_parent_and_nothing_finished_is_lost(sent: signal.Signals, tmp_path: Path) -> None:
    with play_in_another_process(tmp_path) as (process, workers):
        assert len(workers) == 2
        process.send_signal(sent)
    until_ended(workers)
    goes_on(store(tmp_path))


@needs_proc
@pytest.mark.integration
def test_a_worker_that_is_killed_ends_the_command_with_an_error_and_nothing_finished_is_lost(tmp_path: Path) -> None:
    with play_in_another_process(tmp_path) as (process, workers):
        os.kill(workers[0], signal.SIGKILL)
        _, told = process.communicate(timeout=300)
    assert process.returncode == 1 and b"a worker process was lost: it was killed by signal 9" in told
    until_ended(workers)
    goes_on(store(tmp_path))


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    kept, other = store(tmp_path / "kept"), store(tmp_path / "kept")
    with kept.writing():
        with pytest.raises(RunLockedError, match=r"is being written by process \d+.*another folder"), other.writing():
            pass
        assert other.curves(REQUESTS[0]) is None
    with other.writing():
        pass
