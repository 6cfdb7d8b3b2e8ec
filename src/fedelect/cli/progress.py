"""Progress bars of the commands that take long."""

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


class _Rate(ProgressColumn):
    """Steps a second of late."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g}/s" if speed < 1000 else f"{speed:.0f}/s")


class Bar:
    """A bar over `unit`s with rate and time left; it appears when it is first told how much there is to do."""

    def __init__(self, title: str, unit: str, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, speed_estimate_period=300.0)  # a step may take minutes
        self._task = self._bar.add_task(title, total=None)

    def show(self, finished: int, total: int) -> None:
        """So much is finished out of so much."""
        self._bar.start()
        self._bar.update(self._task, completed=finished, total=total)

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()
