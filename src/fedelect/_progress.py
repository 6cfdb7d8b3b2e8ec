"""Progress bars with rate and time left, in a terminal and in a notebook."""

import html
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from fedelect._text import printable

_NOTEBOOK_UPDATE_S = 0.5
_REDIRECTED_UPDATE_S = 30.0

_BAR_WIDTH, _RATE_WIDTH = 60, 76
"""Columns of the console below which there is no bar, and neither the unit nor rate and time passed."""


class Bar(Protocol):
    """A progress bar."""

    def show(self, finished: int, total: int) -> None:
        """Show that `finished` of `total` steps are done; the first call makes the bar appear."""

    def stop(self) -> None:
        """Leave the bar as it is."""


def make_bar(title: str, unit: str) -> Bar:
    """Make a bar over `unit`s: in a notebook below the cell, else on standard error."""
    return NotebookBar(title, unit) if in_notebook() else TerminalBar(title, unit, Console(stderr=True))


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


class _Rate(ProgressColumn):
    """Steps a second of late."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g}/s" if speed < 1000 else f"{speed:.0f}/s")


class TerminalBar:
    """A bar in a terminal; where output is redirected, a line every half minute and one at the end.

    Args:
        title: What is done.
        unit: What is counted.
        console: Where it is shown.
        clock: Monotonic clock, in seconds.
    """

    def __init__(self, title: str, unit: str, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            *((BarColumn(),) if console.width >= _BAR_WIDTH else ()),
            MofNCompleteColumn(),
            *((TextColumn(unit), _Rate(), TimeElapsedColumn()) if console.width >= _RATE_WIDTH else ()),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._console, self._clock, self._said_s = console, clock, clock()
        self._bar = Progress(
            *columns, console=console, get_time=clock, speed_estimate_period=300.0
        )  # steps may be long
        self._task = self._bar.add_task(printable(title), total=None)

    def show(self, finished: int, total: int) -> None:
        """See `Bar`."""
        self._bar.start()
        self._bar.update(self._task, completed=finished, total=total)
        if not self._console.is_terminal and finished < total and self._clock() - self._said_s >= _REDIRECTED_UPDATE_S:
            self._said_s = self._clock()
            self._console.print(self._bar.get_renderable())

    def stop(self) -> None:
        """See `Bar`."""
        self._bar.stop()


class NotebookBar:
    """A bar below a notebook's cell, by IPython alone."""

    def __init__(self, title: str, unit: str) -> None:
        self._title, self._unit = title, unit
        self._handle: Any = None
        self._began = self._shown = 0.0
        self._first = self._finished = self._total = 0

    def show(self, finished: int, total: int) -> None:
        """See `Bar`."""
        now = time.monotonic()
        if self._handle is None:
            self._began, self._first = now, finished
        self._finished, self._total = finished, total
        if self._handle is None or finished == total or now - self._shown >= _NOTEBOOK_UPDATE_S:
            self._shown = now
            self._draw(now - self._began)

    def stop(self) -> None:
        """See `Bar`."""
        if self._handle is not None:
            self._draw(time.monotonic() - self._began)

    def _draw(self, elapsed_s: float) -> None:
        show: Any = importlib.import_module("IPython.display")  # there, since this is a notebook

        gained = self._finished - self._first
        left = f", {elapsed_s / gained * (self._total - self._finished):.0f} s left" if gained else ""
        text = f"{self._title}: {self._finished} of {self._total} {self._unit}, {elapsed_s:.0f} s{left}"
        page = show.HTML(f'<progress value="{self._finished}" max="{self._total}"></progress> {html.escape(text)}')
        if self._handle is None:
            self._handle = show.display(page, display_id=True)
        else:
            self._handle.update(page)
