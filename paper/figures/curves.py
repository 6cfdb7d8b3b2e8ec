"""Average accuracy against the slot: `cen_performance`, `decen_performance`, and the three panels of `1_2`."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedelect.equations.intervals import mean_interval
from fedelect.vocabulary import Floats
from paper import published
from paper.catalogue import (
    BUDGETS,
    LAST_FIVE,
    OPTIMAL,
    RANDOM,
    ROUND_ROBIN,
    SUBSET_UCB,
    TRIALS,
    Experiment,
    bp_ucb,
    quick_init,
    random_of,
)
from paper.evidence import Evidence, average_accuracy, final_accuracy
from paper.figures.canvas import (
    BP_UCB_LOOK,
    LINE_STYLES,
    OPTIMAL_LOOK,
    QUICK_INIT_LOOK,
    RANDOM_LOOK,
    ROUND_ROBIN_LOOK,
    SUBSET_LOOK,
    FigureCanvas,
    LineStyle,
    PaperMark,
    fewer,
    interval_text,
    legend_below,
    legend_beside,
    make_title,
    mark_paper,
    new_sheet,
    plot_band,
    trials_text,
    write_in_panel,
)
from paper.measurements.losses import Losses
from paper.series import RunRequest, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_SLOTS = 200
"""T of the two figures for which the paper states accuracies."""

STEEP_SLOTS = 10
"""Slots, at most, in which the running mean climbs from its first term; the axis need not show them."""

STEP = 0.05
"""An axis begins at a multiple of this."""

AVERAGE = "average accuracy (running mean)"
BANDS = "Bands: 95 % intervals over trials. The average counts 0 as its first term."

_NAMES: dict[Series, tuple[str, LineStyle]] = {
    OPTIMAL: ("optimal: clients 1 to 5", OPTIMAL_LOOK),
    quick_init(): ("Quick-Init UCB", QUICK_INIT_LOOK),
    bp_ucb(): ("BP-UCB", BP_UCB_LOOK),
    SUBSET_UCB: ("conventional UCB", SUBSET_LOOK),
    ROUND_ROBIN: ("round-robin", ROUND_ROBIN_LOOK),
    RANDOM: ("random", RANDOM_LOOK),
}


def draw_central(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`cen_performance`."""
    marks = [
        PaperMark("optimal", published.QUICK_INIT + published.QUICK_INIT_GAP),
        PaperMark("Quick-Init", published.QUICK_INIT),
        PaperMark("random", published.RANDOM_CENTRAL),
    ]
    return _draw_performance(one, evidence, folder, marks, renamed={})


