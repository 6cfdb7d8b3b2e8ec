"""The summary of a run as people read it: one row for each selector, as text, HTML or JSON."""

import dataclasses
import html
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from fedelect.equations.intervals import Interval
from fedelect.records.summary import SelectorSummary, summarise
from fedelect.records.table import RunTable, read_table

CAPTION = "opinions ± 95 % interval over trials; last columns: share of all elections"


@dataclass(frozen=True)
class SummaryTable(Sequence[SelectorSummary]):
    """One row for each selector. Prints as text and shows as a table in a notebook.

    Attributes:
        title: What was run, in one line.
        columns: Column headings.
        cells: The text of each row, cell by cell.
        rows: The same as figures, with intervals; also by index: `summary[0].running_mean.mean`.
        caption: What the figures are.
    """

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows: tuple[SelectorSummary, ...]
    caption: str = CAPTION

    @overload
    def __getitem__(self, index: int) -> SelectorSummary: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SelectorSummary]: ...
    def __getitem__(self, index: int | slice) -> SelectorSummary | Sequence[SelectorSummary]:
        """Return the figures of one selector, or of several."""
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SelectorSummary]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines = [self.columns, *self.cells]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.columns))]
        texts = [
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([self.title, texts[0], "-" * len(texts[0]), *texts[1:], self.caption])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line("td", row) for row in self.cells)
        caption = f"<caption>{html.escape(self.title)}<br><small>{html.escape(self.caption)}</small></caption>"
        return f"<table>{caption}<thead>{line('th', self.columns)}</thead><tbody>{body}</tbody></table>"


def summary_table(run: RunTable | str | os.PathLike[str]) -> SummaryTable:
    """Summarise a run, or the run in a folder, for people to read."""
    table = run if isinstance(run, RunTable) else read_table(run)
    groups = table.header.groups
    columns = ["selector", "last slot", "mean opinion", "gap to best fixed"]
    columns += [f"{group} ({len(members)})" for group, members in groups.items()]
    rows = tuple(summarise(table))
    cells = tuple(
        (
            row.label,
            f"{row.final_opinion.mean:.3f}",
            _format_interval(row.running_mean),
            _format_interval(row.gap_to_best_fixed),
            *(_format_percent(row.group_shares.get(group)) for group in groups),
        )
        for row in rows
    )
    return SummaryTable(_title(table), tuple(columns), cells, rows)


def summary_json(run: RunTable) -> dict[str, Any]:
    """Return all figures of a run's summary as JSON-able values."""
    return {
        "framework": run.header.framework,
        "clients": run.header.clients,
        "budget": run.header.budget,
        "slots": run.header.slots,
        "trials": run.header.trials,
        "seed": run.header.seed,
        "complete": run.recorded == run.header.planned,
        "selectors": [_without_nan(dataclasses.asdict(row)) for row in summarise(run)],
    }


def _title(run: RunTable) -> str:
    header = run.header
    name = header.scenario.get("name", header.source)
    state = "" if run.recorded == header.planned else f", {run.recorded} of {header.planned} records so far"
    return (
        f"{name}, FL&{header.framework.upper()}: {header.budget} of {header.clients} clients, "
        f"{header.slots} slots, {header.trials} trials{state}"
    )


def _format_interval(interval: Interval | None) -> str:
    if interval is None or math.isnan(interval.mean):
        return "-"
    spread = "" if interval.half_width is None else f"±{interval.half_width:.3f}"
    return f"{interval.mean:.3f}{spread}"


def _format_percent(interval: Interval | None) -> str:
    return "-" if interval is None or math.isnan(interval.mean) else f"{100 * interval.mean:.1f} %"


def _without_nan(value: Any) -> Any:
    """Return the value with None in place of nan, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
