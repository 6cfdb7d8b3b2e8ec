"""Print the summary of a run."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedelect.records import Block, SummaryTable

LEAST_FIRST = ("evaluations", "at equal bytes", "MB", "at 50", "at 25", "slots to random", "at 100", "low", "flawed")
"""Columns of measures that a narrow console has no room for, in the order in which they are left out."""

LONGEST_NAME = 24
"""Columns of the console that the names of selectors get for certain; longer ones are folded."""


def print_summary(summary: SummaryTable, console: Console) -> None:
    """Print the tables of a run: one row for each selector."""
    least_first = (*summary.opinions.columns[:2:-1], "last slot")  # the last column first
    print_block(summary.opinions, console, title=summary.title, least_first=least_first)
    if summary.measures is not None:
        print_block(summary.measures, console, least_first=LEAST_FIRST)
    for note in summary.notes:
        console.print(Text(note))


def print_block(block: Block, console: Console, *, title: str = "", least_first: Sequence[str] = ()) -> None:
    """Print a table; columns of `least_first` that a narrow console has no room for are left out and named."""
    missing: list[str] = []
    for name in (name for name in least_first if name in block.columns):
        if _width(block, missing) <= console.width:
            break
        missing.append(name)
    console.print(_table(block, title, missing), crop=False)


def _table(block: Block, title: str, missing: Sequence[str]) -> Table:
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    shown = [number for number, name in enumerate(block.columns) if name not in missing]
    for number in shown:
        heading = Text(_wrap_head(block.columns[number]))
        if number:
            table.add_column(heading, justify="right", no_wrap=True)
        else:
            names = max(len(row[0]) for row in block.cells)
            table.add_column(heading, overflow="fold", min_width=min(LONGEST_NAME, names))
    for row in block.cells:
        table.add_row(*(Text(row[number]) for number in shown))
    narrow = f". Left out, for the console is narrow: {', '.join(missing)}" if missing else ""
    table.caption = Text(block.explain([block.columns[number] for number in shown]) + narrow)
    return table


def _width(block: Block, missing: Sequence[str]) -> int:
    """Columns of the console that the table takes: each column and a space on either side of it, names folded."""
    width = 0
    for number, name in enumerate(block.columns):
        widest = max(
            len(line) for text in (_wrap_head(name), *(row[number] for row in block.cells)) for line in text.split("\n")
        )
        width += 0 if name in missing else 3 + (widest if number else min(widest, LONGEST_NAME))
    return width


def _wrap_head(name: str) -> str:
    """Break a long head in two lines."""
    for part in (" slot", " best", " (", " random", " end", " bytes"):
        name = name.replace(part, "\n" + part.strip(" "), 1) if "\n" not in name else name
    return name
