"""The parts of the page that are text and tables, each a function from figures to HTML.

Whatever comes from a configuration or a file name is escaped. Cells carry their figures in full (`data-v`, half-width
of the interval in `data-h`), which is what the page saves as CSV.
"""

import html
import math
from collections.abc import Iterable, Sequence

import msgspec

from fedelect.equations.intervals import Interval
from fedelect.records import RunTable, SelectorSummary
from fedelect.report.analysis import RunAnalysis
from fedelect.report.run_data import RunData
from fedelect.report.style import LIGHT_COLOURS

_SOURCES = {"simulator": "the simulator", "flower": "Flower", "peers": "real processes"}
_FRAMEWORKS = {
    "fa": "Federated analytics: the average opinion reaches the server",
    "da": "Democratized analytics: the clients elect among themselves",
}
NOTHING = "<td>\u2013</td>"
_SHOWN_NAMES = 12


def escape(value: object) -> str:
    """`value` as text that HTML shows and never obeys."""
    return html.escape(str(value), quote=True)


def page_title(analyses: Sequence[RunAnalysis]) -> str:
    """A title for the page, not escaped."""
    if len(analyses) > 1:
        return "Client selection: " + " and ".join(
            [", ".join(one.run.name for one in analyses[:-1]), analyses[-1].run.name]
        )
    name = analyses[0].run.header.scenario.get("name") if analyses else None
    return f"Client selection: {name}" if isinstance(name, str) and name else "Client selection"


def render_facts(analyses: Sequence[RunAnalysis]) -> str:
    """Each run's size and origin, and a warning if it is not complete."""
    if not analyses:
        return '<p class="warning">No run is there so far; the page fills as soon as one begins.</p>'
    return "".join(_facts(one, named=len(analyses) > 1) for one in analyses)


def _facts(analysis: RunAnalysis, *, named: bool) -> str:
    header = analysis.run.header
    rows = {
        "clients": f"{header.clients:,}",
        "elected a slot": f"{header.budget:,}",
        "slots": f"{header.slots:,}",
        "trials": f"{header.trials:,}",
        "seed": header.seed,
    }
    cards = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows.items())
    name = f"<strong>{escape(analysis.run.name)}</strong>: " if named else ""
    return (
        f"<p>{name}{_FRAMEWORKS[header.framework]}. A run by {_SOURCES[header.source]}.</p>"
        f'<dl class="facts">{cards}</dl>{_warnings(analysis)}'
    )


def _warnings(analysis: RunAnalysis) -> str:
    table = analysis.run.table
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
    warnings += [*_noise(analysis.run), *_explain_average(analysis.run)]
    if analysis.run.told_gains:
        warnings.append(
            "Selectors were told what a slot gained against what was to be expected (0.5 + gain), not the average "
            "opinion, which rises with any cohort; curves and tables show the average opinion."
        )
    return f'<p class="warning">{" ".join(warnings)}</p>' if warnings else ""


def _noise(run: RunData) -> list[str]:
    if run.noise is None:
        return []
    least, greatest = (f"{value:.3g}" for value in run.noise)
    size = least if least == greatest else f"{least} to {greatest}"
    text = f"Noise was added to the averages that the selectors were told (standard deviation {size})."
    if run.noise_shown:
        text += (
            " Opinions are not on record, so curves and tables show these averages: they may lie below 0 or above 1."
        )
    return [text]


def _explain_average(run: RunData) -> list[str]:
    if not run.told_otherwise:
        return []
    slots = sum(run.told_otherwise.values())
    return [
        f"In {slots:,} {'slot' if slots == 1 else 'slots'} ({escape(', '.join(run.told_otherwise))}) the selector was "
        f"told another average than the mean of the opinions, such as a median; curves and tables show the plain mean."
    ]


def render_numbers(analyses: Sequence[RunAnalysis]) -> str:
    """Table of final figures, and of the time to each target."""
    untrained = any(one.running_mean_with_untrained is not None for analysis in analyses for one in analysis.summaries)
    heads = ["selector", "last slot", "mean of all slots", *(["with the untrained model"] if untrained else [])]
    heads += ["gap to the best cohort", "regret", "slots on record"]
    rows = []
    for analysis, one, key in each_selector(analyses):
        cells = [interval_cell(one.final_opinion), interval_cell(one.running_mean)]
        cells += [interval_cell(one.running_mean_with_untrained)] if untrained else []
        cells.append("<td>best</td>" if one.label == analysis.best else interval_cell(analysis.gaps[one.label]))
        cells += [interval_cell(one.regret, digits=2), _plain(one.done + one.abandoned + one.skipped)]
        rows.append(render_row(key, cells))
    spread = "\u00b1 is the 95 % interval over trials." if any(_trials(one) > 1 for one in analyses) else ""
    noisy = any(one.run.noise_shown for one in analyses)
    within = ", with noise where only noisy averages are on record" if noisy else ", from 0 to 1"
    return (
        f"<p>Opinions are the clients' mean score of the trained model{within}. {spread}</p>"
        + render_table("final", heads, rows)
        + _targets(analyses)
    )


