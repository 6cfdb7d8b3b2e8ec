"""The summary of a run as people read it: one row for each selector, as text, HTML or JSON."""

import dataclasses
import functools
import html
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from fedelect._text import count, printable
from fedelect.equations.closure import Closure
from fedelect.equations.intervals import Interval
from fedelect.records.measures import MeasureSummary
from fedelect.records.ranking import RankedSelector, rank_world
from fedelect.records.summary import SelectorSummary, summarise
from fedelect.records.table import RunTable, read_table

_CAPTION = "opinions ± 95 % interval over trials"
_SHARES_CAPTION = "; last columns: share of all elections"
_MEASURES_CAPTION = "accuracy on clean test data of all clients"
_LEGEND = {
    "at the end": "last 10 slots",
    "minus random": "same trials, 95 % interval",
    "closure": "share of the way from random to the oracle, 95 % bootstrap interval",
    "slots to random": "until random's accuracy at the end",
    "low": "10th percentile over clients",
    "flawed": "share of the elected",
    "MB": "a trial",
    "at equal bytes": "when as much was sent as by the thriftiest",
    "evaluations": "a trial",
}
"""Column of measures -> what it is."""

_LEAST_PROGRESS = 0.1  # share of what lies between the untrained model's opinion and 1


@dataclass(frozen=True)
class Block:
    """A table of text: a head, one row for each selector and a caption. Columns are named so that some can be left out.

    Attributes:
        columns: Column headings.
        cells: The text of each row, cell by cell.
        caption: What the figures are.
        legend: Column -> what it is, where the heading does not say it.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    caption: str
    legend: Mapping[str, str] = field(default_factory=dict[str, str])

    def explain(self, columns: Sequence[str]) -> str:
        """Return the caption, with the legend of these columns."""
        return ". ".join([self.caption, *(f"{name}: {self.legend[name]}" for name in columns if name in self.legend)])

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
        return printable("\n".join([texts[0], "-" * len(texts[0]), *texts[1:], self.explain(self.columns)]))

    def as_html(self, title: str = "") -> str:
        """Return the table as HTML, under a title."""

        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        head = f"{html.escape(title)}<br>" if title else ""
        body = "".join(line("td", row) for row in self.cells)
        caption = f"<caption>{head}<small>{html.escape(self.explain(self.columns))}</small></caption>"
        return f"<table>{caption}<thead>{line('th', self.columns)}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class SummaryTable(Sequence[SelectorSummary]):
    """One row for each selector. Prints as text and shows as a table in a notebook.

    Attributes:
        title: What was run, in one line.
        opinions: The opinions and elections, as text.
        measures: The clean accuracy and the costs, as text; None if nothing was measured.
        rows: The same as figures, with intervals; also by index: `summary[0].running_mean.mean`.
        notes: Who won, and what a reader should know before trusting the figures; a sentence each.
    """

    title: str
    opinions: Block
    measures: Block | None
    rows: tuple[SelectorSummary, ...]
    notes: tuple[str, ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The tables that there are."""
        return (self.opinions,) if self.measures is None else (self.opinions, self.measures)

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
        return "\n".join([printable(self.title), "\n\n".join(map(str, self.blocks)), *map(printable, self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = self.opinions.as_html(self.title) + ("" if self.measures is None else self.measures.as_html())
        return tables + "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)


def summary_table(run: RunTable | str | os.PathLike[str]) -> SummaryTable:
    """Summarise a run, or the run in a folder, for people to read."""
    table = run if isinstance(run, RunTable) else read_table(run)
    groups = {group: members for group, members in table.header.groups.items() if len(members) < table.header.clients}
    rows = tuple(summarise(table))
    gaps = rows if any(row.gap_to_best is not None for row in rows) else ()
    best = "best fixed" if table.header.optimum is None else "optimum"
    columns = ["selector", "last slot", "mean opinion", *([f"gap to {best}"] if gaps else [])]
    columns += [f"{group} ({len(members)})" for group, members in groups.items()]
    cells = tuple(
        (
            row.label,
            _format_mean(row.final_opinion),
            _format_interval(row.running_mean),
            *([_format_interval(row.gap_to_best)] if gaps else []),
            *(_format_percent(row.group_shares.get(group)) for group in groups),
        )
        for row in rows
    )
    opinions = Block(tuple(columns), cells, _CAPTION + (_SHARES_CAPTION if groups else ""))
    return SummaryTable(_title(table), opinions, _measures_block(rows), rows, _note(table))


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
        "selectors": [_as_json(row) for row in summarise(run)],
    }


def _as_json(row: SelectorSummary) -> dict[str, Any]:
    """All figures of a row; those of measures only where there are any."""
    figures: dict[str, Any] = _without_nan(dataclasses.asdict(row))
    return figures if row.measured is not None else {key: figures[key] for key in figures if key != "measured"}


def _note(table: RunTable) -> tuple[str, ...]:
    """Say who won, if there was a competition, and whether training hardly changed what clients think."""

    def name(row: RankedSelector) -> str:
        return table.selectors[row.label].entry.title

    ranking = rank_world([table])
    notes = [ranking.sentence(name)] if sum(row.place is not None for row in ranking.rows) > 1 else []
    last = table.header.slots - max(1, table.header.slots // 10)
    ends = [one.opinion[:, last:] for one in table.selectors.values() if not np.isnan(one.opinion[:, last:]).all()]
    if table.untrained is not None and ends and not np.isnan(table.untrained).all():
        before, after = float(np.nanmean(table.untrained)), max(float(np.nanmean(end)) for end in ends)
        if after - before < _LEAST_PROGRESS * (1.0 - before):
            notes.append(
                f"training hardly helps: mean opinion {after:.3f} at the end, {before:.3f} of the untrained model; the "
                f"step size may be too small or too large for this model and data (model.step in the scenario)"
            )
    return tuple(notes)


def _measures_block(rows: Sequence[SelectorSummary]) -> Block | None:
    """The measures of each selector as text; None if nothing was measured. Columns without a figure are left out."""
    measured = [row.measured for row in rows]
    slots = sorted({slot for one in measured if one is not None for slot in one.accuracy_at})
    if all(one is None for one in measured):
        return None
    figures: dict[str, Callable[[MeasureSummary], str]] = {
        **{f"at {slot}": functools.partial(_accuracy_at, slot=slot) for slot in slots},
        "at the end": lambda one: _format_interval(one.final_accuracy),
        "minus random": lambda one: _format_interval(one.difference, signed=True),
        "closure": lambda one: _format_closure(one.closure),
        "slots to random": lambda one: "-" if one.slots_to_random is None else f"{one.slots_to_random.slots.mean:.0f}",
        "low": lambda one: _format_mean(one.final_low_accuracy),
        "flawed": lambda one: _format_percent(one.flawed_share),
        "MB": lambda one: _format_megabytes(one),
        "at equal bytes": lambda one: _format_mean(one.accuracy_at_equal_bytes),
        "evaluations": lambda one: _format_mean(one.evaluations, digits=0),
    }
    columns = {name: ["-" if one is None else figure(one) for one in measured] for name, figure in figures.items()}
    shown = {name: cells for name, cells in columns.items() if set(cells) != {"-"}}
    if all(one is None or one.accuracy_at_equal_bytes == one.final_accuracy for one in measured):
        shown.pop("at equal bytes", None)  # all sent as much
    cells = tuple((row.label, *line) for row, line in zip(rows, zip(*shown.values(), strict=True), strict=True))
    return Block(("clean accuracy", *shown), cells, _MEASURES_CAPTION, _LEGEND)


def _accuracy_at(one: MeasureSummary, *, slot: int) -> str:
    return _format_mean(one.accuracy_at.get(slot))


def _format_megabytes(one: MeasureSummary) -> str:
    known = [figure.mean for figure in (one.bytes_down, one.bytes_up) if not math.isnan(figure.mean)]
    return f"{sum(known) / 1e6:.3g}" if known else "-"


def _format_closure(one: Closure | None) -> str:
    """A closure with its interval, or "-"."""
    return "-" if one is None else f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _title(run: RunTable) -> str:
    header = run.header
    name = header.scenario.get("name", header.source)
    state = "" if run.recorded == header.planned else f", {run.recorded} of {header.planned} records so far"
    return (
        f"{name}, FL&{header.framework.upper()}: {header.budget}{' (changing)' if header.resized else ''} of "
        f"{header.clients} clients, "
        f"{count(header.slots, 'slot')}, {count(header.trials, 'trial')}{state}"
    )


def _format_interval(interval: Interval | None, *, signed: bool = False) -> str:
    if interval is None or math.isnan(interval.mean):
        return "-"
    spread = "" if interval.half_width is None else f"±{interval.half_width:.3f}"
    return f"{interval.mean:{'+' if signed else ''}.3f}{spread}"


def _format_mean(interval: Interval | None, *, digits: int = 3) -> str:
    return "-" if interval is None or math.isnan(interval.mean) else f"{interval.mean:.{digits}f}"


def _format_percent(interval: Interval | None) -> str:
    return "-" if interval is None or math.isnan(interval.mean) else f"{100 * interval.mean:.1f} %"


def _without_nan(value: Any) -> Any:
    """Return the value with None in place of nan, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
