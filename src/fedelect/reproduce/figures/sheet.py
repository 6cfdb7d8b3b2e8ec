"""The paper to draw on: one look for all figures, footers that say what a figure was made from, SVG that is the same
byte for byte whenever the results are.

Every method of selection has its own colour (of Okabe and Ito, safe for colour-blind readers), line and marker, so
that figures can be read in grey and compared with each other.
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedelect.equations.intervals import mean_band
from fedelect.errors import MissingExtraError
from fedelect.vocabulary import Floats

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
    "grid.color": "#d9dfe4",
    "grid.linewidth": 0.6,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_PAPER_INK = "#333333"


@dataclass(frozen=True)
class Look:
    """How a series is drawn."""

    colour: str
    line: Any
    marker: str


OPTIMAL_LOOK = Look("#000000", "-", "*")
QUICK_INIT_LOOK = Look("#0072b2", "-", "o")
FRUGAL_LOOK = Look("#0072b2", ":", "v")
"""Quick-Init UCB with another mu: the same method, so the same colour."""

BP_UCB_LOOK = Look("#d55e00", "--", "s")
SUBSET_LOOK = Look("#b4508c", "-.", "^")
ROUND_ROBIN_LOOK = Look("#009e73", (0, (5, 1, 1, 1)), "D")
RANDOM_LOOK = Look("#6b6b6b", ":", "x")

LOOKS = (QUICK_INIT_LOOK, BP_UCB_LOOK, ROUND_ROBIN_LOOK, SUBSET_LOOK, RANDOM_LOOK, OPTIMAL_LOOK)
"""For series that are not methods, such as numbers of clients."""


@dataclass(eq=False)
class Sheet:
    """A figure being drawn.

    Attributes:
        axes: Its panels, left to right.
        footer: Sentences printed below it.
        missing: What could not be drawn, for it is not on file.
    """

    axes: "Sequence[Axes]"
    footer: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@contextmanager
def new_sheet(path: Path, *, title: str, panels: int = 1, width: float = 7.2, height: float = 4.6) -> Iterator[Sheet]:
    """A figure that is written to `path` at the end of the block.

    Args:
        path: The SVG file.
        title: Its title.
        panels: How many panels, side by side.
        width: Inches.
        height: Inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing figures", "lab") from error
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        sheet = Sheet([figure.add_subplot(1, panels, number) for number in range(1, panels + 1)])
        yield sheet
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
        _print_footer(figure, sheet, width)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata=_NO_METADATA)
    # matplotlib ends some lines with a space, which version control frowns upon
    path.write_text("\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()) + "\n")


def _print_footer(figure: "Figure", sheet: Sheet, width: float) -> None:
    sentences = [*sheet.footer, *([f"not run yet: {'; '.join(sheet.missing)}"] if sheet.missing else [])]
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


def fewer(trials: int, planned: int) -> str:
    """What a legend adds for a series with fewer trials than planned; empty if all are there.

    >>> fewer(25, 100), fewer(100, 100)
    (' (25 of 100 trials)', '')
    """
    return "" if trials >= planned else f" ({trials} of {planned} trials)"


def plot_band(axes: "Axes", values: Floats, look: Look, label: str, *, first: int = 1) -> None:
    """The mean of (trials, T) values as a line with its 95 % band; x counts from `first`."""
    band = mean_band(values)
    plot_line(axes, band.mean, band.half_width, look, label, first=first)


def plot_line(axes: "Axes", mean: Floats, half_width: Floats, look: Look, label: str, *, first: int = 1) -> None:
    """A line of (T,) means with a band of (T,) half widths around it; nan where unknown."""
    x = np.arange(first, first + len(mean))
    axes.plot(
        x,
        mean,
        color=look.colour,
        linestyle=look.line,
        linewidth=1.5,
        marker=look.marker,
        markersize=4,
        markevery=max(1, len(x) // 8),
        label=label,
    )
    axes.fill_between(x, mean - half_width, mean + half_width, color=look.colour, alpha=0.18, linewidth=0)


def mark_paper(axes: "Axes", marks: Sequence[tuple[str, float]]) -> None:
    """Thin marks with the paper's own figures at the right edge, each with its name; call it when all else is drawn."""
    low, high = axes.get_ylim()
    low, high = min([low, *(value for _, value in marks)]), max([high, *(value for _, value in marks)])
    axes.set_ylim(low, high)
    room = 0.045 * (high - low)
    place = -np.inf
    along = axes.get_yaxis_transform()
    for name, value in sorted(marks, key=lambda mark: mark[1]):
        place = max(value, place + room)
        axes.plot([0.97, 1.0], [value, value], transform=along, color=_PAPER_INK, linewidth=0.8, clip_on=False)
        axes.annotate(
            f"paper, {name}: {value:g}",
            (1.0, value),
            (1.02, place),
            xycoords=along,
            textcoords=along,
            fontsize=7,
            va="center",
            color=_PAPER_INK,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": _PAPER_INK},
            annotation_clip=False,
        )


def say(axes: "Axes", text: str) -> None:
    """A panel that holds a sentence instead of a drawing."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color="#333333")