def _trials(analysis: RunAnalysis) -> int:
    return analysis.run.header.trials


def _targets(analyses: Sequence[RunAnalysis]) -> str:
    targets = next(([each.target for each in one.targets] for _, one, _ in each_selector(analyses)), [])
    if not targets:
        return ""
    heads = ["selector", *(f"{target:g}" for target in targets)]
    parts = []
    for name, title in (("running", "mean of all slots so far"), ("single", "opinion of a slot")):
        rows = []
        for analysis, one, key in each_selector(analyses):
            reached = one.targets if name == "running" else analysis.by_opinion[one.label]
            notes = [f"{each.reached} of {each.trials} trials" for each in reached]
            cells = [interval_cell(each.slots, 1, note=note) for each, note in zip(reached, notes, strict=True)]
            rows.append(render_row(key, cells))
        parts.append(f"<h4>Until the {title} reaches</h4>" + render_table(f"targets-{name}", heads, rows))
    return (
        "<h3>Time to a target</h3><p>Slots until an opinion is reached, over all trials; a trial that never gets there "
        "counts with all its slots. Below: in how many trials it was reached.</p>"
        f'<div class="pair">{"".join(f"<div>{part}</div>" for part in parts)}</div>'
    )


def render_fairness(analyses: Sequence[RunAnalysis]) -> str:
    """Table of fairness: evenness of elections, clients never elected, lost uploads."""
    groups = list(dict.fromkeys(group for one in analyses for group in one.run.header.groups))
    heads = ["selector", *(f"elections of {group}" for group in groups), "Jain's index", "never elected in a trial"]
    heads += ["never elected at all", "uploads lost"]
    rows = []
    for analysis, one, key in each_selector(analyses):
        cells = [interval_cell(one.group_shares.get(group), percent=True) for group in groups]
        cells += [interval_cell(one.jain_index), interval_cell(one.never_chosen, digits=1)]
        cells += [_never(analysis.run.table, one), interval_cell(one.upload_failures, percent=True)]
        rows.append(render_row(key, cells))
    return (
        "<p>Jain's index is 1 when all clients are elected equally often and 1/N when one takes every seat.</p>"
        + render_table("fairness", heads, rows)
    )


def _never(table: RunTable, one: SelectorSummary) -> str:
    header = table.header
    never = [client for client, times in enumerate(one.selections[: table.joined]) if times == 0]
    if not one.trials:
        return NOTHING
    names = [str(client) if header.client_names is None else header.client_names[client] for client in never]
    more = ", \u2026" if len(never) > _SHOWN_NAMES else ""
    who = f'<span class="note">{escape(", ".join(names[:_SHOWN_NAMES]))}{more}</span>' if never else ""
    return f'<td data-v="{len(never)}">{len(never)}{who}</td>'


def render_bounds(analyses: Sequence[RunAnalysis]) -> str:
    """Oracle of the regret, and the theorem's bounds with their conditions."""
    return "".join(_oracle(one, named=len(analyses) > 1) for one in analyses if one.oracle is not None)


def _oracle(analysis: RunAnalysis, *, named: bool) -> str:
    oracle = analysis.oracle
    assert oracle is not None
    text = f"Regret is measured against {oracle.name}, whose mean opinion is {oracle.value:.4f}."
    if oracle.above:
        text += (
            f" {oracle.above:,} of the {oracle.cohorts:,} cohorts played have a higher mean, by luck of few plays or "
            f"because it is not the best."
        )
    if oracle.smallest_gap is not None and oracle.largest_gap is not None:
        text += (
            f" Gaps to the cohorts seen below it: R_min = {oracle.smallest_gap:.3g}, R_max = {oracle.largest_gap:.3g}; "
            f"as far as seen, no run loses more than T R_max = {analysis.run.header.slots * oracle.largest_gap:.3g} "
            f"on average."
        )
    name = f"<strong>{escape(analysis.run.name)}</strong>: " if named else ""
    return f"<p>{name}{escape(text)}</p>" + "".join(_bound(analysis, number) for number in range(len(analysis.bounds)))


