"""Accuracy against a setting of the scenario: `PreTheta`, `PreNum`, `Pre2Slot`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedelect.equations.intervals import mean_interval
from fedelect.vocabulary import Floats
from paper.blocks import Curves
from paper.catalogue import CLIENT_COUNTS, Experiment, bp_ucb, frugal_quick_init, quick_init
from paper.evidence import Evidence, final_accuracy, last_opinion
from paper.figures.canvas import (
    BP_UCB_LOOK,
    FRUGAL_LOOK,
    QUICK_INIT_LOOK,
    LineStyle,
    fewer,
    legend_below,
    new_sheet,
    trials_text,
)
from paper.series import RunRequest, Series, World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_METHODS: tuple[tuple[str, Callable[[World], Series], LineStyle, float], ...] = (
    ("Quick-Init UCB", quick_init, QUICK_INIT_LOOK, -0.08),
    ("Quick-Init UCB with μ = 0.01", frugal_quick_init, FRUGAL_LOOK, 0.0),
    ("BP-UCB", bp_ucb, BP_UCB_LOOK, 0.08),
)

_Reading = Callable[[Curves], Floats]
_AVERAGE: tuple[str, _Reading] = ("average accuracy up to slot T", final_accuracy)
_LAST: tuple[str, _Reading] = ("accuracy in slot T", last_opinion)


@dataclass(frozen=True)
class _Setting:
    """What is varied.

    Attributes:
        symbol: Its sign.
        name: Its name, for the axis.
        value: Its value in a world.
    """

    symbol: str
    name: str
    value: Callable[[World], float]

    def text(self, world: World) -> str:
        return f"{self.value(world):g}"


_THETA = _Setting("θ", "upload probability θ", lambda world: world.upload_probability)
_CLIENTS = _Setting("N", "number of clients N", lambda world: world.clients)


@dataclass(frozen=True)
class _Line:
    """A method in all worlds.

    Attributes:
        name: Of the method.
        style: How it is drawn.
        offset: By how much it is set apart from the others.
        planned: Trials planned in each world.
        curves: What is on file, by world; None where nothing is.
    """

    name: str
    style: LineStyle
    offset: float
    planned: int
    curves: dict[World, Curves | None]

    @property
    def trials(self) -> list[int]:
        return [len(curves.trials) for curves in self.curves.values() if curves is not None]


def draw_by_theta(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`PreTheta`."""
    return _draw_sweep(one, evidence, folder, _THETA, title=one.title)


def draw_by_clients(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`PreNum`."""
    return _draw_sweep(one, evidence, folder, _CLIENTS, title=one.title)


def draw_by_many_clients(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`Pre2Slot`: the paper says accuracy, not average accuracy, so both are drawn."""
    largest = next(
        request for request in one.requests if request.series == quick_init(World(clients=CLIENT_COUNTS[-1]))
    )
    on_file = evidence.curves(largest.series, slots=largest.slots, trials=largest.trials) is not None
    return _draw_sweep(
        one,
        evidence,
        folder,
        _CLIENTS,
        title=one.title.partition(", ")[0],  # what follows would promise a point that may not be on file yet
        readings=(_AVERAGE, _LAST),
        also=f"The paper calls Quick-Init UCB at N = {CLIENT_COUNTS[-1]} impossible; "
        + ("it is drawn here." if on_file else "here it is not run yet."),
    )


def _draw_sweep(
    one: Experiment,
    evidence: Evidence,
    folder: Path,
    setting: _Setting,
    *,
    title: str,
    readings: Sequence[tuple[str, _Reading]] = (_AVERAGE,),
    also: str = "",
) -> list[Path]:
    path = folder / f"{one.name}.svg"
    requests = {request.series: request for request in one.at(evidence.preset)}
    worlds = list(dict.fromkeys(series.world for series in requests))
    slots = next(iter(requests.values())).slots
    lines = _lines(evidence, requests, worlds)
    title = title.replace(f"T = {one.requests[0].slots}", f"T = {slots}")  # a preset may cut the runs short
    width = 7.2 if len(readings) == 1 else 10.0
    with new_sheet(path, title=title, panels=len(readings), width=width, height=5.0, share_y=True) as canvas:
        for axes, (name, reading) in zip(canvas.axes, readings, strict=True):
            _plot_lines(axes, lines, worlds, reading)
            axes.set_xticks(range(len(worlds)), [setting.text(world) for world in worlds])
            axes.set_xlim(-0.5, len(worlds) - 0.5)
            axes.set_xlabel(setting.name)
            axes.set_ylabel(name)
        if any(line.trials for line in lines):
            legend_below(canvas.axes[0], columns=1)
        for line in lines:
            gaps = [setting.text(world) for world, curves in line.curves.items() if curves is None]
            canvas.missing += [f"{line.name} at {setting.symbol} = {', '.join(gaps)}"] if gaps else []
        ours = "The paper has μ = 1 for Quick-Init UCB and 0.01 for BP-UCB; Quick-Init UCB with BP-UCB's μ is ours."
        canvas.footer += [
            trials_text(evidence.preset.name, [count for line in lines for count in line.trials], slots),
            "Bars: 95 % intervals over trials. The vertical axis does not begin at 0. The paper shows this figure "
            "without stating numbers.",
            " ".join(filter(None, [also, ours if frugal_quick_init(worlds[0]) in requests else ""])),
        ]
    return [path]


def _lines(evidence: Evidence, requests: dict[Series, RunRequest], worlds: list[World]) -> list[_Line]:
    """The methods that are asked for."""
    lines = []
    for name, make, style, offset in _METHODS:
        if make(worlds[0]) not in requests:
            continue
        own = [requests[make(world)] for world in worlds]
        on_file = [evidence.curves(request.series, slots=request.slots, trials=request.trials) for request in own]
        curves = dict(zip(worlds, on_file, strict=True))
        lines.append(_Line(name, style, offset, max(request.trials for request in own), curves))
    return lines


def _plot_lines(axes: "Axes", lines: Sequence[_Line], worlds: list[World], reading: _Reading) -> None:
    most = max(line.planned for line in lines)
    for line in lines:
        if not line.trials:
            continue
        intervals = [mean_interval([] if curves is None else reading(curves)) for curves in line.curves.values()]
        fewest = f" ({line.planned} trials)" if line.planned < most else ""
        axes.errorbar(
            [place + line.offset for place in range(len(worlds))],
            [interval.mean for interval in intervals],  # nan breaks the line
            yerr=[interval.half_width or 0.0 for interval in intervals],
            color=line.style.colour,
            linestyle=line.style.line,
            linewidth=1.0,
            marker=line.style.marker,
            capsize=3,
            label=f"{line.name}{fewer(line.trials, line.planned) or fewest}",
        )
