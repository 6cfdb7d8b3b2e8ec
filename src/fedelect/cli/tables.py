"""Print the summary of a run."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedelect.records import SummaryTable


def print_summary(summary: SummaryTable, console: Console) -> None:
    """Print the table of a run: one row for each selector."""
    table = Table(
        title=Text(summary.title), title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    for number, name in enumerate(summary.columns):
        heading = Text(name.replace(" slot", "\nslot").replace(" best", "\nbest").replace(" (", "\n("))
        if number:
            table.add_column(heading, justify="right", no_wrap=True)
        else:
            table.add_column(heading, overflow="fold")
    for row in summary.cells:
        table.add_row(*(Text(cell) for cell in row))
    table.caption = Text(summary.caption)
    console.print(table)
