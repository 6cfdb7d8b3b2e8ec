"""The parts of the page, each a function from figures to HTML. Whatever comes from a configuration is escaped."""

import html
import math
from collections.abc import Iterable

import msgspec

from fedelect.equations.intervals import Interval
from fedelect.records import RunHeader, RunTable, SelectorSummary, best_fixed
from fedelect.report.style import colour, is_broken

_SOURCES = {"simulator": "the simulator", "flower": "Flower", "peers": "real processes"}
_FRAMEWORKS = {
    "fa": "Federated analytics: the average opinion reaches the server",
    "da": "Democratized analytics: the clients elect among themselves",
}
_NOTHING = "\u2013"


def escape(value: object) -> str:
    """`value` as text that HTML shows and never obeys."""
    return html.escape(str(value), quote=True)


def title_of(header: RunHeader) -> str:
    """A title for the run: its scenario's name, if it has one. Not escaped."""
    name = header.scenario.get("name")
    return f"Client selection: {name}" if isinstance(name, str) and name else "Client selection"


def facts(table: RunTable) -> str:
    """The run's size and origin, and a warning if it is not complete."""
    header = table.header
    rows = {
        "Clients": f"{header.clients:,}",
        "Cohort size": f"{header.budget:,}",
        "Slots": f"{header.slots:,}",
        "Trials": f"{header.trials:,}",
        "Seed": header.seed,
    }
    cards = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows.items())
    return (
        f"<p>{_FRAMEWORKS[header.framework]}. A run by {_SOURCES[header.source]}.</p>"
        f'<dl class="facts">{cards}</dl>{_warnings(table)}'
    )


def _warnings(table: RunTable) -> str:
    warnings = []
    if table.recorded < table.header.planned:
        share = 100.0 * table.recorded / table.header.planned
        warnings.append(
            f"This run is not complete: {table.recorded:,} of {table.header.planned:,} slots are on record "
            f"({share:.1f} %)."
        )
    for what, count in (
        ("abandoned", sum(one.abandoned for one in table.selectors.values())),
        ("skipped", sum(one.skipped for one in table.selectors.values())),
    ):
        if count:
            warnings.append(f"{count:,} {'slot was' if count == 1 else 'slots were'} {what}.")
    return f'<p class="warning">{" ".join(warnings)}</p>' if warnings else ""


def selectors_table(table: RunTable, summaries: list[SelectorSummary]) -> str:
    """One row for each selector: final opinion, running mean, gap, group shares, fairness."""
    best = best_fixed(table)
    groups = list(table.header.groups)
    heads = ["Selector", "Final opinion", "Running mean"]
    heads += [] if best is None else ["Gap to the best fixed cohort"]
    heads += [f"Elections of group {group}" for group in groups] + ["Jain's fairness"]
    rows = []
    for position, one in enumerate(summaries):
        cells = [_interval(one.final_opinion), _interval(one.running_mean)]
        if one.gap_to_best_fixed is not None:
            cells.append("best" if one.label == best else _interval(one.gap_to_best_fixed))
        cells += [_interval(one.group_shares[group], percent=True) for group in groups]
        cells.append(_interval(one.jain_index))
        name = f'{key(position)}{escape(one.label)}<span class="kind">{escape(one.kind)}</span>'
        rows.append(_row(name, (f"<td>{cell}</td>" for cell in cells)))
    return _table(heads, rows, kind="selectors")


def selections_table(header: RunHeader, summaries: list[SelectorSummary]) -> str:
    """One row for each client: how often each selector elected it, on average over trials."""
    heads = ["Client", *(["Group"] if header.groups else []), *(one.label for one in summaries)]
    most = max((max(one.selections) for one in summaries), default=0.0)
    rows = []
    for client in range(header.clients):
        cells = [f"<td>{escape(_groups_of(header, client))}</td>"] if header.groups else []
        for one in summaries:
            times = one.selections[client]
            heat = times / most if most else 0.0
            cells.append(f'<td class="heat" style="--heat: {heat:.3f}">{times:,.1f}</td>')
        name = str(client) if header.client_names is None else f"{client} {header.client_names[client]}"
        rows.append(_row(escape(name), cells))
    return _table(heads, rows, kind="clients")


def _groups_of(header: RunHeader, client: int) -> str:
    return ", ".join(group for group, members in header.groups.items() if client in members) or _NOTHING


def legend(labels: Iterable[str]) -> str:
    """Which colour is which selector."""
    items = "".join(f"<li>{key(position)}{escape(label)}</li>" for position, label in enumerate(labels))
    return f'<ul class="legend">{items}</ul>'


def key(position: int) -> str:
    """A short piece of the selector's line."""
    line = "dashed" if is_broken(position) else "solid"
    return f'<span class="key" style="border-color: {colour(position)}; border-top-style: {line}"></span>'


def provenance(header: RunHeader) -> str:
    """The command that repeats the run, and what it was run with."""
    origin = header.provenance
    versions = ", ".join(f"{name} {version}" for name, version in sorted(origin.versions.items()))
    parameters = msgspec.json.format(msgspec.json.encode([*header.selectors]), indent=2).decode()
    scenario = msgspec.json.format(msgspec.json.encode(header.scenario), indent=2).decode()
    return (
        f"<p>To repeat it:</p><pre>{escape(origin.command)}</pre>"
        f"<p>Started {escape(origin.created)} on {escape(origin.platform)}"
        f"{' with ' + escape(versions) if versions else ''}; records of schema version {header.schema}.</p>"
        f"<details><summary>Scenario</summary><pre>{escape(scenario)}</pre></details>"
        f"<details><summary>Selectors</summary><pre>{escape(parameters)}</pre></details>"
    )


def _table(heads: list[str], rows: list[str], *, kind: str) -> str:
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    return (
        f'<div class="scroll" tabindex="0"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(name: str, cells: Iterable[str]) -> str:
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def _interval(interval: Interval, *, percent: bool = False) -> str:
    if math.isnan(interval.mean):
        return _NOTHING
    scale, digits, unit = (100.0, 1, " %") if percent else (1.0, 3, "")
    mean = f"{interval.mean * scale:.{digits}f}"
    if interval.half_width is None:
        return mean + unit
    return f'{mean} <span class="spread">± {interval.half_width * scale:.{digits}f}</span>{unit}'
