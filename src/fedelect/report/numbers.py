"""The part of the page with all other figures: accuracy along the way, costs, opinions, time to targets."""

import dataclasses
from collections.abc import Callable, Sequence

from fedelect.equations.closure import CLEAR_GAP, Closure, is_clear
from fedelect.equations.intervals import Interval
from fedelect.records import RANDOM, MeasureSummary
from fedelect.report.html_parts import (
    NOTHING,
    by_key,
    escape,
    for_each_world,
    interval_cell,
    number_cell,
    render_figures,
)
from fedelect.report.worlds import Series, World

Column = Callable[[Series], str]


def render_numbers(worlds: Sequence[World]) -> str:
    """All figures that the ranking leaves out, world by world."""
    return for_each_world(worlds, _render_world)


def _render_world(world: World, suffix: str) -> str:
    accuracy = render_figures(f"accuracy{suffix}", by_key(world), _accuracy_columns(world))
    costs = render_figures(f"costs{suffix}", by_key(world), _cost_columns())
    return "".join(
        (
            accuracy and f"<h4>Accuracy along the way</h4><p>{_explain_accuracy(world)}</p>{accuracy}",
            costs and f"<h4>What it cost</h4><p>{_COSTS}</p>{costs}",
            f"<h4>Opinions</h4><p>{_explain_opinions(world)}</p>",
            render_figures(f"final{suffix}", by_key(world), _opinion_columns(world)),
            _targets(world, suffix),
        )
    )


_COSTS = (
    "Megabytes of models sent to clients and of updates sent by them. At equal bytes: the accuracy over the ten slots "
    "up to the one by which as much was sent as the thriftiest selector sent in all."
)


def _measured(cell: Callable[[MeasureSummary], str]) -> Column:
    return lambda one: NOTHING if one.summary.measured is None else cell(one.summary.measured)


def _accuracy_columns(world: World) -> dict[str, Column]:
    """Head -> cell of a selector."""
    measured = [one.summary.measured for one in world.shown if one.summary.measured is not None]
    slots = sorted({slot for one in measured for slot in one.accuracy_at})

    def at(slot: int) -> Column:
        return _measured(lambda one: interval_cell(one.accuracy_at.get(slot)))

    return {
        **{f"slot {slot}": at(slot) for slot in slots},
        "closure": _measured(lambda one: _closure_cell(one.closure)),
        "slots to random's end": _measured(_reached_cell),
        "10th percentile against random": _measured(lambda one: interval_cell(one.low_difference, signed=True)),
    }


def _cost_columns() -> dict[str, Column]:
    """Head -> cell of a selector."""
    return {
        "MB down a trial": _measured(lambda one: interval_cell(_in_megabytes(one.bytes_down), digits=2)),
        "MB up a trial": _measured(lambda one: interval_cell(_in_megabytes(one.bytes_up), digits=2)),
        "accuracy at equal bytes": _measured(lambda one: interval_cell(one.accuracy_at_equal_bytes)),
        "against random at equal bytes": _measured(lambda one: interval_cell(one.equal_bytes_difference, signed=True)),
        "evaluations a trial": _measured(lambda one: interval_cell(one.evaluations, digits=0)),
    }


def _opinion_columns(world: World) -> dict[str, Column]:
    ranked = world.ranking.by == "opinion"
    mean: dict[str, Column] = (
        {} if ranked else {"mean of all slots": lambda one: interval_cell(one.summary.running_mean)}
    )
    return {
        "last slot": lambda one: interval_cell(one.summary.final_opinion),
        **mean,
        "mean with the untrained model": lambda one: interval_cell(one.summary.running_mean_with_untrained),
        "regret": lambda one: interval_cell(one.summary.regret, digits=2),
        "slots on record": lambda one: number_cell(one.summary.done + one.summary.abandoned + one.summary.skipped),
    }


def _targets(world: World, suffix: str) -> str:
    """Slots until targets are reached by the mean of all slots so far, and by a single slot."""
    targets = [each.target for each in world.series[0].summary.targets]
    if not targets:
        return ""

    def column(place: int, running: bool) -> Column:
        def cell(one: Series) -> str:
            reached = one.summary.targets if running else one.analysis.by_opinion[one.summary.label]
            each = reached[place]
            return interval_cell(each.slots, 1, note=f"{each.reached} of {each.trials} trials")

        return cell

    columns = {f"mean {target:g}": column(place, True) for place, target in enumerate(targets)}
    columns |= {f"a slot {target:g}": column(place, False) for place, target in enumerate(targets)}
    return (
        "<h4>Time to a target</h4><p>Slots until the mean opinion of all slots so far, or that of a single slot, "
        "reaches a target; a trial that never gets there counts with all its slots. Below: in how many trials it was "
        f"reached.</p>{render_figures(f'targets{suffix}', by_key(world), columns)}"
    )


def _explain_accuracy(world: World) -> str:
    """What the columns are, what the oracle gains over random, and whether that is enough to speak of closure."""
    text = "No selector sees these figures."
    gaps = [one.summary.measured.oracle_gap for one in world.shown if one.summary.measured is not None]
    gap = next((one for one in gaps if one is not None), None)
    if gap is not None:
        spread = "" if gap.half_width is None else f" \u00b1 {100 * gap.half_width:.1f}"
        text += (
            f" The oracle, which draws among the unflawed, is {100 * gap.mean:.1f}{spread} points ahead of {RANDOM}."
        )
        if is_clear(gap):
            text += " Closure is the share of this that a selector gains, with a 95 % bootstrap interval over trials."
        else:
            text += f" That is not clearly more than {100 * CLEAR_GAP:g} point, so no closure is stated."
    return escape(text)


def _explain_opinions(world: World) -> str:
    noisy = any(one.run.noise_shown for one in world.analyses)
    within = ", with noise where only noisy averages are on record" if noisy else ", from 0 to 1"
    text = f"An opinion is a client's score of the trained model on its own test data{within}."
    if any(one.run.told_gains for one in world.analyses):
        text += (
            " Selectors were told what a slot gained against what was to be expected (0.5 + gain), not the average "
            "opinion, which rises with any cohort; curves and tables show the average opinion."
        )
    return text


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
