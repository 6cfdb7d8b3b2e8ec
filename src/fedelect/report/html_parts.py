"""Pieces of HTML that the parts of the page are made of.

Whatever comes from a configuration or a file name is escaped. Cells carry their figures in full (`data-v`, half-width
of the interval in `data-h`), which is what the page saves as CSV.
"""

import html
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from fedelect.equations.intervals import Interval
from fedelect.report.worlds import Series, World

NOTHING = "<td>\u2013</td>"
STRIP_HEAD = "95 % interval"
"""Head of the column whose cells are drawings; they are not saved, and not shown where there is little room."""

_MINUS = "\u2212"
_Row = TypeVar("_Row")


def escape(value: object) -> str:
    """`value` as text that HTML shows and never obeys."""
    return html.escape(str(value), quote=True)


def join_words(words: Sequence[str]) -> str:
    """Join words by commas and a last "and".

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def count(number: int, unit: str) -> str:
    """A number with its unit, in the plural if it is not one.

    >>> count(1, "trial"), count(2000, "slot")
    ('1 trial', '2,000 slots')
    """
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def for_each_world(worlds: Sequence[World], render: Callable[[World, str], str]) -> str:
    """What `render` makes of each world and the suffix of its ids, under its name if there are several."""
    parts = [render(world, f"-{number}" if number else "") for number, world in enumerate(worlds)]
    if len(worlds) == 1:
        return parts[0]
    named = zip(worlds, parts, strict=True)
    return "".join(f'<div class="world"><h3>{escape(world.name)}</h3>{part}</div>' for world, part in named if part)


def render_key(one: Series) -> str:
    """A selector's name behind a piece of its line."""
    style = f"--ink: var(--series-{one.look.colour})"
    key = f'<span class="key" data-dash="{one.look.dash}" style="{style}"></span>'
    return f'<span class="series" data-label="{escape(one.summary.label)}">{key}<span>{escape(one.name)}</span></span>'


def render_table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls sideways and can be saved; heads are escaped, rows are HTML."""
    head = "".join(f'<th scope="col"{_class_of(one)}>{escape(one)}</th>' for one in heads)
    return (
        f'<div class="block"><div class="scroll" tabindex="0" role="region" aria-label="table {name}">'
        f'<table id="table-{name}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="save"><button type="button" data-table="table-{name}">CSV</button></p></div>'
    )


def _class_of(head: str) -> str:
    return ' class="strip"' if head == STRIP_HEAD else ""


def render_figures(name: str, rows: dict[str, _Row], columns: dict[str, Callable[[_Row], str]]) -> str:
    """A table of rows by name (HTML), with the columns in which one has a figure; empty if there is none."""
    shown = {head: cell for head, cell in columns.items() if any(cell(one) != NOTHING for one in rows.values())}
    lines = [
        f'<tr><th scope="row">{key}</th>{"".join(cell(one) for cell in shown.values())}</tr>'
        for key, one in rows.items()
    ]
    return render_table(name, ["selector", *shown], lines) if shown else ""


def by_key(world: World) -> dict[str, Series]:
    """The selectors of a world, without repetitions, by the HTML that names them."""
    return {render_key(one): one for one in world.shown}


def number_cell(value: int, note: str = "") -> str:
    """A cell that shows a whole number, with a note below."""
    return f'<td data-v="{value}">{value:,}{_below(note)}</td>'


def interval_cell(
    interval: Interval | None, digits: int = 3, *, percent: bool = False, signed: bool = False, note: str = ""
) -> str:
    """A cell that shows a mean with its spread, with a note below; a dash if there is none."""
    if interval is None or math.isnan(interval.mean):
        return NOTHING
    scale, digits, unit = (100.0, 1, "\u00a0%") if percent else (1.0, digits, "")
    text, half = f"{interval.mean * scale:{'+' if signed else ''}.{digits}f}".replace("-", _MINUS), ""
    if interval.half_width is not None:
        half = f' data-h="{interval.half_width!r}"'
        text += f' <span class="spread">\u00b1 {interval.half_width * scale:.{digits}f}</span>'
    return f'<td data-v="{interval.mean!r}"{half}>{text}{unit}{_below(note)}</td>'


def _below(note: str) -> str:
    return f'<span class="note">{escape(note)}</span>' if note else ""
