"""Accuracy at the last slot against a setting: `PreTheta`, `PreNum`, `Pre2Slot`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedelect.equations.intervals import mean_interval
from fedelect.reproduce.blocks import Curves
from fedelect.reproduce.catalogue import Experiment, bp_ucb, frugal_quick_init, quick_init
from fedelect.reproduce.figures.sheet import (
    BP_UCB_LOOK,
    FRUGAL_LOOK,
    QUICK_INIT_LOOK,
    Look,
    Sheet,
    fewer,
    new_sheet,
    trials_text,
)
from fedelect.reproduce.readings import Evidence, final_accuracy, last_opinion
from fedelect.reproduce.series import Demand, Series, World
from fedelect.vocabulary import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_METHODS: tuple[tuple[str, Callable[[World], Series], Look, float], ...] = (
    ("Quick-Init UCB", quick_init, QUICK_INIT_LOOK, -0.08),
    ("Quick-Init UCB with μ = 0.01", frugal_quick_init, FRUGAL_LOOK, 0.0),
    ("BP-UCB", bp_ucb, BP_UCB_LOOK, 0.08),
)


def draw_by_theta(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`PreTheta`."""
    return _draw_sweep(one, evidence, folder, lambda world: f"{world.upload_probability:g}", "upload probability θ")


def draw_by_clients(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`PreNum`."""
    return _draw_sweep(one, evidence, folder, lambda world: f"{world.clients}", "number of clients N")


def draw_by_many_clients(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`Pre2Slot`: the paper says accuracy, not average accuracy, so both are drawn."""
    return _draw_sweep(
        one,
        evidence,
        folder,
        lambda world: f"{world.clients}",
        "number of clients N",
        readings=(("average accuracy up to slot T", final_accuracy), ("accuracy in slot T", last_opinion)),
        also="The paper calls Quick-Init UCB at N = 100 impossible; it is drawn here. The paper has μ = 1 for it and "
        "0.01 for BP-UCB; Quick-Init UCB with BP-UCB's μ is ours.",
    )


def _draw_sweep(
    one: Experiment,
    evidence: Evidence,
    folder: Path,
    setting: Callable[[World], str],
    axis: str,
    *,
    readings: Sequence[tuple[str, Callable[[Curves], Floats]]] = (("average accuracy up to slot T", final_accuracy),),
    also: str = "",
) -> list[Path]:
    path = folder / f"{one.name}.svg"
    demands = {demand.series: demand for demand in one.at(evidence.preset)}
    worlds = list(dict.fromkeys(series.world for series in demands))
    slots = next(iter(demands.values())).slots
    title = one.title.replace(f"T = {one.demands[0].slots}", f"T = {slots}")  # a preset may cut the runs short
    with new_sheet(path, title=title, panels=len(readings), width=7.2 if len(readings) == 1 else 12.0) as sheet:
        trials: list[int] = []
        for axes, (name, reading) in zip(sheet.axes, readings, strict=True):
            first = axes is sheet.axes[0]
            counts = _plot_sweep(sheet if first else None, axes, evidence, demands, worlds, reading)
            trials += counts
            axes.set_xticks(range(len(worlds)), [setting(world) for world in worlds])
            axes.set_xlim(-0.5, len(worlds) - 0.5)
            axes.set_xlabel(axis)
            axes.set_ylabel(name)
            if counts:
                axes.legend(loc="best")
        sheet.footer += [
            trials_text(evidence.preset.name, trials, slots),
            "Bars: 95 % intervals over trials. The paper shows this figure without stating numbers. " + also,
        ]
    return [path]


def _plot_sweep(
    sheet: Sheet | None,
    axes: "Axes",
    evidence: Evidence,
    demands: dict[Series, Demand],
    worlds: list[World],
    reading: Callable[[Curves], Floats],
) -> list[int]:
    trials = []
    for name, make, look, offset in _METHODS:
        if make(worlds[0]) not in demands:
            continue
        intervals, counts, planned = [], [], 0
        for world in worlds:
            demand = demands[make(world)]
            planned = demand.trials
            curves = evidence.curves(demand.series, slots=demand.slots, trials=demand.trials)
            intervals.append(mean_interval([] if curves is None else reading(curves)))  # nan breaks the line
            counts += [] if curves is None else [len(curves.trials)]
            if curves is None and sheet is not None:
                sheet.missing.append(f"{name} at {world.name}")
        if counts:
            axes.errorbar(
                [place + offset for place in range(len(worlds))],
                [interval.mean for interval in intervals],
                yerr=[interval.half_width or 0.0 for interval in intervals],
                color=look.colour,
                linestyle=look.line,
                linewidth=1.0,
                marker=look.marker,
                capsize=3,
                label=f"{name}{fewer(min(counts), planned)}",
            )
        trials += counts
    return trials
