"""Run folders as they grow: what a live page shows, made anew only when there is something new.

Reads records only, so it does not matter which process writes them, nor when: a folder without a run is waited for, and
one that is begun anew is read anew.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedelect.errors import RunError
from fedelect.records import RunFollower, RunHeader, follow_run
from fedelect.report import Reading, RunAccumulator, name_of_folder, read_all, render, unique_names, update_of

_REST = 4.0
"""After making an update, rest this many times as long as it took: a run is not to be slowed down by its onlookers."""


@dataclass(frozen=True, kw_only=True)
class News:
    """What a page is told.

    Attributes:
        version: Changes with every update; a page names the one it has.
        complete: Whether every slot of every run is on record, so that no more will come.
        update: The rest, JSON-able; see `fedelect.report.update_of`.
    """

    version: str
    complete: bool
    update: dict[str, Any]


class Watch:
    """Watches run folders. Not for use from several threads at once.

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
        names = unique_names([name_of_folder(folder) for folder in folders])
        self._folders = [_Folder(Path(folder), name, len(names)) for folder, name in zip(folders, names, strict=True)]
        self._targets = targets
        self._clock = clock
        self._rest_until = float("-inf")
        self._count = 0
        # So that a page cannot take this watch's first news for old news of a watch before it.
        self._origin = f"{os.getpid()}-{time.time_ns():x}"
        self._news: News | None = None

    def page(self) -> str:
        """The page as it is now."""
        self.news()
        return render(self._readings(), live=True)

    def news(self) -> News:
        """The newest update; the same one again while nothing has changed or the last one was made just now."""
        if self._news is None or self._clock() >= self._rest_until:
            before = self._clock()
            changed = [folder.refresh() for folder in self._folders]  # all of them, hence a list
            if any(changed) or self._news is None:
                self._news = self._make()
            self._rest_until = self._clock() + _REST * (self._clock() - before)
        return self._news

    def finish(self) -> News:
        """The newest update, made now whatever it costs."""
        self._rest_until = float("-inf")
        return self.news()

    def _make(self) -> News:
        self._count += 1
        troubles = [folder.trouble for folder in self._folders if folder.trouble is not None]
        complete = all(folder.complete for folder in self._folders)
        update = update_of(self._readings())
        version = f"{self._origin}-{self._count}"
        told = {"version": version, "complete": complete, "trouble": bool(troubles), "message": self._message(troubles)}
        return News(version=version, complete=complete, update={**update, **told})

    def _readings(self) -> list[Reading]:
        gathered = [folder.gathering.result() for folder in self._folders if folder.gathering is not None]
        return read_all(gathered, self._targets)

    def _message(self, troubles: list[str]) -> str:
        if troubles:
            return "; ".join(troubles)
        waiting = [folder.name for folder in self._folders if folder.gathering is None]
        if waiting:
            return f"Live: waiting for {', '.join(waiting)} to begin."
        recorded, planned = (sum(values) for values in zip(*(one.progress for one in self._folders), strict=True))
        if recorded == planned:
            return f"Complete: all {planned:,} slots are on record. This page does not change any more."
        return f"Live: {recorded:,} of {planned:,} slots are on record ({100.0 * recorded / planned:.1f} %)."


class _Folder:
    """One run folder: what was read of it so far."""

    def __init__(self, path: Path, name: str, runs: int) -> None:
        self.name = name
        self.gathering: RunAccumulator | None = None
        self.trouble: str | None = None
        self._path = path
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
        """Read what is new; whether anything was."""
        trouble, before = self.trouble, self._recorded
        begun = self._begin_anew_if_replaced()
        try:
            if self._follower is not None and self.gathering is not None:
                for record in self._follower.fresh():
                    self.gathering.add(record)
                    self._recorded += 1
                self.trouble = None
        except RunError as error:
            self.trouble = str(error)
        return begun or self._recorded != before or self.trouble != trouble

    def _begin_anew_if_replaced(self) -> bool:
        """Begin to read if there is a run, and again if it is another one than before."""
        try:
            state = (self._path / "run.json").stat()
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
        self.gathering = RunAccumulator(header, name=self.name, runs=self._runs)
        return True
