"""Work that takes long, kept in finished parts, so that a process that was killed goes on where it stopped.

    plan.json     what the parts belong to; a folder is resumed only under an equal plan
    NAME.part     one part: 16 bytes of checksum, then its content
    lock          held by the process that works

A part is written whole or not at all; a damaged one counts as missing. When the folder is removed, the plan goes last,
so that every part that is left can be attributed.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fedelect.errors import RunError, RunMismatchError
from fedelect.records.files import TEMPORARY_SUFFIX, make_folder, read_checked, replace_checked, replace_file
from fedelect.records.lock import FolderLock
from fedelect.records.run_folder import LOCK_NAME

_PLAN = "plan.json"
_SUFFIX = ".part"


class PartStore:
    """Finished parts by name, in a folder of their own. Locked from construction to `close` or `discard`.

    Args:
        folder: Where they are kept; made if it does not exist.
        plan: JSON-able: everything that decides over the content of the parts.
        what: What is made of the parts, for messages, such as "an atlas".
        start_over: Delete parts of another plan instead of refusing them.

    Raises:
        RunMismatchError: The folder holds parts of another plan.
        RunLockedError: Another process works there.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any], *, what: str, start_over: bool = False) -> None:
        self._folder = folder
        make_folder(folder)
        self._lock = FolderLock(folder / LOCK_NAME)
        try:
            if start_over and not _is_of(folder, plan):
                _remove_parts(folder)
            self._check_plan(_as_read(plan), what)
        except BaseException:
            self._lock.release()
            raise

    def load(self, name: str) -> bytes | None:
        """Read a part; None if it is missing or damaged."""
        try:
            return read_checked(self._path(name))
        except OSError:
            return None

    def save(self, name: str, content: bytes) -> None:
        """Write a part, or replace it."""
        replace_checked(self._path(name), content)

    def close(self) -> None:
        """Keep the parts and let another process continue."""
        self._lock.release()

    def discard(self) -> None:
        """Remove the folder: the work is finished."""
        _remove(self._folder, self._lock)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"

    def _check_plan(self, plan: dict[str, Any], what: str) -> None:
        path = self._folder / _PLAN
        if not path.exists():
            if _parts(self._folder):
                raise RunMismatchError(
                    f"{self._folder} holds parts of {what}, but {_PLAN}, which says of which, is gone; remove the "
                    f"folder to begin anew, or write to another file"
                )
            replace_file(path, msgspec.json.encode(plan))
            return
        try:
            begun = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError) as error:
            raise RunError(f"{path} cannot be read: {error}; remove the folder to begin anew") from error
        changed = sorted(key for key in begun.keys() | plan.keys() if begun.get(key) != plan.get(key))
        if changed:
            raise RunMismatchError(
                f"{self._folder} holds parts of {what} with another plan ({', '.join(changed)} differ); go on with "
                f"what it was begun with, write to another file, or remove the folder"
            )


def remove_leftovers(folder: Path, plan: Mapping[str, Any]) -> None:
    """Remove the parts of finished work that were left because its process was killed at the very end.

    Parts of another plan, and those that another process works on, stay; versions may differ. What cannot be removed
    stays, too.
    """
    if not folder.is_dir():
        return
    try:
        lock = FolderLock(folder / LOCK_NAME)
    except RunError:
        return
    if _is_of(folder, plan, ignored="versions") or not (_parts(folder) or (folder / _PLAN).exists()):
        _remove(folder, lock)
    else:
        lock.release()


def _as_read(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan as JSON gives it back."""
    return msgspec.json.decode(msgspec.json.encode(plan), type=dict[str, Any])


def _is_of(folder: Path, plan: Mapping[str, Any], *, ignored: str = "") -> bool:
    try:
        begun = msgspec.json.decode((folder / _PLAN).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return False
    return bool({**begun, ignored: None} == {**_as_read(plan), ignored: None})


def _parts(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{_SUFFIX}"))


def _remove_parts(folder: Path) -> None:
    """Remove the parts, and then the plan; it stays while a part does."""
    for path in (*_parts(folder), *folder.glob(f"*{TEMPORARY_SUFFIX}")):
        with contextlib.suppress(OSError):
            path.unlink()
    if not _parts(folder):
        with contextlib.suppress(OSError):
            (folder / _PLAN).unlink(missing_ok=True)


def _remove(folder: Path, lock: FolderLock) -> None:
    """Remove everything that a store wrote, and the folder if nothing else is in it."""
    _remove_parts(folder)
    lock.release()
    with contextlib.suppress(OSError):
        (folder / LOCK_NAME).unlink(missing_ok=True)
        folder.rmdir()
