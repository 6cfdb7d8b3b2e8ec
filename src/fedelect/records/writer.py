"""Writing a run folder so that whatever kills the process, what was recorded stays.

Theory of operation. A record is on disk when `append` returns: it is one write to an append-only file, which
survives the death of the process. Only a death in the middle of that write leaves an incomplete last line, which
the next `open_run` cuts off. `save_checkpoint` forces the records to the disk first, so that after a power cut
no checkpoint is ahead of its records. A resumed driver goes on from its checkpoint and offers the slots after it
again; those already on record must come out equal, which proves that the run repeats itself.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from fedelect.errors import RunError, RunMismatchError
from fedelect.records.checksum import TAIL_BYTES, begin_chain, open_line, read_checksum, seal_line
from fedelect.records.codec import (
    UNREADABLE,
    RecordCheck,
    decode_record,
    describe,
    encode_header,
    encode_record,
    header_differences,
    record_differences,
)
from fedelect.records.files import TEMPORARY_SUFFIX, as_run_error, replace_file, sync_folder
from fedelect.records.lock import FolderLock
from fedelect.records.on_slot import OnSlot, check_on_slot, report_slot
from fedelect.records.reader import RunFollower, describe_damaged_line, follow_run
from fedelect.records.run_folder import CHECKPOINT_NAME, HEADER_NAME, LOCK_NAME, SLOTS_NAME, Checkpoint, CheckpointStore
from fedelect.records.schema import RunHeader, SlotRecord

_OURS_BEFORE_THE_HEADER = {LOCK_NAME, SLOTS_NAME + TEMPORARY_SUFFIX, HEADER_NAME + TEMPORARY_SUFFIX}
_SHOWN_DIFFERENCES = 10


def open_run(
    path: str | os.PathLike[str], header: RunHeader, *, extend: bool = False, on_slot: OnSlot | None = None
) -> "RunWriter":
    """Start the run `header` in folder `path`, or take it up where it stopped.

    Args:
        path: The run folder; made if it is not there.
        header: What is to be run. Its provenance is kept only when the run is new.
        extend: Whether a run may be given more slots than it was begun with.
        on_slot: Told each record that is new, after it was written.

    Returns:
        A writer that holds the folder's lock; use it in a `with` statement.

    Raises:
        RunMismatchError: The folder holds another configuration; the message names the fields that differ.
        RunLockedError: Another process is writing to it.
        SchemaError: It was written under a version that this one does not know.
        RunError: It holds other files but no run, is damaged, or cannot be written.
    """
    check_on_slot(on_slot)
    folder = Path(path)
    text = encode_header(header)
    try:
        _refuse_foreign(folder)
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.parent)
    except OSError as error:
        raise as_run_error("use", folder, error) from error
    lock = FolderLock(folder / LOCK_NAME)
    try:
        if not (folder / HEADER_NAME).exists():
            replace_file(folder / SLOTS_NAME)  # first, so that a run without this file is one that lost it
            replace_file(folder / HEADER_NAME, text)
        run = follow_run(folder)
        if extend and run.header.slots < header.slots:
            longer = msgspec.structs.replace(run.header, slots=header.slots)
            _refuse_other(folder, longer, header)
            replace_file(folder / HEADER_NAME, encode_header(longer, run.run_id))
            run = follow_run(folder)
        _refuse_other(folder, run.header, header)
        return RunWriter(folder, run, lock, on_slot)
    except BaseException:
        lock.release()
        raise


def _refuse_foreign(folder: Path) -> None:
    if not folder.is_dir():
        if folder.exists():
            raise RunError(f"{folder} is a file; name a folder for the run")
        return
    slots = folder / SLOTS_NAME
    empty = {SLOTS_NAME} if slots.is_file() and not slots.stat().st_size else set()
    names = {entry.name for entry in folder.iterdir()} - empty
    if HEADER_NAME not in names and not names <= _OURS_BEFORE_THE_HEADER:
        found = ", ".join(sorted(names - _OURS_BEFORE_THE_HEADER)[:3])
        raise RunError(f"{folder} holds other files ({found}) and no {HEADER_NAME}; name a new or empty folder")


def _refuse_other(folder: Path, stored: RunHeader, header: RunHeader) -> None:
    differences = header_differences(stored, header)
    if differences:
        listed = _list(differences, "\n  ")
        raise RunMismatchError(
            f"{folder} holds a run of another configuration (there -> asked for):\n  {listed}\n"
            f"ask for the same configuration to resume it, or write to another folder"
        )


def _list(differences: list[str], separator: str) -> str:
    more = len(differences) - _SHOWN_DIFFERENCES
    return separator.join(differences[:_SHOWN_DIFFERENCES] + ([f"and {more} more"] if more > 0 else []))


class RunWriter:
    """The one writer of a run folder; made by `open_run`. Not for use from several threads."""

    def __init__(self, folder: Path, run: RunFollower, lock: FolderLock, on_slot: OnSlot | None) -> None:
        self._folder = folder
        self._on_slot = on_slot
        self._header = run.header
        self._run_id = run.run_id
        self._lock = lock
        self._check = RecordCheck(run.header)
        self._checkpoints = CheckpointStore(
            folder / CHECKPOINT_NAME, run.run_id, repeatable=run.header.source == "simulator"
        )
        self._slots_path = folder / SLOTS_NAME
        # Byte offset of each record's line: enough to compare, and small beside the records themselves.
        self._offsets: dict[tuple[str, int], dict[int, int]] = {}
        self._size = 0
        for place, record in run.fresh_places():
            self._offsets.setdefault((record.selector, record.trial), {})[record.slot] = place.start
            self._size = place.end
        self._checksum = run.checksum
        try:
            self._file = open(self._slots_path, "ab", buffering=0)  # noqa: SIM115 - closed by `close`
            try:
                self._file.truncate(self._size)
                sync_folder(folder)
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            raise as_run_error("write", self._slots_path, error) from error

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder

    @property
    def header(self) -> RunHeader:
        """The header on disk, with the provenance of the run's first start."""
        return self._header

    def recorded(self, selector: str, trial: int) -> frozenset[int]:
        """The slots of one selector and trial that are on record."""
        return frozenset(self._offsets.get((selector, trial), ()))

    def append(self, records: Iterable[SlotRecord]) -> int:
        """Put `records` on disk in one write; all of them or, when one is refused, none.

        A record of a slot that is on record already is compared and left out.

        Returns:
            How many were new.

        Raises:
            RunError: A record does not fit the run or differs from the one on disk, the disk refused it, or `on_slot`
                failed, in which case all of them are on disk.
        """
        self._refuse_closed()
        fresh: dict[tuple[str, int, int], SlotRecord] = {}
        lines: list[bytes] = []
        checksum = self._checksum
        for record in records:
            content = encode_record(record)
            self._check(record)
            key = (record.selector, record.trial, record.slot)
            known = fresh.get(key) or self._on_disk(record)
            if known is None:
                fresh[key] = record
                line, checksum = seal_line(content, checksum)
                lines.append(line)
            elif known != record:
                raise RunError(
                    f"{describe(record)} is on record in {self._folder} with other values (there -> now): "
                    f"{_list(record_differences(known, record), '; ')}; the run does not repeat itself: resume it "
                    f"with the versions under `provenance` in {HEADER_NAME}, or run again in a new folder"
                )
        if lines:
            self._write(b"".join(lines))
        self._checksum = checksum
        for (selector, trial, slot), line in zip(fresh, lines, strict=True):
            self._offsets.setdefault((selector, trial), {})[slot] = self._size
            self._size += len(line)
        for record in fresh.values():
            report_slot(self._on_slot, record)
        return len(lines)

    def extend(self, slots: int) -> None:
        """Give the run `slots` slots, if it has fewer; for a driver that is not told how many there will be."""
        self._refuse_closed()
        if slots > self._header.slots:
            self._header = msgspec.structs.replace(self._header, slots=slots)
            replace_file(self._folder / HEADER_NAME, encode_header(self._header, self._run_id))
            self._check = RecordCheck(self._header)

    def save_checkpoint(self, slot: int, payload: bytes) -> None:
        """Keep the driver's state after `slot`, durably, with every record appended so far.

        The state before it is kept too. `payload` is opaque; the driver gives what it needs to go on.
        """
        self._refuse_closed()
        self._sync_records()
        self._checkpoints.save(slot, payload)

    def load_checkpoint(self) -> Checkpoint | None:
        """The newest sound checkpoint as (slot, payload), or None if there is none.

        Raises:
            RunError: Both generations are damaged; the message says what to do.
        """
        return self._checkpoints.load()

    def close(self) -> None:
        """Force the records to disk and give the folder up; does nothing the second time."""
        if self._file.closed:
            return
        try:
            self._sync_records()
        finally:
            self._file.close()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refuse_closed(self) -> None:
        if self._file.closed:
            raise RunError(f"the writer of {self._folder} is closed; open the run again with `open_run`")

    def _on_disk(self, record: SlotRecord) -> SlotRecord | None:
        offset = self._offsets.get((record.selector, record.trial), {}).get(record.slot)
        if offset is None:
            return None
        before = begin_chain(self._run_id)
        try:
            with open(self._slots_path, "rb") as file:
                if offset:
                    file.seek(offset - 1 - TAIL_BYTES)
                    before = read_checksum(file.read(TAIL_BYTES))
                    file.seek(1, os.SEEK_CUR)
                content, _ = open_line(file.readline()[:-1], before)
                return decode_record(content)
        except OSError as error:
            raise as_run_error("read", self._slots_path, error) from error
        except (*UNREADABLE, RunError, ValueError) as error:
            number = 1 + sum(one < offset for slots in self._offsets.values() for one in slots.values())
            raise describe_damaged_line(self._slots_path, number, error, self._header) from error

    def _write(self, payload: bytes) -> None:
        rest = memoryview(payload)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except BaseException as error:
            # A full disk may have taken a part: undo it, or else leave it to the next `open_run`.
            try:
                self._file.truncate(self._size)
            except OSError:
                self._file.close()
                self._lock.release()
            if isinstance(error, OSError):
                raise as_run_error("write", self._slots_path, error) from error
            raise

    def _sync_records(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise as_run_error("write", self._slots_path, error) from error
