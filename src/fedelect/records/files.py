"""Atomic, durable file writes.

A replacement is written beside its place, forced to disk and then renamed over it: readers and crashes find either
the old file or the new one.
"""

import os
import sys
from pathlib import Path

from fedelect.errors import RunError

TEMPORARY_SUFFIX = ".new"


def replace_file(path: Path, *parts: bytes) -> None:
    """Write `parts`, one after the other, as the whole of `path`: all or nothing, and durable. RunError if not."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with open(temporary, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise as_run_error("write", path, error) from error


def make_folder(folder: Path) -> None:
    """Make the folder and its parents unless they exist. RunError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise as_run_error("make the folder", folder, error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable (not needed, and not possible, on Windows)."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def as_run_error(verb: str, path: Path, error: OSError) -> RunError:
    """Describe a failed file operation: what, where, and what to do."""
    return RunError(
        f"cannot {verb} {path}: {error.strerror or error}; check free space and permissions, then start the same "
        f"command again: what is recorded is kept"
    )
