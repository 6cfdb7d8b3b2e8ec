"""The part of the page on what slots achieved and cost: clean accuracy, difference to random, closure, bytes."""

import dataclasses
from collections.abc import Callable, Sequence

from fedelect.equations.closure import CLEAR_GAP, Closure, is_clear
from fedelect.equations.intervals import Interval
from fedelect.records import RANDOM, MeasureSummary
from fedelect.report.analysis import RunAnalysis
from fedelect.report.sections import NOTHING, each_selector, escape, interval_cell, render_row, render_table

_INTRODUCTION = (
    "<h2>Accuracy on clean data</h2><p>No selector sees these figures. Accuracy is that of each slot's model on the "
    "clean test data of all clients; the end is the last ten slots. Low accuracy is the 10th percentile over all "
    "clients of the accuracy on their own clean test data. Differences to random are taken trial by trial.</p>"
)
_COSTS = (
    "<h3>What it cost</h3><p>Megabytes of models sent to clients and of updates sent by them. At equal bytes: the "
    "accuracy over the ten slots up to the one by which as much was sent as the thriftiest selector sent in all.</p>"
)


def render_measures(analyses: Sequence[RunAnalysis]) -> str:
    """Table of the measures and what the oracle allows; empty if nothing was measured."""
    measured = [one.measured for _, one, _ in each_selector(analyses) if one.measured is not None]
    if not measured:
        return ""
    slots = sorted({slot for one in measured for slot in one.accuracy_at})
    notes = "".join(_oracle_note(one, named=len(analyses) > 1) for one in analyses)
    costs = _table(analyses, "costs", _cost_columns())
    return _INTRODUCTION + notes + _table(analyses, "accuracy", _accuracy_columns(slots)) + (costs and _COSTS + costs)


def _table(analyses: Sequence[RunAnalysis], name: str, columns: dict[str, Callable[[MeasureSummary], str]]) -> str:
    """The selectors that were measured, and the columns in which one has a figure; empty if there is none."""
    measured = {key: one.measured for _, one, key in each_selector(analyses) if one.measured is not None}
    shown = {head: cell for head, cell in columns.items() if any(cell(one) != NOTHING for one in measured.values())}
    if not shown:
        return ""
    rows = [render_row(key, [cell(one) for cell in shown.values()]) for key, one in measured.items()]
    return render_table(name, ["selector", *shown], rows)


def _accuracy_columns(slots: Sequence[int]) -> dict[str, Callable[[MeasureSummary], str]]:
    """Head -> cell of a selector."""

    def at(slot: int) -> Callable[[MeasureSummary], str]:
        return lambda one: interval_cell(one.accuracy_at.get(slot))

    return {
        **{f"slot {slot}": at(slot) for slot in slots},
        "at the end": lambda one: interval_cell(one.final_accuracy),
        "minus random": lambda one: interval_cell(one.difference),
        "closure": lambda one: _closure_cell(one.closure),
        "slots to random's end": _reached_cell,
        "low accuracy": lambda one: interval_cell(one.final_low_accuracy),
        "low accuracy minus random": lambda one: interval_cell(one.low_difference),
        "flawed among the elected": lambda one: interval_cell(one.flawed_share, percent=True),
    }


def _cost_columns() -> dict[str, Callable[[MeasureSummary], str]]:
    """Head -> cell of a selector."""
    return {
        "MB down a trial": lambda one: interval_cell(_in_megabytes(one.bytes_down), digits=2),
        "MB up a trial": lambda one: interval_cell(_in_megabytes(one.bytes_up), digits=2),
        "accuracy at equal bytes": lambda one: interval_cell(one.accuracy_at_equal_bytes),
        "minus random at equal bytes": lambda one: interval_cell(one.equal_bytes_difference),
        "evaluations a trial": lambda one: interval_cell(one.evaluations, digits=0),
    }


def _closure_cell(closure: Closure | None) -> str:
    if closure is None:
        return NOTHING
    note = f'<span class="note">{closure.low:.2f} to {closure.high:.2f}</span>'
    return f'<td data-v="{closure.value!r}">{closure.value:.2f}{note}</td>'


def _reached_cell(one: MeasureSummary) -> str:
    reached = one.slots_to_random
    if reached is None:
        return NOTHING
    return interval_cell(reached.slots, digits=1, note=f"{reached.reached} of {reached.trials} trials")


def _in_megabytes(interval: Interval) -> Interval:
    half = None if interval.half_width is None else interval.half_width / 1e6
    return dataclasses.replace(interval, mean=interval.mean / 1e6, half_width=half)


def _oracle_note(analysis: RunAnalysis, *, named: bool) -> str:
    """What the oracle gains over random, and whether that is enough to speak of closure."""
    gap = next((one.measured.oracle_gap for one in analysis.summaries if one.measured is not None), None)
    if gap is None:
        return ""
    spread = "" if gap.half_width is None else f" \u00b1 {100 * gap.half_width:.1f}"
    text = f"The oracle, which draws among the unflawed, is {100 * gap.mean:.1f}{spread} points ahead of {RANDOM}."
    if is_clear(gap):
        text += " Closure is the share of this that a selector gains, with a 95 % bootstrap interval over trials."
    else:
        text += f" That is not clearly more than {100 * CLEAR_GAP:g} point, so no closure is stated."
    name = f"<strong>{escape(analysis.run.name)}</strong>: " if named else ""
    return f"<p>{name}{escape(text)}</p>"
