"""Reading a run folder: finished, partial, or while it is being written.

Reading takes no lock and changes nothing. The file is decoded block by block, so that beside the records only a
few megabytes are held. Each line's checksum is verified before it is parsed. A last line without its line feed is one
that is being written, or was when its writer was killed: it is never parsed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fedelect.errors import RunError
from fedelect.records.checksum import begin_chain, open_line
from fedelect.records.codec import UNREADABLE, RecordCheck, decode_header, decode_record, describe
from fedelect.records.files import as_run_error
from fedelect.records.run_folder import HEADER_NAME, SLOTS_NAME
from fedelect.records.schema import RunHeader, SlotRecord

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class RunRecords:
    """What is known of a run.

    Attributes:
        header: What the run is.
        records: Its slots so far, in the order in which they were written.
    """

    header: RunHeader
    records: tuple[SlotRecord, ...]

    @property
    def complete(self) -> bool:
        """Whether every slot of every trial of every selector is on record."""
        return len(self.records) == self.header.planned


class Place(NamedTuple):
    """Where a record stands in slots.jsonl: byte offset of its line, and of the line after it."""

    start: int
    end: int


def read_run(path: str | os.PathLike[str]) -> RunRecords:
    """The run in folder `path`, as far as it has got.

    Raises:
        SchemaError: It was written under a version that this one does not know.
        RunError: There is no run, or its header or a line is damaged (the message names the file and the line).
    """
    follower = follow_run(path)
    return RunRecords(follower.header, tuple(follower.fresh()))


def sorted_records(run: RunRecords) -> list[SlotRecord]:
    """The records by (selector, trial, slot): the order in which two runs are compared."""
    return sorted(run.records, key=lambda record: (record.selector, record.trial, record.slot))


def read_header(folder: Path) -> RunHeader:
    """The header of the run in `folder`; SchemaError or RunError as for `read_run`."""
    return _read_header_file(folder)[0]


def _read_header_file(folder: Path) -> tuple[RunHeader, str]:
    """The header and the run's id."""
    file = folder / HEADER_NAME
    try:
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunError(f"{folder} is no run folder: it has no {HEADER_NAME}; name a folder that a run wrote") from error
    except OSError as error:
        raise as_run_error("read", file, error) from error
    return decode_header(text, str(file))


def follow_run(path: str | os.PathLike[str]) -> "RunFollower":
    """The run in folder `path`, to be read as it grows.

    Raises:
        SchemaError, RunError: As for `read_run`.
    """
    folder = Path(path)
    return RunFollower(folder, *_read_header_file(folder))


class RunFollower:
    """Reads a run folder piece by piece while another process may be writing it; made by `follow_run`.

    Attributes:
        header: What the run is.
        run_id: The run's id, 32 hexadecimal digits.
        checksum: That of the last line that was read.
    """

    def __init__(self, folder: Path, header: RunHeader, run_id: str) -> None:
        self.header = header
        self.run_id = run_id
        self.checksum = begin_chain(run_id)
        self._file = folder / SLOTS_NAME
        self._check = RecordCheck(header)
        self._seen: dict[tuple[str, int], set[int]] = {}
        self._line = 0
        self._end = 0

    def fresh(self) -> Iterator[SlotRecord]:
        """The records whose lines were completed since the last call, in the order of the file.

        Raises:
            RunError: A line is damaged or repeats a slot, or the file is gone or has become shorter.
        """
        return (record for _, record in self.fresh_places())

    def fresh_places(self) -> Iterator[tuple[Place, SlotRecord]]:
        """The same with the place of each record's line; its checksum is verified, and that it fits the header."""
        for line in _complete_lines(self._file, self._end):
            try:
                content, checksum = open_line(line, self.checksum)
                record = decode_record(content)
                self._check(record)
            except (*UNREADABLE, RunError) as error:
                raise describe_damaged_line(self._file, self._line + 1, error, self.header) from error
            slots = self._seen.setdefault((record.selector, record.trial), set())
            if record.slot in slots:
                raise RunError(
                    f"line {self._line + 1} of {self._file} repeats {describe(record)}; restore the file from a copy"
                )
            slots.add(record.slot)
            self._line += 1
            self.checksum = checksum
            start, self._end = self._end, self._end + len(line) + 1
            yield Place(start, self._end), record


def describe_damaged_line(file: Path, number: int, error: Exception, header: RunHeader) -> RunError:
    """Describe a damaged line of slots.jsonl: which, why, and what to do."""
    repeated = "delete this line and all after it and give the same command again, which plays those slots again"
    remedy = repeated if header.source == "simulator" else "run again in a new folder"
    return RunError(f"line {number} of {file} is damaged: {error}; restore the file from a copy, or {remedy}")


def _complete_lines(file: Path, start: int) -> Iterator[bytes]:
    try:
        with open(file, "rb") as source:
            if source.seek(0, os.SEEK_END) < start:
                raise RunError(f"{file} has become shorter since it was last read; read the run anew")
            source.seek(start)
            rest = b""
            while block := source.read(_BLOCK_BYTES):
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                yield from lines
    except FileNotFoundError as error:
        raise RunError(
            f"{file} is missing, and with it the records of the run; restore it from a copy, or run again in a new "
            f"folder"
        ) from error
    except OSError as error:
        raise as_run_error("read", file, error) from error
