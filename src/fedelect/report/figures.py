"""Figures for a paper: one column wide, readable in grey, drawn by matplotlib from the same analyses as the page."""

import functools
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from fedelect._imports import require_extras
from fedelect.equations.intervals import mean_band
from fedelect.errors import ConfigurationError, RunError
from fedelect.report.analysis import (
    ACCURACY,
    DIFFERENCE,
    FLAWED,
    OPINION,
    REGRET,
    RUNNING_MEAN,
    RunAnalysis,
    Source,
    analyse_runs,
    load_runs,
)
from fedelect.report.chart_data import client_positions, selection_shares
from fedelect.report.run_data import ALL_CLIENTS
from fedelect.report.style import LIGHT_COLOURS, deal_line_styles
from fedelect.vocabulary import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Format = Literal["pdf", "svg", "png"]
"""Kinds of files that figures are written as."""

COLUMN_INCHES = 3.4
"""Width of a column in most two-column papers."""

_CURVES = {
    OPINION: "mean opinion",
    RUNNING_MEAN: "running mean of opinions",
    REGRET: "regret",
    ACCURACY: "clean accuracy",
    DIFFERENCE: "clean accuracy minus random's",
    FLAWED: "flawed share of the elected",
}
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
_MARKERS = "os^Dv<>P"
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo", "----")
_SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "grid.color": "#cccccc",
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,  # letters stay letters, which journals ask for
    "svg.fonttype": "none",
    "svg.hashsalt": "fedelect",
    "savefig.dpi": 300,
    "text.parse_math": False,  # a label with dollar signs is no formula
}


def write_figures(run: Source, folder: str | os.PathLike[str], *, format: str = "pdf") -> list[Path]:
    """Write a run's figures, each to a file of its own: the curves, who was elected, the map.

    Args:
        run: A run in memory, or the folder of one.
        folder: Where the files go; made if it is not there.
        format: "pdf", "svg" or "png".

    Returns:
        The files, in the order in which a paper would show them; fewer where a run has less to show.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ConfigurationError: There is no such format.
        RunError: Nothing is on record yet, or a file cannot be written.
    """
    if format not in get_args(Format):
        raise ConfigurationError(f"unknown format {format!r}; use one of {', '.join(get_args(Format))}")
    require_extras("drawing figures", matplotlib="lab")
    (analysis,) = analyse_runs(load_runs([run]))
    if not analysis.run.table.recorded:
        raise RunError("no slot of this run is on record, so there is nothing to draw; wait for the first")
    written = []
    for name, draw in _figures(analysis).items():
        path = Path(folder) / f"{name}.{format}"
        _save(path, draw, square=name == "map")
        written.append(path)
    return written


def _figures(analysis: RunAnalysis) -> "dict[str, Callable[[Axes], None]]":
    run = analysis.run
    figures: dict[str, Callable[[Axes], None]] = {"map": lambda axes: _map(axes, analysis)}
    for name, title in _CURVES.items():
        curves = analysis.curves.get(name, {})
        if any(not np.isnan(curve).all() for curve in curves.values()):
            figures[name.replace(" ", "_")] = functools.partial(
                _curves, analysis=analysis, curves=curves, vertical=title
            )
    if run.beliefs:
        beliefs = {label: whose[ALL_CLIENTS] for label, whose in run.beliefs.items()}
        figures["beliefs"] = lambda axes: _curves(axes, analysis=analysis, curves=beliefs, vertical="mean belief")
    figures["elections"] = lambda axes: _elections(axes, analysis)
    return figures


def _save(path: Path, draw: "Callable[[Axes], None]", *, square: bool) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        height = COLUMN_INCHES if square else 0.72 * COLUMN_INCHES
        figure = Figure(figsize=(COLUMN_INCHES, height), layout="constrained")
        draw(figure.add_subplot())
        # Without dates, so that the same run gives the same file.
        dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[path.suffix[1:]]
        content = io.BytesIO()  # a full disk then stops a plain write, not a library in the middle of its work
        figure.savefig(content, format=path.suffix[1:], metadata=dates)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.getvalue())
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}; name another folder by --out") from error


