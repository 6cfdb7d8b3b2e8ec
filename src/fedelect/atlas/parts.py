"""An atlas under construction: a folder of finished parts beside it, so that a build that was killed goes on.

    plan.json            what is being built; a folder is gone on with only under an equal plan
    table-S-NNNNN.part   opinions on chunk N of the cohorts with training seed S
    fresh-S.part         opinions on the contenders with the fresh seed S
    lock                 held by the process that builds

A part is written whole or not at all; one that cannot be read is trained again. When the folder is removed, its plan
goes after its parts, so that whose parts they are is known for as long as there are any.
"""

import contextlib
import hashlib
import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedelect.errors import RunError, RunMismatchError
from fedelect.records.files import TEMPORARY_SUFFIX, as_run_error, replace_file
from fedelect.records.lock import FolderLock

_PLAN = "plan.json"


class Parts:
    """The finished parts of one atlas. Locked from construction to `close` or `discard`.

    Args:
        folder: Where they are; made if it is not there.
        plan: What is being built, JSON-able; all that decides over the numbers.

    Raises:
        RunMismatchError: The folder holds parts of something else.
        RunLockedError: Another process is building there.
    """

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise as_run_error("write", folder, error) from error
        self._lock = FolderLock(folder / "lock")
        try:
            self._agree(plan)
        except BaseException:
            self._lock.release()
            raise

    def load(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """The part called `name`; None if it is not there, or not sound."""
        try:
            text = self._path(name).read_bytes()
            digest, content = text[:16], text[16:]
            if hashlib.blake2b(content, digest_size=16).digest() != digest:
                return None
            part: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return part if part.shape == shape and part.dtype == dtype else None

    def save(self, name: str, part: NDArray[Any]) -> None:
        """Keep a part."""
        content = io.BytesIO()
        np.save(content, part, allow_pickle=False)
        data = content.getvalue()
        replace_file(self._path(name), hashlib.blake2b(data, digest_size=16).digest(), data)

    def close(self) -> None:
        """Let another process go on."""
        self._lock.release()

    def discard(self) -> None:
        """The atlas is whole: remove the folder."""
        _remove(self._folder, self._lock)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.part"

    def _agree(self, plan: dict[str, Any]) -> None:
        path = self._folder / _PLAN
        plain = msgspec.json.decode(msgspec.json.encode(plan))
        if not path.exists():
            if list(self._folder.glob("*.part")):
                raise RunMismatchError(
                    f"{self._folder} holds parts of an atlas, but {_PLAN}, which says of which, is gone; remove the "
                    f"folder to begin anew, or write to another file"
                )
            replace_file(path, msgspec.json.encode(plain))
            return
        try:
            begun = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError) as error:
            raise RunError(f"{path} cannot be read: {error}; remove the folder to begin anew") from error
        changed = sorted(key for key in begun.keys() | plain.keys() if begun.get(key) != plain.get(key))
        if changed:
            raise RunMismatchError(
                f"{self._folder} holds parts of another atlas ({', '.join(changed)} differ); go on with what it was "
                f"begun with, write to another file, or remove the folder"
            )


def remove_leftovers(folder: Path, plan: dict[str, Any]) -> None:
    """Remove the parts of an atlas that is whole, which a build that was killed at its very end left behind.

    Parts of another plan, or that another process is at, stay; versions may differ. So does what cannot be removed.
    """
    if not folder.is_dir():
        return
    try:
        lock = FolderLock(folder / "lock")
    except RunError:
        return
    if _is_of(folder, plan) or not (list(folder.glob("*.part")) or (folder / _PLAN).exists()):
        _remove(folder, lock)
    else:
        lock.release()


def _is_of(folder: Path, plan: dict[str, Any]) -> bool:
    try:
        begun = msgspec.json.decode((folder / _PLAN).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return False
    plain = msgspec.json.decode(msgspec.json.encode(plan))
    return bool({**begun, "versions": None} == {**plain, "versions": None})


def _remove(folder: Path, lock: FolderLock) -> None:
    """Remove what a build wrote, and the folder if nothing else is in it; the plan stays while parts do."""
    for part in (*folder.glob("*.part"), *folder.glob(f"*{TEMPORARY_SUFFIX}")):
        with contextlib.suppress(OSError):
            part.unlink()
    if not list(folder.glob("*.part")):
        with contextlib.suppress(OSError):
            (folder / _PLAN).unlink(missing_ok=True)
    lock.release()
    with contextlib.suppress(OSError):
        (folder / "lock").unlink(missing_ok=True)
        folder.rmdir()
