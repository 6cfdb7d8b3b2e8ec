"""Live table of `fedelect peers demo`: a line for each peer, one for the server, progress and time left."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedelect.runtime.host_messages import Agreed, Link, Notice, Phase, Skipped
from fedelect.runtime.launch import ProcessEnded

if TYPE_CHECKING:
    from fedelect.runtime.server import ElectionResult


@dataclass
class _Row:
    """One peer, as it says itself."""

    phase: str = "starting"
    slot: int = 0
    links: int = 0
    decided: int = 0
    skipped: int = 0
    before: tuple[int, int] = (0, 0)  # messages and bytes of the slots before this one
    now: tuple[int, int] = (0, 0)

    @property
    def sent(self) -> tuple[int, int]:
        return self.before[0] + self.now[0], self.before[1] + self.now[1]


class PeersView:
    """The table; peers speak to it from other threads than the one that draws it.

    Args:
        clients: N.
        slots: T.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, clients: int, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows = [_Row() for _ in range(clients)]
        self._slots, self._clock = slots, clock
        self._lock = threading.Lock()
        self._elected: Counter[int] = Counter()
        self._held: list[ElectionResult] = []
        self._began_s: float | None = None
        self._ended_s: float | None = None

    def show_notice(self, client: int, notice: Notice | ProcessEnded) -> None:
        """Update the line of a peer from its notice, or its end."""
        with self._lock:
            row = self._rows[client]
            if self._ended_s is not None:
                pass  # that they end now is no news
            elif isinstance(notice, Link):
                row.links += 1 if notice.up else -1
            elif isinstance(notice, Phase):
                self._began_s = self._clock() if self._began_s is None else self._began_s
                if notice.slot != row.slot:
                    row.before, row.slot = row.sent, notice.slot
                row.phase, row.now = notice.phase, (notice.sent, notice.sent_bytes)
            elif isinstance(notice, Agreed):
                row.decided = max(row.decided, min(notice.slot, self._slots))
            elif isinstance(notice, Skipped):
                row.skipped += 1
            elif isinstance(notice, ProcessEnded):
                row.phase, row.links = "gone", 0

    def show_result(self, held: "ElectionResult") -> None:
        """The server is done with a slot: it has a certificate and has trained, or it has not."""
        with self._lock:
            if held.slot > self._slots:  # the last model has been judged: that is all
                self._ended_s = self._clock()
                return
            self._held.append(held)
            self._elected.update(() if held.certificate is None else held.certificate.cohort)

    def __rich__(self) -> Group:
        """Return the table as it is now."""
        with self._lock:
            return Group(self._table(), self._server(), self._progress())

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 1))
        for name in ("peer", "phase", "links", "elected", "decided", "skipped", "messages", "kB"):
            table.add_column(
                name, justify="left" if name == "phase" else "right", min_width=11 if name == "phase" else 0
            )
        for client, row in enumerate(self._rows):
            phase = "ready" if row.phase == "starting" and row.links else row.phase
            numbers = (row.links, self._elected[client], row.decided, row.skipped, row.sent[0])
            table.add_row(str(client), phase, *map(str, numbers), f"{row.sent[1] / 1000:.1f}")
        return table

    def _server(self) -> Text:
        done, newest = len(self._held), max(row.decided for row in self._rows)
        if self._began_s is None:
            doing = "starts the peers"
        elif done == self._slots:
            doing = "is done"
        else:
            doing = f"trains in slot {newest}" if newest > done else f"waits for slot {done + 1}"
        last = ""
        if self._held:
            held, certificate = self._held[-1], self._held[-1].certificate
            last = f"; slot {held.slot}: {held.reason}"
            if certificate is not None:
                cohort = " ".join(map(str, certificate.cohort))
                last = f"; slot {held.slot}: {cohort}, {len(certificate.signatures)} signatures, {held.seconds:.2f} s"
        skipped = sum(held.certificate is None for held in self._held)
        said = f"server {doing}; {done - skipped} certificates, {skipped} skipped{last}"
        return Text(said, no_wrap=True, overflow="ellipsis")

    def _progress(self) -> Table:
        done = len(self._held)
        now_s = self._clock() if self._ended_s is None else self._ended_s
        elapsed_s = 0.0 if self._began_s is None else now_s - self._began_s
        left = "" if not done else f"{_clock_time(elapsed_s / done * (self._slots - done))} left"
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self._slots, completed=done, width=30)
        line.add_row(f"slot {done} of {self._slots}", bar, _clock_time(elapsed_s), left)
        return line


def _clock_time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
