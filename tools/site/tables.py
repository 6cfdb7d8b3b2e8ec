"""Data files as tables that can be sorted and filtered.

A line of a page that is nothing but a link to a CSV file under `data/` becomes that file's table, below its link.
Elsewhere, as on a page of a repository host, it stays a link.
"""

import csv
import html
import re
from pathlib import Path

LINK = re.compile(r"^\[([^\]]+)\]\(((?:\.\./)?data/[\w-]+\.csv)\)$", re.MULTILINE)


def expand_tables(markdown: str, folder: Path) -> str:
    """A page whose links to data files, where they stand alone, are followed by the tables.

    Args:
        markdown: The page.
        folder: The folder that the page is in.
    """

    def expand(found: re.Match[str]) -> str:
        title, target = found.groups()
        return f"{make_table(folder / target, title)}\n\n[{title}, as a file]({target})"

    return LINK.sub(expand, markdown)


def make_table(path: Path, title: str) -> str:
    """HTML of a CSV file with a box that filters its rows; columns are sorted by assets/tables.js."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    columns = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = ["<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    caption = html.escape(title, quote=True)
    return (
        f'<div class="data-table"><input type="search" placeholder="Filter the rows" aria-label="Filter: {caption}">'
        f"<table><thead><tr>{columns}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    return f"<code>{html.escape(text[1:-1])}</code>" if re.fullmatch(r"`[^`]+`", text) else html.escape(text)
