"""Watch run folders as they grow, and render a live page's updates when something is new.

Reads records only, so any process may write them at any time: a folder without a run is waited for, and one that is
begun anew is read anew.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedelect.errors import RunError
from fedelect.records import RunFollower, RunHeader, follow_run
from fedelect.report import RunAccumulator, RunAnalysis, analyse_runs, folder_name, make_unique, render, render_update

_REST = 4.0
"""After making an update, rest this many times as long as it took, so that watching does not slow the run down."""


@dataclass(frozen=True, kw_only=True)
class PageUpdate:
    """Newest state of a page.

    Attributes:
        version: Changes with every update; a page names the one it has.
        complete: Whether every slot of every run is on record, so that no more will come.
        content: The rest, JSON-able; see `fedelect.report.render_update`.
    """

    version: str
    complete: bool
    content: dict[str, Any]


class RunWatcher:
    """Watches run folders; not for use from several threads at once.

    Args:
        folders: The run folders; those without a run yet are waited for.
        targets: Opinions whose time to be reached is tabulated; chosen from the runs if None.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str]],
        *,
        targets: Sequence[float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        names = make_unique([folder_name(folder) for folder in folders])
        self._folders = [_Folder(Path(folder), name, len(names)) for folder, name in zip(folders, names, strict=True)]
        self._targets = targets
        self._clock = clock
        self._rest_until = float("-inf")
        self._count = 0
        # So that a page cannot take this watcher's first update for one of an earlier watcher.
        self._origin = f"{os.getpid()}-{time.time_ns():x}"
        self._update: PageUpdate | None = None

    def page(self) -> str:
        """Render the page as it is now."""
        self.update()
        return render(self._analyses(), live=True)

    def update(self) -> PageUpdate:
        """Newest update; the same one again while nothing has changed or the last one was made just now."""
        if self._update is None or self._clock() >= self._rest_until:
            before = self._clock()
            changed = [folder.refresh() for folder in self._folders]  # all of them, hence a list
            if any(changed) or self._update is None:
                self._update = self._make()
            self._rest_until = self._clock() + _REST * (self._clock() - before)
        return self._update

    def update_now(self) -> PageUpdate:
        """Newest update, made now whatever it costs."""
        self._rest_until = float("-inf")
        return self.update()

    def _make(self) -> PageUpdate:
        self._count += 1
        troubles = [folder.trouble for folder in self._folders if folder.trouble is not None]
        complete = all(folder.complete for folder in self._folders)
        update = render_update(self._analyses())
        version = f"{self._origin}-{self._count}"
        state = {
            "version": version,
            "complete": complete,
            "trouble": bool(troubles),
            "message": self._message(troubles),
        }
        return PageUpdate(version=version, complete=complete, content={**update, **state})

    def _analyses(self) -> list[RunAnalysis]:
        runs = [folder.accumulator.result() for folder in self._folders if folder.accumulator is not None]
        return analyse_runs(runs, self._targets)

    def _message(self, troubles: list[str]) -> str:
        if troubles:
            return "; ".join(troubles)
        waiting = [folder.name for folder in self._folders if folder.accumulator is None]
        if waiting:
            return f"Live: waiting for {', '.join(waiting)} to begin."
        recorded, planned = (sum(values) for values in zip(*(one.progress for one in self._folders), strict=True))
        if recorded == planned:
            return f"Complete: all {planned:,} slots are on record. This page does not change any more."
        return f"Live: {recorded:,} of {planned:,} slots are on record ({100.0 * recorded / planned:.1f} %)."


class _Folder:
    """One run folder and what was read of it so far."""

    def __init__(self, path: Path, name: str, runs: int) -> None:
        self.name = name
        self.accumulator: RunAccumulator | None = None
        self.trouble: str | None = None
        self._path = path
        self._header = path / "run.json"
        self._runs = runs
        self._follower: RunFollower | None = None
        self._identity: tuple[int, int] | None = None
        self._recorded = 0

    @property
    def progress(self) -> tuple[int, int]:
        """Slots on record, slots in all."""
        header = None if self._follower is None else self._follower.header
        return self._recorded, 0 if header is None else header.planned

    @property
    def complete(self) -> bool:
        recorded, planned = self.progress
        return self.trouble is None and 0 < planned == recorded

    def refresh(self) -> bool:
        """Read what is new; return whether anything was."""
        trouble, before = self.trouble, self._recorded
        begun = self._begin_anew_if_replaced()
        try:
            if self._follower is not None and self.accumulator is not None and self._header.exists():
                for record in self._follower.fresh():
                    self.accumulator.add(record)
                    self._recorded += 1
                self.trouble = None
        except RunError as error:
            self.trouble = str(error)
        return begun or self._recorded != before or self.trouble != trouble

    def _begin_anew_if_replaced(self) -> bool:
        """Begin to read if there is a run, and again if it was replaced; return whether it did."""
        try:
            state = self._header.stat()
        except OSError:
            return False  # not begun, or taken away: what was read stays on the page
        identity = (state.st_ino, state.st_mtime_ns)
        if identity == self._identity:
            return False
        try:
            follower = follow_run(self._path)
        except RunError as error:
            changed = self.trouble != str(error)
            self.trouble = str(error)
            return changed
        self._identity, self._follower, self._recorded = identity, follower, 0
        header: RunHeader = follower.header
        self.accumulator = RunAccumulator(header, name=self.name, runs=self._runs)
        return True
