"""One writer at a time for each run folder, and for a file that processes share.

The lock belongs to the open file, not to its content, so the kernel drops it however the process ends, kill -9
included. The content, process number and machine, only serves the message to a second process. The file is
never deleted: deleting it would let two processes lock two files of one name.
"""

import functools
import os
import platform
import sys
import weakref
from pathlib import Path

from fedelect.errors import RunError, RunLockedError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR_BYTE = 1 << 30
"""On Windows a locked byte cannot be read by others: lock one far beyond the text."""


class FolderLock:
    """Holds the lock file at `path` from construction to `release`.

    Args:
        path: The lock file; made if it does not exist.
        wait: Wait until another process gives it up, for work of a moment, instead of raising RunLockedError.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._path = path
        self._descriptor: int | None = None
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"cannot open the lock {path}: {error.strerror}; check the folder's permissions") from error
        try:
            _lock(descriptor, wait)
        except (BlockingIOError, PermissionError) as error:
            holder = _read_holder(descriptor)
            os.close(descriptor)
            raise RunLockedError(
                f"{path.parent} is being written by {holder}; wait for it to end, stop it, or write to another folder"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise RunError(
                f"cannot lock {path}: {error.strerror}; put the run on a file system that supports locks"
            ) from error
        self._descriptor = descriptor
        _leave_behind_when_forking()
        _held.add(self)
        _write_holder(descriptor, f"{os.getpid()} {platform.node()}\n")

    def release(self) -> None:
        """Give the lock up; does nothing the second time."""
        if self._descriptor is not None:
            _write_holder(self._descriptor, "")
            self._close()

    def _close(self) -> None:
        # Closing is enough to unlock: on POSIX the lock goes with the last descriptor of the open file.
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_held: "weakref.WeakSet[FolderLock]" = weakref.WeakSet()


@functools.cache
def _leave_behind_when_forking() -> None:
    """A forked worker must not keep the folder locked after its parent was killed."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=_close_inherited)


def _close_inherited() -> None:
    for lock in list(_held):
        lock._close()


def _lock(descriptor: int, wait: bool) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, _FAR_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # the former for ten seconds
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _write_holder(descriptor: int, text: str) -> None:
    # A courtesy to the reader of a message: a full disk must not stop a run here.
    try:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, text.encode())
    except OSError:
        pass


def _read_holder(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        pid, _, machine = os.read(descriptor, 256).decode().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        pid, machine = "", ""
    if not pid.isdigit():
        return "another process"
    return f"process {pid}" + (f" on {machine}" if machine else "")
