"""Average accuracy against the slot: `cen_performance`, `decen_performance`, and the three panels of `1_2`."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedelect.equations.intervals import mean_interval
from fedelect.reproduce import paper
from fedelect.reproduce.catalogue import (
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
)
from fedelect.reproduce.figures.sheet import (
    BP_UCB_LOOK,
    LOOKS,
    OPTIMAL_LOOK,
    QUICK_INIT_LOOK,
    RANDOM_LOOK,
    ROUND_ROBIN_LOOK,
    SUBSET_LOOK,
    Look,
    Sheet,
    fewer,
    mark_paper,
    new_sheet,
    plot_band,
    say,
    trials_text,
)
from fedelect.reproduce.measurements.losses import Losses
from fedelect.reproduce.readings import Evidence, average_accuracy, final_accuracy
from fedelect.reproduce.series import Demand, Series, World
from fedelect.vocabulary import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_SLOTS = 200
"""T of the two figures for which the paper states accuracies."""

AVERAGE = "average accuracy (running mean)"
BANDS = "Bands: 95 % intervals over trials. The average counts the untrained model as its first term."

_NAMES: dict[Series, tuple[str, Look]] = {
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
        ("optimal", paper.QUICK_INIT + paper.QUICK_INIT_GAP),
        ("Quick-Init", paper.QUICK_INIT),
        ("random", paper.RANDOM_CENTRAL),
    ]
    return _draw_performance(one, evidence, folder, marks, renamed={})


def draw_democratized(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`decen_performance`."""
    marks = [
        ("optimal below", paper.BP_UCB + paper.BP_UCB_GAP),
        ("BP-UCB", paper.BP_UCB),
        ("random", paper.RANDOM_DEMOCRATIZED),
    ]
    return _draw_performance(one, evidence, folder, marks, renamed={quick_init(): "Quick-Init UCB (FL&FA, same seeds)"})


def _draw_performance(
    one: Experiment, evidence: Evidence, folder: Path, marks: list[tuple[str, float]], renamed: dict[Series, str]
) -> list[Path]:
    path = folder / f"{one.name}.svg"
    demands = one.at(evidence.preset)
    with new_sheet(path, title=one.title.rpartition(", T = ")[0] or one.title, width=8.4) as sheet:
        (axes,) = sheet.axes
        trials = []
        for demand in demands:
            name, look = _NAMES[demand.series]
            trials += _plot_accuracy(sheet, axes, evidence, demand, renamed.get(demand.series, name), look)
        axes.set_xlabel("slot t")
        axes.set_ylabel(AVERAGE)
        axes.margins(x=0.0)
        slots = demands[0].slots
        if slots == PAPER_SLOTS:
            mark_paper(axes, [(name, round(value, 4)) for name, value in marks])
        if trials:
            axes.legend(loc="lower right")
        sheet.footer += [trials_text(evidence.preset.name, trials, slots), BANDS]
        if slots != PAPER_SLOTS:
            sheet.footer.append(f"The paper's figures are for T = {PAPER_SLOTS} and are not marked.")
    return [path]


def _plot_accuracy(sheet: Sheet, axes: "Axes", evidence: Evidence, demand: Demand, name: str, look: Look) -> list[int]:
    """Plot a series if it is on file; returns its number of trials, if any."""
    curves = evidence.curves(demand.series, slots=demand.slots, trials=demand.trials)
    if curves is None:
        sheet.missing.append(name)
        return []
    count = len(curves.trials)
    label = f"{name}: {accuracy_text(final_accuracy(curves))}{fewer(count, demand.trials)}"
    plot_band(axes, average_accuracy(curves), look, label)
    return [count]


def accuracy_text(values: Floats) -> str:
    """Mean and half of the 95 % interval of (trials,) values."""
    interval = mean_interval(values)
    spread = "" if interval.half_width is None else f" ± {interval.half_width:.4f}"
    return f"{interval.mean:.4f}{spread}"


def draw_sets_and_sizes(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`1_2`: (a) training loss, (b) numbers of clients, (c) sets of clients."""
    path = folder / f"{one.name}.svg"
    by_series = {demand.series: demand for demand in one.at(evidence.preset)}
    with new_sheet(
        path, title="Who and how many train, by random selection or a fixed set", panels=3, width=15
    ) as sheet:
        loss_axes, size_axes, set_axes = sheet.axes
        trials = _plot_losses(loss_axes, evidence)
        for budget, look in zip(BUDGETS, LOOKS, strict=False):
            demand = by_series[Series(selector="random", world=World(budget=budget))]
            trials += _plot_accuracy(sheet, size_axes, evidence, demand, f"{budget} clients", look)
        everybody = Series(selector="random", world=World(budget=BUDGETS[-1]))
        sets = (
            (LAST_FIVE, "set 1: clients 16 to 20", SUBSET_LOOK),
            (RANDOM, "set 2: 5 at random", RANDOM_LOOK),
            (everybody, "set 3: all 20 clients", ROUND_ROBIN_LOOK),
            (OPTIMAL, "set 4: clients 1 to 5", OPTIMAL_LOOK),
        )
        for series, name, look in sets:
            trials += _plot_accuracy(sheet, set_axes, evidence, by_series[series], name, look)
        slots = by_series[RANDOM].slots
        for axes, letter in zip(sheet.axes, "abc", strict=True):
            axes.set_title(f"({letter})", loc="left", fontsize=10)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="best" if letter == "a" else "lower right")
        for axes in (size_axes, set_axes):
            axes.set_xlabel("slot t")
            axes.set_ylabel(AVERAGE)
        sheet.footer += [
            f"{trials_text(evidence.preset.name, trials, slots)}. (a): the first slot of each trial, mean over all "
            "clients of the loss on their data; dotted: over the samples of the clients selected.",
            BANDS,
        ]
    return [path]


def _plot_losses(axes: "Axes", evidence: Evidence) -> list[int]:
    axes.set_xlabel("communication round l")
    axes.set_ylabel("training loss (hinge)")
    measured = evidence.measurement("losses", Losses)
    if measured is None:
        say(axes, "not measured yet: losses")
        return []
    for (budget, losses), look in zip(sorted(measured.losses.items()), LOOKS, strict=False):
        values = np.array([one.objective for one in losses])
        short = fewer(len(values), min(TRIALS, evidence.preset.trials or TRIALS))
        plot_band(axes, values, look, f"{budget} clients: {accuracy_text(values[:, -1])}{short}")
        selected = np.array([one.selected for one in losses]).mean(axis=0)
        axes.plot(np.arange(1, len(selected) + 1), selected, color=look.colour, linestyle=":", linewidth=1.0)
    return [len(losses) for losses in measured.losses.values()]
