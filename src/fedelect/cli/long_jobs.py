"""Shared by long commands that can be resumed: a progress bar, the end by Ctrl-C, the option for large jobs."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Console

from fedelect._progress import TerminalBar

AllowLarge = Annotated[
    bool,
    typer.Option(
        "--allow-large", help="Go on although it would take more than half of the memory or 30 days of one core."
    ),
]


@contextlib.contextmanager
def show_progress(title: str, unit: str, console: Console) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows (finished, total) as a bar; Ctrl-C ends the command with code 130."""
    bar = TerminalBar(title, unit, console)
    try:
        yield bar.show
    except KeyboardInterrupt:
        bar.stop()
        console.print("stopped; give the same command again to go on", highlight=False)
        raise typer.Exit(130) from None
    finally:
        bar.stop()