def draw_democratized(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`decen_performance`."""
    marks = [
        PaperMark("optimal", published.BP_UCB + published.BP_UCB_GAP, "below"),
        PaperMark("BP-UCB", published.BP_UCB),
        PaperMark("random", published.RANDOM_DEMOCRATIZED),
    ]
    return _draw_performance(one, evidence, folder, marks, renamed={quick_init(): "Quick-Init UCB (FL&FA, same seeds)"})


def _draw_performance(
    one: Experiment, evidence: Evidence, folder: Path, marks: list[PaperMark], renamed: dict[Series, str]
) -> list[Path]:
    path = folder / f"{one.name}.svg"
    requests = one.at(evidence.preset)
    slots = requests[0].slots
    title = make_title(one.title.rpartition(", T = ")[0] or one.title, evidence.preset)
    with new_sheet(path, title=title, width=8.4, height=5.2) as canvas:
        (axes,) = canvas.axes
        trials = []
        for request in requests:
            name, style = _NAMES[request.series]
            trials += _plot_accuracy(canvas, axes, evidence, request, renamed.get(request.series, name), style)
        axes.set_xlabel("slot t")
        axes.set_ylabel(AVERAGE)
        axes.margins(x=0.0)
        shown = marks if slots == PAPER_SLOTS else []
        begins = begin_axis(axes, "The vertical axis", [mark.value for mark in shown])
        mark_paper(axes, shown)
        if trials:
            legend_below(axes)
        canvas.footer += [trials_text(evidence.preset.name, trials, slots), f"{BANDS} {begins}"]
        if slots != PAPER_SLOTS:
            canvas.footer.append(f"The paper's figures are for T = {PAPER_SLOTS} and are not marked.")
    return [path]


def begin_axis(axes: "Axes", name: str, marks: Sequence[float] = ()) -> str:
    """Let the vertical axis begin where the curves are after their steep start, so that bands can be seen.

    Args:
        axes: With all curves, each from slot 1, and nothing else.
        name: What the sentence calls the axis.
        marks: Figures that must not be left out.

    Returns:
        A sentence that says so.
    """
    curves = [np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.get_lines()]
    if not curves:
        return ""
    after = min(STEEP_SLOTS, max(1, max(map(len, curves)) // 4)) - 1
    lowest = min([*marks, *(float(np.nanmin(curve[after:])) for curve in curves)])
    floor = round(STEP * math.floor(lowest / STEP + 1e-9), 2)
    axes.set_ylim(bottom=floor)
    hidden = max(int(np.flatnonzero(curve < floor).max(initial=-1)) + 1 for curve in curves)
    below = f"; some curves are below that up to slot {hidden}" if hidden else ""
    return f"{name} begins at {floor:.2f}{below}."


def _plot_accuracy(
    canvas: FigureCanvas, axes: "Axes", evidence: Evidence, request: RunRequest, name: str, style: LineStyle
) -> list[int]:
    """Plot a series if it is on file; returns its number of trials, if any."""
    curves = evidence.curves(request.series, slots=request.slots, trials=request.trials)
    if curves is None:
        canvas.missing.append(name)
        return []
    count = len(curves.trials)
    label = f"{name}: {accuracy_text(final_accuracy(curves))}{fewer([count], request.trials)}"
    plot_band(axes, average_accuracy(curves), style, label)
    return [count]


def accuracy_text(values: Floats) -> str:
    """Mean and half of the 95 % interval of (trials,) values."""
    return interval_text(mean_interval(values), 4)


def draw_sets_and_sizes(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`1_2`: (a) training loss, (b) numbers of clients, (c) sets of clients."""
    path = folder / f"{one.name}.svg"
    requests = {request.series: request for request in one.at(evidence.preset)}
    title = "Who and how many train, by random selection or a fixed set"
    with new_sheet(path, title=title, panels=3, width=8.4, height=9.6, stacked=True) as canvas:
        loss_axes, size_axes, set_axes = canvas.axes
        trials = _plot_losses(loss_axes, evidence)
        trials += _plot_sizes(canvas, size_axes, evidence, requests)
        trials += _plot_sets(canvas, set_axes, evidence, requests)
        for axes in (size_axes, set_axes):
            axes.set_xlabel("slot t")
            axes.set_ylabel(AVERAGE.replace(" (", "\n("))
        begins = [begin_axis(axes, f"The axis of {panel}") for axes, panel in ((size_axes, "(b)"), (set_axes, "(c)"))]
        names = ("(a) training loss in the first slot", "(b) numbers of clients, at random", "(c) sets of clients")
        for axes, name in zip(canvas.axes, names, strict=True):
            axes.set_title(name, loc="left", fontsize=10)
            if axes.get_legend_handles_labels()[0]:
                legend_beside(axes)
        canvas.footer += [
            f"{trials_text(evidence.preset.name, trials, requests[RANDOM].slots)}. Figures in the legends: at the last "
            "round or slot. (a): the first slot of each trial, mean over all clients of the loss on their data.",
            f"{BANDS} {' '.join(begins)}",
        ]
    return [path]


def _plot_sizes(
    canvas: FigureCanvas, axes: "Axes", evidence: Evidence, requests: dict[Series, RunRequest]
) -> list[int]:
    trials = []
    for budget, style in zip(BUDGETS, LINE_STYLES, strict=False):
        request = requests[random_of(budget)]
        trials += _plot_accuracy(canvas, axes, evidence, request, f"{budget} clients", style)
    return trials


def _plot_sets(canvas: FigureCanvas, axes: "Axes", evidence: Evidence, requests: dict[Series, RunRequest]) -> list[int]:
    everybody = random_of(BUDGETS[-1])
    sets = (
        (LAST_FIVE, "set 1: clients 16 to 20", SUBSET_LOOK),
        (RANDOM, "set 2: 5 at random", RANDOM_LOOK),
        (everybody, "set 3: all 20 clients", ROUND_ROBIN_LOOK),
        (OPTIMAL, "set 4: clients 1 to 5", OPTIMAL_LOOK),
    )
    trials = []
    for series, name, style in sets:
        trials += _plot_accuracy(canvas, axes, evidence, requests[series], name, style)
    return trials


def _plot_losses(axes: "Axes", evidence: Evidence) -> list[int]:
    axes.set_xlabel("communication round l")
    axes.set_ylabel("training loss (hinge)")
    measured = evidence.measurement("losses", Losses)
    if measured is None:
        write_in_panel(axes, "not measured yet: losses")
        return []
    for (budget, losses), style in zip(sorted(measured.losses.items()), LINE_STYLES, strict=False):
        values = np.array([one.objective for one in losses])
        short = fewer([len(values)], min(TRIALS, evidence.preset.trials or TRIALS))
        plot_band(axes, values, style, f"{budget} clients: {accuracy_text(values[:, -1])}{short}")
        selected = np.array([one.selected for one in losses]).mean(axis=0)
        axes.plot(np.arange(1, len(selected) + 1), selected, color=style.colour, linestyle=":", linewidth=1.2)
    label = "dotted: the same, over the\nsamples of those who train"
    axes.plot([], [], color=RANDOM_LOOK.colour, linestyle=":", linewidth=1.2, label=label)
    return [len(losses) for losses in measured.losses.values()]
