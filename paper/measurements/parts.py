"""A measurement under way: its finished parts are kept in a file beside its place, and the same command goes on.

A part is the value of one request to a function of a module, so that parts can be made in worker processes. The file
says what the parts were made with; parts of anything else, or a torn file, are not gone on from.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fedelect._processes import run_tasks
from fedelect.records.files import make_folder, replace_file

Progress = Callable[[int, int], None]
"""Told (parts finished, parts in all)."""

_Kind = TypeVar("_Kind")


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts as they are written: each by its name, encoded."""

    about: bytes
    parts: dict[str, bytes]


class Parts:
    """The finished parts of one measurement.

    Args:
        path: Where they are kept until the measurement is finished.
        about: What they are made with; others are not gone on from.
        workers: Processes that make them, 1 for none beside this one.
        progress: Told whenever a part is finished.
    """

    def __init__(
        self, path: Path, about: msgspec.Struct, *, workers: int = 1, progress: Progress = lambda finished, total: None
    ) -> None:
        self._path, self._about = path, msgspec.json.encode(about)
        self._workers, self._progress = workers, progress
        self._encoded: dict[str, bytes] = {}
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            kept = msgspec.msgpack.decode(path.read_bytes(), type=_Kept)
            if kept.about == self._about:
                self._encoded = kept.parts

    def made(
        self,
        kind: type[_Kind],
        function: Callable[..., _Kind],
        requests: Mapping[str, tuple[Any, ...]],
        *,
        alone: bool = False,
    ) -> dict[str, _Kind]:
        """The value of every request, by its name: from the file, or made now.

        Args:
            kind: Type of the values, one that msgspec can write.
            function: Makes one: a function that can be found by its name, or `functools.partial` of one.
            requests: Its arguments, by the name of the part.
            alone: One after the other in this process, for what takes time by the clock.
        """
        missing = [name for name in requests if name not in self._encoded]
        self._progress(len(requests) - len(missing), len(requests))
        workers = 1 if alone else self._workers
        for place, value in run_tasks(function, [requests[name] for name in missing], workers=workers):
            self._encoded[missing[place]] = msgspec.msgpack.encode(value)
            self._keep()
            self._progress(sum(name in self._encoded for name in requests), len(requests))
        return {name: msgspec.msgpack.decode(self._encoded[name], type=kind) for name in requests}

    def discard(self) -> None:
        """Delete the file: the measurement is finished."""
        self._path.unlink(missing_ok=True)

    def _keep(self) -> None:
        make_folder(self._path.parent)
        replace_file(self._path, msgspec.msgpack.encode(_Kept(about=self._about, parts=self._encoded)))