def _curves(axes: "Axes", *, analysis: RunAnalysis, curves: dict[str, Floats], vertical: str) -> None:
    styles = deal_line_styles(analysis.run.header.labels)
    for position, label in enumerate(analysis.run.header.labels):
        band = mean_band(curves[label]) if label in curves else None
        if band is None or np.isnan(band.mean).all():
            continue
        slots = np.arange(1.0, band.mean.size + 1.0)
        colour = LIGHT_COLOURS[styles[label].colour]
        axes.plot(
            slots,
            band.mean,
            color=colour,
            linestyle=_DASHES[styles[label].dash],
            marker=_MARKERS[position % len(_MARKERS)],
            markersize=3.0,
            markevery=(min(position, slots.size - 1), max(slots.size // 8, 1)),
            label=label,
        )
        low, high = band.mean - band.half_width, band.mean + band.half_width
        axes.fill_between(slots, low, high, color=colour, alpha=0.18, linewidth=0)
    if vertical == "regret":
        _bounds(axes, analysis)
    axes.set_xlabel("slot")
    axes.set_ylabel(vertical)
    axes.grid(visible=True)
    _whole_numbers(axes)
    _legend(axes)


def _bounds(axes: "Axes", analysis: RunAnalysis) -> None:
    """Bounds that say something are drawn; those above T R_max are left to the page, which says so."""
    for bound in analysis.bounds:
        if not bound.at_end.vacuous:
            slots = analysis.run.thinning.curve_slots
            axes.plot(slots, bound.curve, color="black", linewidth=0.8, linestyle=":", label=bound.at_end.theorem)


def _elections(axes: "Axes", analysis: RunAnalysis) -> None:
    header = analysis.run.header
    width, styles = 0.84 / len(header.labels), deal_line_styles(header.labels)
    for position, label in enumerate(header.labels):
        shares = selection_shares(analysis.run.table.selectors[label])
        axes.bar(
            np.arange(header.clients) + (position - (len(header.labels) - 1) / 2.0) * width,
            shares,
            width,
            color=LIGHT_COLOURS[styles[label].colour],
            alpha=0.95 if position % 2 == 0 else 0.5,  # dark and light in turn
            hatch=_HATCHES[position % len(_HATCHES)],
            edgecolor="black",
            linewidth=0.3,
            label=label,
        )
    axes.set_xlabel("client")
    axes.set_ylabel("share of slots elected")
    _whole_numbers(axes)
    _legend(axes)


def _whole_numbers(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _legend(axes: "Axes") -> None:
    """Above the drawing, where it hides nothing."""
    names = axes.get_legend_handles_labels()[1]
    columns = 2 if max(map(len, names), default=0) < 26 else 1
    axes.figure.legend(loc="outside upper center", ncols=columns, frameon=False)


def _map(axes: "Axes", analysis: RunAnalysis) -> None:
    """Where the clients are, how they are linked, and how often the first selector elected each."""
    run = analysis.run
    positions, (left, bottom, right, top), known = client_positions(run.header)
    for one, other in run.thinning.map_links:
        axes.plot(*positions[[one, other]].T, color="#bbbbbb", linewidth=0.4, zorder=1)
    label = run.header.labels[0]
    shares = selection_shares(run.table.selectors[label])
    sizes = np.ones(run.header.clients) if run.header.sizes is None else np.array(run.header.sizes, dtype=np.float64)
    area = 20.0 + 130.0 * sizes / max(float(sizes.max()), 1.0)
    dots = axes.scatter(
        positions[:, 0], positions[:, 1], s=area, c=shares, cmap="cividis", edgecolors="black", linewidths=0.5, zorder=3
    )
    axes.scatter([(left + right) / 2], [(bottom + top) / 2], marker="s", s=60, c="black", zorder=2)
    axes.annotate("server", ((left + right) / 2, (bottom + top) / 2), (0, -11), textcoords="offset points", ha="center")
    if run.header.clients <= 60:
        for client, (x, y) in enumerate(positions.tolist()):
            axes.annotate(str(client), (x, y), (5, 3), textcoords="offset points", fontsize=6, zorder=4)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_aspect("equal")
    if known:
        axes.set_xlabel("km")
    else:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel("places not on record")
    figure = axes.figure
    figure.colorbar(dots, ax=axes, label=f"share of slots elected by {label}", shrink=0.8)
