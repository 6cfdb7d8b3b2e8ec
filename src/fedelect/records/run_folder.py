"""The files of a run folder, and the checkpoints in it.

run.json         the header, written once
slots.jsonl      one record a line, only ever appended to
checkpoint/      the driver's state: the newest generation and the one before it
lock             held by the process that writes
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import msgspec

from fedelect.errors import RunError
from fedelect.records.files import as_run_error, replace_file, sync_folder

HEADER_NAME = "run.json"
SLOTS_NAME = "slots.jsonl"
CHECKPOINT_NAME = "checkpoint"
LOCK_NAME = "lock"

_STATE_SUFFIX = ".state"


class Checkpoint(NamedTuple):
    """A driver's saved state.

    Attributes:
        slot: The last slot that the state includes, as the driver counts.
        payload: The state, opaque here.
    """

    slot: int
    payload: bytes


class _Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """First line of a checkpoint file; the payload follows."""

    slot: int
    bytes: int
    blake2b: str


class CheckpointStore:
    """The two newest generations of a driver's state, in files `<number>.state` of one folder.

    Args:
        folder: The folder; made by the first `save`.
        run_id: The run's id. The state of another run counts as damaged.
        repeatable: Whether slots can be played again where the state is lost.
    """

    def __init__(self, folder: Path, run_id: str, *, repeatable: bool) -> None:
        self._folder = folder
        self._run_id = run_id
        self._repeatable = repeatable
        self._trusted: int | None = None

    def save(self, slot: int, payload: bytes) -> None:
        """Write a new generation; the one before it stays until the new one is complete, and after."""
        try:
            if not self._folder.is_dir():
                self._folder.mkdir()
                sync_folder(self._folder.parent)
            known = self._generations()
        except OSError as error:
            raise as_run_error("write", self._folder, error) from error
        newest = known[-1] + 1 if known else 1
        label = msgspec.json.encode(_Label(slot, len(payload), _digest(self._run_id, slot, payload)))
        replace_file(self._path(newest), label + b"\n", payload)
        # A damaged generation must not push out the sound one that a resumed run was loaded from.
        fallback = self._trusted if self._trusted is not None else (known[-1] if known else None)
        self._trusted = newest
        self._discard_all_but({newest, fallback})

    def load(self) -> Checkpoint | None:
        """The newest generation that is sound; None if nothing was saved; RunError if all are damaged."""
        try:
            generations = self._generations()
            for generation in reversed(generations):
                checkpoint = _parse(self._path(generation).read_bytes(), self._run_id)
                if checkpoint is not None:
                    self._trusted = generation
                    return checkpoint
        except OSError as error:
            raise as_run_error("read", self._folder, error) from error
        if generations:
            remedy = (
                "delete that folder and start the same command again: the run is repeated from its first slot and "
                "checked against the records, which are kept"
                if self._repeatable
                else "restore it from a copy, or run again in a new folder"
            )
            raise RunError(f"every checkpoint in {self._folder} is damaged or of another run; {remedy}")
        return None

    def _path(self, generation: int) -> Path:
        return self._folder / f"{generation:08d}{_STATE_SUFFIX}"

    def _generations(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        stems = [entry.stem for entry in self._folder.iterdir() if entry.suffix == _STATE_SUFFIX]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _discard_all_but(self, kept: set[int | None]) -> None:
        # Clearing up may fail (a virus scanner holds the file): the next save tries again.
        for generation in self._generations():
            if generation not in kept:
                try:
                    self._path(generation).unlink()
                except OSError:
                    continue


def _digest(run_id: str, slot: int, payload: bytes) -> str:
    digest = hashlib.blake2b(f"{run_id}\n{slot}\n".encode(), digest_size=16)
    digest.update(payload)
    return digest.hexdigest()


def _parse(text: bytes, run_id: str) -> Checkpoint | None:
    line, feed, payload = text.partition(b"\n")
    try:
        label = msgspec.json.decode(line, type=_Label)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    sound = bool(feed) and label.bytes == len(payload) and label.blake2b == _digest(run_id, label.slot, payload)
    return Checkpoint(label.slot, payload) if sound else None
