"""Tables of the documentation as data files: docs/data/*.csv, shown as tables that can be sorted and filtered."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

DATA = Path(__file__).parents[1] / "docs" / "data"


def make_csv(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Text of a CSV file with one line of column names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def write_files(files: dict[str, str]) -> None:
    """Write data files, name -> text."""
    DATA.mkdir(exist_ok=True)
    for name, text in files.items():
        (DATA / name).write_text(text, encoding="utf-8")
