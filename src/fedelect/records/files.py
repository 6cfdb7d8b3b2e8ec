"""Atomic, durable file writes.

A replacement is written beside its place, forced to disk and then renamed over it: readers and crashes find either
the old file or the new one.
"""

import hashlib
import os
import sys
from pathlib import Path

from fedelect.errors import RunError

TEMPORARY_SUFFIX = ".new"

_CHECKSUM_BYTES = 16


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


def replace_checked(path: Path, content: bytes) -> None:
    """Write `content` as the whole of `path`, after 16 bytes of checksum; see `replace_file`."""
    replace_file(path, _checksum(content), content)


def read_checked(path: Path) -> bytes | None:
    """Read what `replace_checked` wrote; None if it is damaged. OSError if it cannot be read."""
    text = path.read_bytes()
    checksum, content = text[:_CHECKSUM_BYTES], text[_CHECKSUM_BYTES:]
    return content if _checksum(content) == checksum else None


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).digest()


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
