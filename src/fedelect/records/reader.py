"""Reading a run folder: finished, partial, or while it is being written.

Reading takes no lock and changes nothing. The file is decoded block by block, so that beside the records only a
few megabytes are held. A last line without its line feed is one that is being written, or was when its writer
was killed: it is never parsed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fedelect.errors import RunError
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
        RunError: There is no run, or a line of it is damaged (the message names the line).
    """
    folder = Path(path)
    header = read_header(folder)
    return RunRecords(header, tuple(record for _, record in scan_records(folder, header)))


def sorted_records(run: RunRecords) -> list[SlotRecord]:
    """The records by (selector, trial, slot): the order in which two runs are compared."""
    return sorted(run.records, key=lambda record: (record.selector, record.trial, record.slot))


def read_header(folder: Path) -> RunHeader:
    """The header of the run in `folder`; SchemaError or RunError as for `read_run`."""
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
    return RunFollower(folder, read_header(folder))


class RunFollower:
    """Reads a run folder piece by piece while another process may be writing it; made by `follow_run`.

    Attributes:
        header: What the run is.
    """

    def __init__(self, folder: Path, header: RunHeader) -> None:
        self.header = header
        self._file = folder / SLOTS_NAME
        self._check = RecordCheck(header)
        self._seen: dict[tuple[str, int], set[int]] = {}
        self._line = 0
        self._end = 0

    def fresh(self) -> Iterator[SlotRecord]:
        """The records whose lines were completed since the last call, in the order of the file.

        Raises:
            RunError: A line is damaged or repeats a slot, or the file has become shorter.
        """
        return (record for _, record in self.fresh_places())

    def fresh_places(self) -> Iterator[tuple[Place, SlotRecord]]:
        """The same with the place of each record's line; checked against the header and for repeats."""
        for line in _complete_lines(self._file, self._end):
            self._line += 1
            try:
                record = decode_record(line)
                self._check(record)
            except (*UNREADABLE, RunError) as error:
                raise RunError(
                    f"line {self._line} of {self._file} is damaged: {error}; "
                    f"restore the file from a copy, or run again in a new folder"
                ) from error
            slots = self._seen.setdefault((record.selector, record.trial), set())
            if record.slot in slots:
                raise RunError(
                    f"line {self._line} of {self._file} repeats {describe(record)}; restore the file from a copy"
                )
            slots.add(record.slot)
            start, self._end = self._end, self._end + len(line) + 1
            yield Place(start, self._end), record


def scan_records(folder: Path, header: RunHeader) -> Iterator[tuple[Place, SlotRecord]]:
    """Each complete line of slots.jsonl with its place, checked against the header and for repeats."""
    return RunFollower(folder, header).fresh_places()


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
    except FileNotFoundError:
        return
    except OSError as error:
        raise as_run_error("read", file, error) from error
