"""One style for all figures, footers that state their sources, and SVG that is byte for byte the same for the same
results.

Every method of selection has its own colour, line and marker, so that figures can be read in grey and compared with
each other. The colours are those of Okabe and Ito, safe for colour-blind readers.
"""

import importlib.util
import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedelect.equations.intervals import Interval, mean_band
from fedelect.errors import MissingExtraError
from fedelect.records.files import make_folder, replace_file
from fedelect.vocabulary import Floats
from paper.catalogue import Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "fedelect",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same widths everywhere
    "font.size": 10,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,  # no grid over bars and bands
    "grid.color": "#d9dfe4",
    "grid.linewidth": 0.6,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_PAPER_INK = "#333333"


@dataclass(frozen=True)
class LineStyle:
    """How a series is drawn."""

    colour: str
    line: Any
    marker: str


OPTIMAL_LOOK = LineStyle("#000000", "-", "*")
QUICK_INIT_LOOK = LineStyle("#0072b2", "-", "o")
FRUGAL_LOOK = LineStyle("#0072b2", ":", "v")
"""Quick-Init UCB with another mu: the same method, so the same colour."""

BY_NUMBER_LOOK = LineStyle("#0072b2", (0, (3, 2)), "^")
"""Quick-Init UCB with ties broken by client number."""

BP_UCB_LOOK = LineStyle("#d55e00", "--", "s")
SUBSET_LOOK = LineStyle("#b4508c", "-.", "^")
ROUND_ROBIN_LOOK = LineStyle("#009e73", (0, (5, 1, 1, 1)), "D")
RANDOM_LOOK = LineStyle("#6b6b6b", ":", "x")

LINE_STYLES = (QUICK_INIT_LOOK, BP_UCB_LOOK, ROUND_ROBIN_LOOK, SUBSET_LOOK, RANDOM_LOOK, OPTIMAL_LOOK)
"""For series that are not methods, such as numbers of clients."""


@dataclass(eq=False)
class FigureCanvas:
    """A figure being drawn.

    Attributes:
        axes: Its panels, left to right or top to bottom.
        footer: Sentences printed below it.
        missing: Series that are not on file, so not drawn.
    """

    axes: "Sequence[Axes]"
    footer: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PaperMark:
    """A figure of the paper's that is marked on an axis.

    Attributes:
        name: Of what.
        value: The figure.
        word: What stands before the figure, such as "below".
    """

    name: str
    value: float
    word: str = ""

    def __str__(self) -> str:
        return f"paper, {self.name}: {self.word}{' ' if self.word else ''}{self.value:.4f}"


