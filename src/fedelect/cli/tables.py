"""Summaries of runs as tables and as JSON."""

import dataclasses
import math
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedelect.equations.intervals import Interval
from fedelect.records import RunTable, summarise


def print_summary(run: RunTable, console: Console) -> None:
    """The table of a run: one row for each selector."""
    header = run.header
    table = Table(title=_title(run), title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("selector", overflow="fold")
    for name in ("last\nslot", "mean opinion", "gap to\nbest fixed"):
        table.add_column(name, justify="right", no_wrap=True)
    for group, members in header.groups.items():
        table.add_column(f"{group}\n({len(members)})", justify="right", no_wrap=True)
    for row in summarise(run):
        shares = [_percent(row.group_shares.get(group)) for group in header.groups]
        table.add_row(
            row.label,
            f"{row.final_opinion.mean:.3f}",
            _figure(row.running_mean),
            _figure(row.gap_to_best_fixed),
            *shares,
        )
    table.caption = "opinions ± 95 % interval over trials; last columns: share of all elections"
    console.print(table)


def summary_json(run: RunTable) -> dict[str, Any]:
    """The same figures, and the rest, as JSON-able values."""
    return {
        "framework": run.header.framework,
        "clients": run.header.clients,
        "budget": run.header.budget,
        "slots": run.header.slots,
        "trials": run.header.trials,
        "seed": run.header.seed,
        "complete": run.recorded == run.header.planned,
        "selectors": [_plain(dataclasses.asdict(row)) for row in summarise(run)],
    }


def _title(run: RunTable) -> str:
    header = run.header
    name = header.scenario.get("name", header.source)
    state = "" if run.recorded == header.planned else f", {run.recorded} of {header.planned} records so far"
    return (
        f"{name}, FL&{header.framework.upper()}: {header.budget} of {header.clients} clients, "
        f"{header.slots} slots, {header.trials} trials{state}"
    )


def _figure(interval: Interval | None) -> str:
    if interval is None or math.isnan(interval.mean):
        return "-"
    spread = "" if interval.half_width is None else f"±{interval.half_width:.3f}"
    return f"{interval.mean:.3f}{spread}"


def _percent(interval: Interval | None) -> str:
    return "-" if interval is None or math.isnan(interval.mean) else f"{100 * interval.mean:.1f} %"


def _plain(value: Any) -> Any:
    """The value with nan as None, which is what JSON has."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