def _bound(analysis: RunAnalysis, number: int) -> str:
    bound = analysis.bounds[number]
    end = bound.at_end
    worth = "vacuous: it allows more than any run loses on average, as far as seen" if end.vacuous else "below T R_max"
    text = (
        f"{end.theorem} for {bound.label}: at most {end.value:.3g} after {analysis.run.header.slots:,} slots, {worth}."
    )
    items = [f"<li><b>Broken:</b> {escape(what)} \u2014 {escape(why)}</li>" for what, why in bound.broken]
    items += [f"<li><b>Not known:</b> {escape(what)} \u2014 {escape(why)}</li>" for what, why in bound.unknown]
    verdict = f"{len(bound.broken)} of its {len(end.conditions)} conditions are broken"
    return f"<details><summary>{escape(text)} {verdict}.</summary><ul>{''.join(items)}</ul></details>"


def render_thinning(analyses: Sequence[RunAnalysis]) -> str:
    """Note of what the charts leave out."""
    notes = [
        f"{escape(one.run.name) + ': ' if len(analyses) > 1 else ''}{escape(note)}"
        for one in analyses
        for note in one.run.thinning.notes
    ]
    if not notes:
        return "<p>Nothing was thinned: every slot, trial and client on record is drawn.</p>"
    items = "".join(f"<li>{note}</li>" for note in notes)
    return f"<p>Drawings are thinned; tables, means and intervals count every record.</p><ul>{items}</ul>"


def render_provenance(analyses: Sequence[RunAnalysis]) -> str:
    """Command that repeats each run, and its versions."""
    return "".join(_provenance(one, named=len(analyses) > 1) for one in analyses)


def _provenance(analysis: RunAnalysis, *, named: bool) -> str:
    header = analysis.run.header
    origin = header.provenance
    versions = ", ".join(f"{name} {version}" for name, version in sorted(origin.versions.items()))
    parameters = msgspec.json.format(msgspec.json.encode([*header.selectors]), indent=2).decode()
    scenario = msgspec.json.format(msgspec.json.encode(header.scenario), indent=2).decode()
    engine = f", engine {escape(header.engine)}" if header.engine else ""
    digest = f", data {escape(header.data_digest)}" if header.data_digest else ""
    return (
        f"{f'<h3>{escape(analysis.run.name)}</h3>' if named else ''}"
        f"{f'<p>To repeat it:</p><pre>{escape(origin.command)}</pre>' if origin.command.strip() else ''}"
        f"<p>Seed {header.seed}{engine}{digest}. Started {escape(origin.created)} on {escape(origin.platform)}"
        f"{' with ' + escape(versions) if versions else ''}; records of schema version {header.schema}.</p>"
        f"<details><summary>Configuration</summary><pre>{escape(scenario)}</pre></details>"
        f"<details><summary>Selectors</summary><pre>{escape(parameters)}</pre></details>"
    )


def each_selector(analyses: Sequence[RunAnalysis]) -> Iterable[tuple[RunAnalysis, SelectorSummary, str]]:
    """Every selector of every run, with the cell that names it; colours count through all runs."""
    position = 0
    for analysis in analyses:
        for one in analysis.summaries:
            name = f"{analysis.run.name}: {one.label}" if len(analyses) > 1 else one.label
            series = f'<span class="key" data-series="{position}" style="--ink: {_colour(position)}"></span>'
            yield analysis, one, f'{series}{escape(name)}<span class="note">{escape(one.kind)}</span>'
            position += 1


def _colour(position: int) -> str:
    return f"var(--series-{position % len(LIGHT_COLOURS)})"


def render_table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls and can be saved; heads are escaped, rows are HTML."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    return (
        f'<div class="block"><div class="scroll" tabindex="0" role="region" aria-label="table {name}">'
        f'<table id="table-{name}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="save"><button type="button" data-table="table-{name}">CSV</button></p></div>'
    )


def render_row(name: str, cells: Iterable[str]) -> str:
    """A row of a table; name and cells are HTML."""
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def _plain(value: int) -> str:
    return f'<td data-v="{value}">{value:,}</td>'


def interval_cell(interval: Interval | None, digits: int = 3, *, percent: bool = False, note: str = "") -> str:
    """A cell that shows a mean with its spread, with a note below; a dash if there is none."""
    if interval is None or math.isnan(interval.mean):
        return NOTHING
    scale, digits, unit = (100.0, 1, " %") if percent else (1.0, digits, "")
    text, half = f"{interval.mean * scale:.{digits}f}", ""
    if interval.half_width is not None:
        half = f' data-h="{interval.half_width!r}"'
        text += f' <span class="spread">\u00b1 {interval.half_width * scale:.{digits}f}</span>'
    below = f'<span class="note">{escape(note)}</span>' if note else ""
    return f'<td data-v="{interval.mean!r}"{half}>{text}{unit}{below}</td>'
