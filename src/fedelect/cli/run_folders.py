"""Run folders of commands that were given none: numbered, with a link `latest` to the newest."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from fedelect._run import Run
from fedelect.errors import RunLockedError, RunMismatchError

NUMBERED = Path("runs")
"""Where numbered run folders are: runs/1, runs/2, ..."""

LATEST = "latest"
"""Name of the link to the newest of them."""


def play_numbered(play: Callable[[Path], Run], parent: Path = NUMBERED) -> Run:
    """Play into the newest numbered folder if it holds the same run, finished or not, else into the next number.

    Args:
        play: Opens or resumes a run in a folder; raises `RunMismatchError` if another run is there, `RunLockedError`
            if a process is at work on it, and writes nothing then.
        parent: The folder of the numbered folders.
    """
    newest = max(_list_numbers(parent), default=0)
    if newest:
        with contextlib.suppress(RunMismatchError, RunLockedError):
            return play(parent / str(newest))
    return play(parent / str(newest + 1))


def link_latest(folder: Path) -> None:
    """Point the link `latest` beside a run folder to it, if the folder is there and the system has links."""
    link = folder.parent / LATEST
    if not folder.is_dir() or (link.exists() and not link.is_symlink()):
        return
    new = link.with_name(f"{LATEST}.{os.getpid()}")
    with contextlib.suppress(OSError):
        new.symlink_to(folder.name, target_is_directory=True)
        new.replace(link)


def _list_numbers(parent: Path) -> Iterator[int]:
    for path in parent.glob("*"):
        if path.name.isascii() and path.name.isdigit() and path.is_dir():
            yield int(path.name)
