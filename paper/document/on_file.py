"""What is on file: trials of trials planned, for each figure and for all, and the versions that made them."""

from collections.abc import Sequence

from paper.catalogue import EXPERIMENTS, LAST_FIVE, OPTIMAL, Experiment
from paper.evidence import Evidence
from paper.measurements import made_with
from paper.series import RunRequest, Series


def trials_line(one: Experiment, evidence: Evidence) -> str:
    """How much a figure is drawn from, such as "25 of 100 trials of random; none of 100 trials of bp-ucb"."""
    measured = [
        f"Measurement `{name}`: {'not made yet' if made_with(evidence.store.folder, name) is None else 'on file'}."
        for name in one.measurements
    ]
    if not one.requests:
        return " ".join(measured) or "No trials: this is the scenario itself."
    return " ".join([_trials(one, evidence), *measured])


def _trials(one: Experiment, evidence: Evidence) -> str:
    counts = [(request, count_of(request, evidence)) for request in one.at(evidence.preset)]
    planned = " and ".join(sorted({str(request.trials) for request, _ in counts}))
    if all(count == request.trials for request, count in counts):
        return f"On file: all {planned} trials{'' if len(counts) == 1 else f' of all {len(counts)} series'}."
    by_count: dict[str, list[str]] = {}
    for request, count in counts:
        by_count.setdefault(f"{count or 'none'} of {request.trials} trials", []).append(_name(request, one))
    if len(by_count) == 1:
        return f"On file so far: {next(iter(by_count))}{'' if len(counts) == 1 else ' of each series'}."
    texts = [f"{said} of {', '.join(names)}" for said, names in by_count.items()]
    return f"On file so far: {'; '.join(texts)}."


def _name(request: RunRequest, one: Experiment) -> str:
    """A series of an experiment, in a few words."""
    series = request.series
    name = {OPTIMAL: "clients 1 to 5", LAST_FIVE: "clients 16 to 20"}.get(series, series.selector)
    worlds = {other.series.world for other in one.requests}
    return name if len(worlds) == 1 else f"{name} at {series.world.name}"


def total_line(evidence: Evidence) -> str:
    """How much of everything is there."""
    by_series: dict[Series, list[RunRequest]] = {}
    for request in _list_wanted(EXPERIMENTS, evidence):
        by_series.setdefault(request.series, []).append(request)
    complete = sum(all(count_of(one, evidence) == one.trials for one in own) for own in by_series.values())
    # Demands for fewer slots of the same trials are served by the same runs.
    largest = [max(own, key=lambda request: (request.trials, request.slots)) for own in by_series.values()]
    planned, have = sum(one.trials for one in largest), sum(count_of(one, evidence) for one in largest)
    return (
        f"Of the {len(by_series)} trained series that the figures need, {complete} have all their trials on file; of "
        f"all {planned:,} trials, {have:,} (the last section has the list)."
    )


def count_of(request: RunRequest, evidence: Evidence) -> int:
    """Trials of a request that are on file."""
    curves = evidence.curves(request.series, slots=request.slots, trials=request.trials)
    return 0 if curves is None else len(curves.trials)


def _list_wanted(experiments: Sequence[Experiment], evidence: Evidence) -> list[RunRequest]:
    """Every series and number of slots once, with the most trials that an experiment asks for."""
    wanted: dict[tuple[Series, int], RunRequest] = {}
    for request in (request for one in experiments for request in one.at(evidence.preset)):
        known = wanted.setdefault((request.series, request.slots), request)
        if known.trials < request.trials:
            wanted[request.series, request.slots] = request
    return sorted(wanted.values(), key=lambda each: (each.series.world, each.series.selector, each.slots))


def on_file_lines(evidence: Evidence, *, only: Sequence[Experiment] = EXPERIMENTS) -> list[str]:
    """Which series are there, with how many trials of how many, and what made them."""
    makers: dict[str, int] = {}
    lines = ["| series | slots | trials on file | trials planned | made with |", "|---|---|---|---|---|"]
    for request in _list_wanted(only, evidence):
        curves = evidence.curves(request.series, slots=request.slots, trials=request.trials)
        made = () if curves is None else curves.made_with
        numbers = [makers.setdefault(text, len(makers) + 1) for text in made]
        count = 0 if curves is None else len(curves.trials)
        said = " and ".join(f"({number})" for number in numbers) or "-"
        lines.append(f"| {request.series} | {request.slots} | {count} | {request.trials} | {said} |")
    lines.append("")
    lines += [f"- ({number}) {text}" for text, number in makers.items()] or ["- nothing yet"]
    if len(makers) > 1:
        lines += ["", "Blocks of different versions stand side by side: their numbers may differ in the last bits."]
    return lines


def measurement_lines(evidence: Evidence) -> list[str]:
    """Which measurements are there, and what made them."""
    names = sorted({name for one in EXPERIMENTS for name in one.measurements})
    found = {name: made_with(evidence.store.folder, name) for name in names}
    there = [f"{name} ({made})" for name, made in found.items() if made is not None]
    absent = [name for name, made in found.items() if made is None]
    lines = [f"Measurements on file: {'; '.join(there) or 'none'}."]
    return [*lines, f"Not measured yet: {', '.join(absent)}."] if absent else lines
