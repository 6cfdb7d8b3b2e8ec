"""The console that every command prints on. What it is given is text, never markup, and commands no terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fedelect._text import printable


def make_console(*, stderr: bool = False) -> Console:
    """Make a console on standard output, or on standard error."""
    return _PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False)


class _PlainConsole(Console):
    """Everything printed passes `render`, so this is the one place where text is made harmless."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
