"""The parts of the page that are text: title, worlds, warnings, fairness, theory, origin."""

from collections.abc import Callable, Sequence

import msgspec

from fedelect.report.analysis import RunAnalysis
from fedelect.report.html_parts import (
    NOTHING,
    by_key,
    count,
    escape,
    for_each_world,
    interval_cell,
    join_words,
    number_cell,
    render_figures,
)
from fedelect.report.run_data import RunData
from fedelect.report.worlds import Series, World

_SOURCES = {"simulator": "Simulated", "flower": "Run by Flower", "peers": "Run by real processes"}
_LOOPS = {
    "fa": "FL&FA: the average opinion reaches the server",
    "da": "FL&DA: the clients elect among themselves",
}
_SHOWN_NAMES = 12
_NAMED_IN_TITLE = 3


def page_title(worlds: Sequence[World]) -> str:
    """What was compared in which world, not escaped."""
    if not worlds:
        return "Client selection"
    labels = list(dict.fromkeys(one.summary.label for world in worlds for one in world.series))
    what = join_words(labels) if len(labels) <= _NAMED_IN_TITLE else f"{len(labels)} selectors"
    return f"{what}{' compared' if len(labels) > 1 else ''} in {join_words([world.name for world in worlds])}"


def render_facts(worlds: Sequence[World], *, live: bool = False) -> str:
    """Each world's size and loops, and warnings; a live page says elsewhere how far it has got."""
    if not worlds:
        return '<p class="warning">No run is there so far; the page fills as soon as one begins.</p>'
    return "".join(_facts(world, named=len(worlds) > 1, live=live) for world in worlds)


def _facts(world: World, *, named: bool, live: bool) -> str:
    header = world.header
    several = len(world.analyses) > 1
    flawed = len({client for members in header.flaws.values() for client in members})
    kinds = ", ".join(kind.replace("_", " ") for kind, members in header.flaws.items() if members)
    flaws = f", {flawed} of them flawed ({kinds})" if flawed else ""
    loops = "; ".join(
        (f"{one.run.name} is " if several else "") + _LOOPS[one.run.header.framework] for one in world.analyses
    )
    budget = f"{header.budget:,} (changing)" if header.resized else f"{header.budget:,}"
    text = (
        f"{count(header.clients, 'client')}{flaws}; {budget} train in each of "
        f"{count(header.slots, 'slot')}; {count(header.trials, 'trial')}. {_SOURCES[header.source]}. {loops}."
    )
    name = f"<strong>{escape(world.name)}</strong>: " if named else ""
    return f"<p>{name}{escape(text)}</p>" + "".join(_warnings(one, named=several, live=live) for one in world.analyses)


def _warnings(analysis: RunAnalysis, *, named: bool, live: bool) -> str:
    table = analysis.run.table
    warnings = []
    if table.recorded < table.header.planned and not live:
        share = 100.0 * table.recorded / table.header.planned
        warnings.append(
            f"This run is not complete: {table.recorded:,} of {table.header.planned:,} slots are on record "
            f"({share:.1f} %)."
        )
    for what, slots in (
        ("abandoned", sum(one.abandoned for one in table.selectors.values())),
        ("skipped", sum(one.skipped for one in table.selectors.values())),
    ):
        if slots:
            warnings.append(f"{slots:,} {'slot was' if slots == 1 else 'slots were'} {what}.")
    warnings += [*_noise(analysis.run), *_explain_average(analysis.run)]
    name = f"<strong>{escape(analysis.run.name)}</strong>: " if named else ""
    return f'<p class="warning">{name}{" ".join(warnings)}</p>' if warnings else ""


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


def render_fairness(worlds: Sequence[World]) -> str:
    """Table of fairness: evenness of elections, clients never elected, lost uploads."""
    text = "Jain's index is 1 when all clients are elected equally often and 1/N when one takes every seat."
    return f"<p>{text}</p>" + for_each_world(worlds, _fairness)


def _fairness(world: World, suffix: str) -> str:
    groups = [group for group, members in world.header.groups.items() if len(members) < world.header.clients]

    def share(group: str) -> Callable[[Series], str]:
        return lambda one: interval_cell(one.summary.group_shares.get(group), percent=True)

    columns: dict[str, Callable[[Series], str]] = {
        "Jain's index": lambda one: interval_cell(one.summary.jain_index),
        "never elected in a trial": lambda one: interval_cell(one.summary.never_chosen, digits=1),
        "never elected at all": _never,
        "uploads lost": lambda one: interval_cell(one.summary.upload_failures, percent=True),
        **{f"elections of {group}": share(group) for group in groups},
    }
    return render_figures(f"fairness{suffix}", by_key(world), columns)


def _never(one: Series) -> str:
    table, summary = one.analysis.run.table, one.summary
    if not summary.trials:
        return NOTHING
    never = [client for client, times in enumerate(summary.selections[: table.joined]) if times == 0]
    given = table.header.client_names
    names = [str(client) if given is None else given[client] for client in never]
    more = ", \u2026" if len(never) > _SHOWN_NAMES else ""
    return number_cell(len(never), ", ".join(names[:_SHOWN_NAMES]) + more)


def render_bounds(worlds: Sequence[World]) -> str:
    """Oracle of the regret, and the theorem's bounds with their conditions."""
    analyses = [one for world in worlds for one in world.analyses]
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
        whose, as_seen = ("all cohorts", "") if oracle.exact else ("the cohorts seen", "as far as seen, ")
        most = analysis.run.header.slots * oracle.largest_gap
        text += (
            f" Gaps to {whose} below it: R_min = {oracle.smallest_gap:.3g}, R_max = {oracle.largest_gap:.3g}; "
            f"{as_seen}no run loses more than T R_max = {most:.3g} on average."
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


def render_thinning(worlds: Sequence[World]) -> str:
    """Note of what the charts leave out."""
    analyses = [one for world in worlds for one in world.analyses]
    notes = [
        f"{escape(one.run.name) + ': ' if len(analyses) > 1 else ''}{escape(note)}"
        for one in analyses
        for note in one.run.thinning.notes
    ]
    if not notes:
        return "<p>Nothing was thinned: every slot, trial and client on record is drawn.</p>"
    items = "".join(f"<li>{note}</li>" for note in notes)
    return f"<p>Drawings are thinned; tables, means and intervals count every record.</p><ul>{items}</ul>"


def render_provenance(worlds: Sequence[World]) -> str:
    """Command that repeats each run, and its versions."""
    analyses = [one for world in worlds for one in world.analyses]
    return "".join(_provenance(one, named=len(analyses) > 1) for one in analyses)


def _provenance(analysis: RunAnalysis, *, named: bool) -> str:
    header = analysis.run.header
    origin = header.provenance
    versions = ", ".join(f"{name} {version}" for name, version in sorted(origin.versions.items()))
    parameters = "\n".join(msgspec.json.encode(one).decode() for one in header.selectors)
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
