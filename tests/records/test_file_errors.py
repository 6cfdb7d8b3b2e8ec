import io
import os
import sys
from pathlib import Path

import pytest
from tests.sample_runs import sample_header, sample_records

from fedelect.errors import RunError, RunLockedError
from fedelect.records import open_run, read_run

HEADER = sample_header()
RECORDS = sample_records(HEADER)


@pytest.mark.parametrize("name", ["slots.jsonl", "run.json"])
def test_a_folder_in_place_of_a_file_is_an_error_with_its_path(tmp_path: Path, name: str) -> None:
    open_run(tmp_path, HEADER).close()
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    for attempt in (lambda: read_run(tmp_path), lambda: open_run(tmp_path, HEADER)):
        with pytest.raises(RunError, match=rf"cannot read .*{name}: "):
            attempt()


def test_a_file_in_place_of_the_checkpoints_is_an_error_with_its_path(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        (tmp_path / "checkpoint").write_text("")
        with pytest.raises(RunError, match=r"cannot write .*checkpoint: "):
            writer.save_checkpoint(1, b"one")


def test_a_checkpoint_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        (tmp_path / "checkpoint" / "00000001.state").mkdir(parents=True)
        with pytest.raises(RunError, match=r"cannot read .*checkpoint: "):
            writer.load_checkpoint()


def test_a_lock_that_cannot_be_opened_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(RunError, match=r"cannot open the lock .*lock: "):
        open_run(tmp_path, HEADER)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff\xfe"])
def test_an_unknown_holder_of_the_lock_is_called_another_process(tmp_path: Path, content: bytes) -> None:
    with open_run(tmp_path, HEADER):
        (tmp_path / "lock").write_bytes(content)
        with pytest.raises(RunLockedError, match="is being written by another process"):
            open_run(tmp_path, HEADER)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_a_file_system_without_locks_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RunError, match=r"cannot lock .*: No locks available; put the run on a file system"):
        open_run(tmp_path, HEADER)


class FailingFile(io.RawIOBase):
    """Takes the first bytes of a write and then fails; perhaps it cannot undo that either."""

    def __init__(self, path: Path, error: BaseException, *, undo: bool) -> None:
        self._path, self._error, self._undo, self._calls = path, error, undo, 0

    def write(self, data: object) -> int:
        self._calls += 1
        if self._calls > 1:
            raise self._error
        assert isinstance(data, memoryview)
        with open(self._path, "ab") as file:
            return file.write(data[:100])

    def truncate(self, size: int | None = None) -> int:
        if not self._undo:
            raise OSError(5, "Input/output error")
        assert size is not None
        os.truncate(self._path, size)
        return size

    def fileno(self) -> int:
        return 1


@pytest.mark.parametrize("undo", [True, False])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_half_way_loses_nothing(tmp_path: Path, error: BaseException, undo: bool) -> None:
    writer = open_run(tmp_path, HEADER)
    writer.append(RECORDS[:3])
    real, file = writer._file, FailingFile(tmp_path / "slots.jsonl", error, undo=undo)
    writer._file = file  # type: ignore[assignment]
    expected = RunError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match=r"No space left|^$"):
        writer.append(RECORDS[3:6])
    assert read_run(tmp_path).records == RECORDS[:3]
    # Where the half line could not be undone, this writer is done; the next one cuts it off.
    assert file.closed is not undo
    writer._file = real
    writer.close()
    with open_run(tmp_path, HEADER) as resumed:
        assert resumed.append(RECORDS) == len(RECORDS) - 3
    assert read_run(tmp_path).records == RECORDS