def require_matplotlib() -> None:
    """MissingExtraError if matplotlib, which draws, is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("drawing figures", "lab")


@contextmanager
def new_sheet(
    path: Path,
    *,
    title: str,
    panels: int = 1,
    width: float = 7.2,
    height: float = 4.6,
    stacked: bool = False,
    share_y: bool = False,
) -> Iterator[FigureCanvas]:
    """A figure that is written to `path` at the end of the block.

    Args:
        path: The SVG file.
        title: Its title.
        panels: How many panels, side by side.
        width: Inches.
        height: Inches, all panels together.
        stacked: The panels are below each other instead.
        share_y: They have one range of the vertical axis.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        rows, columns = (panels, 1) if stacked else (1, panels)
        first = figure.add_subplot(rows, columns, 1)
        others = [
            figure.add_subplot(rows, columns, number, sharey=first if share_y else None)
            for number in range(2, panels + 1)
        ]
        canvas = FigureCanvas([first, *others])
        yield canvas
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
        _print_footer(figure, canvas, width)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata=_NO_METADATA)
    # matplotlib ends some lines with a space, which version control frowns upon
    write_lines(path, [line.rstrip() for line in drawn.getvalue().decode().splitlines()])


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a file atomically, the same bytes on every platform. RunError if it cannot be written."""
    make_folder(path.parent)
    replace_file(path, ("\n".join(lines) + "\n").encode())


def _print_footer(figure: "Figure", canvas: FigureCanvas, width: float) -> None:
    sentences = [*canvas.footer, *([f"not run yet: {'; '.join(canvas.missing)}"] if canvas.missing else [])]
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, int(15.5 * width))]
    figure.supxlabel("\n".join(lines), fontsize=8, x=0.01, ha="left", color="#333333")


def trials_text(preset: str, trials: Sequence[int], slots: int | None) -> str:
    """What a figure was made from, such as "preset paper: 25 to 100 trials, T = 200".

    >>> trials_text("paper", [100, 25], 200)
    'preset paper: 25 to 100 trials, T = 200'
    """
    counts = sorted(set(trials))
    if not counts:
        said = "0 trials so far"
    elif len(counts) == 1:
        said = "1 trial" if counts == [1] else f"{counts[0]} trials"
    else:
        said = f"{counts[0]} to {counts[-1]} trials"
    return f"preset {preset}: {said}" + ("" if slots is None else f", T = {slots}")


def fewer(trials: Sequence[int], planned: int) -> str:
    """What a legend adds for a series with fewer trials than planned; empty if all are there.

    Args:
        trials: How many there are, at each of the series' points where these differ.
        planned: How many there are to be at each.

    >>> fewer([25], 100), fewer([50, 100], 100), fewer([100], 100)
    (' (25 of 100 trials)', ' (50 to 100 of 100 trials)', '')
    """
    least, most = min(trials), max(trials)
    if least >= planned:
        return ""
    return f" ({least} of {planned} trials)" if least == most else f" ({least} to {most} of {planned} trials)"


def interval_text(interval: Interval, digits: int) -> str:
    """Mean and half of the interval, if that is known.

    >>> interval_text(Interval(0.5, 0.01, 9), 3), interval_text(Interval(0.5, None, 1), 3)
    ('0.500 ± 0.010', '0.500')
    """
    spread = "" if interval.half_width is None else f" ± {interval.half_width:.{digits}f}"
    return f"{interval.mean:.{digits}f}{spread}"


def make_title(title: str, preset: Preset) -> str:
    """Return the title of a figure; it states if runs on the atlas are drawn."""
    return f"{title}, on the atlas" if preset.name.endswith("on the atlas") else title


def plot_band(axes: "Axes", values: Floats, style: LineStyle, label: str, *, first: int = 1) -> None:
    """The mean of (trials, T) values as a line with its 95 % band; x counts from `first`."""
    band = mean_band(values)
    plot_line(axes, band.mean, band.half_width, style, label, first=first)


def plot_line(axes: "Axes", mean: Floats, half_width: Floats, style: LineStyle, label: str, *, first: int = 1) -> None:
    """A line of (T,) means with a band of (T,) half widths around it; nan where unknown."""
    x = np.arange(first, first + len(mean))
    axes.plot(
        x,
        mean,
        color=style.colour,
        linestyle=style.line,
        linewidth=1.5,
        marker=style.marker,
        markersize=4,
        markevery=max(1, len(x) // 8),
        label=label,
    )
    axes.fill_between(x, mean - half_width, mean + half_width, color=style.colour, alpha=0.18, linewidth=0)


def mark_paper(axes: "Axes", marks: Sequence[PaperMark]) -> None:
    """Thin marks with the paper's own figures at the right edge, each with its name; call it when all else is drawn."""
    low, high = axes.get_ylim()
    low, high = min([low, *(mark.value for mark in marks)]), max([high, *(mark.value for mark in marks)])
    axes.set_ylim(low, high)
    room = 0.045 * (high - low)
    place = -np.inf
    along = axes.get_yaxis_transform()
    for mark in sorted(marks, key=lambda mark: mark.value):
        place = max(mark.value, place + room)
        axes.plot([0.97, 1.0], [mark.value] * 2, transform=along, color=_PAPER_INK, linewidth=0.8, clip_on=False)
        axes.annotate(
            str(mark),
            (1.0, mark.value),
            (1.02, place),
            xycoords=along,
            textcoords=along,
            fontsize=7,
            va="center",
            color=_PAPER_INK,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": _PAPER_INK},
            annotation_clip=False,
        )


def legend_below(axes: "Axes", *, columns: int = 2) -> None:
    """A legend under the axis' label, where it hides nothing."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure()
    assert figure is not None
    inches = ScaledTranslation(0.0, -0.5, figure.dpi_scale_trans)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=axes.transAxes + inches,
        borderaxespad=0.0,
        ncols=columns,
    )


def legend_beside(axes: "Axes") -> None:
    """A legend to the right of the axes, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)


def write_in_panel(axes: "Axes", text: str) -> None:
    """A panel that holds a sentence instead of a drawing."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color="#333333")
