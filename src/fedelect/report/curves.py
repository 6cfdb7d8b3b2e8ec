"""Curves over slots as inline SVG, drawn by matplotlib.

Text and lines take their colours from the page, so that one drawing serves light and dark: each is drawn in a
stand-in colour that is then replaced by a CSS value. No text of the user's goes into a drawing.
"""

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from fedelect.equations.intervals import mean_band
from fedelect.errors import MissingExtraError
from fedelect.report.style import LIGHT_COLOURS, colour, is_broken
from fedelect.vocabulary import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010101"
_FAINT = "#020202"
_SERIES = tuple(f"#03{number:02x}03" for number in range(len(LIGHT_COLOURS)))
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
}


def draw_curves(curves: list[Floats], *, vertical: str, name: str) -> str:
    """An SVG element with the mean curve of each selector and its 95 % band over trials.

    Args:
        curves: For each selector (trials, T), nan where there is no value.
        vertical: What the vertical axis shows.
        name: A name for the drawing, unique on its page.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise MissingExtraError("the report", "lab") from error
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}):
        figure = Figure(figsize=(5.8, 3.9), layout="constrained")
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        axes.grid(visible=True)
        axes.set_xlabel("slot")
        axes.set_ylabel(vertical)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.margins(x=0.01)
        if all(values.shape[-1] == 1 for values in curves):
            axes.set_xlim(0.5, 1.5)
        for position, values in enumerate(curves):
            _draw_one(axes, position, values, of=len(curves))
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", transparent=True, metadata=dict.fromkeys(_METADATA))
    return _as_element(drawing.getvalue(), vertical)


_METADATA = ("Creator", "Date", "Format", "Type")


def _draw_one(axes: "Axes", position: int, values: Floats, *, of: int) -> None:
    band = mean_band(values)
    known = ~np.isnan(band.mean)
    if not known.any():
        return
    slots = np.arange(1.0, values.shape[-1] + 1.0)
    if slots.size == 1:
        # Side by side, where there is no line to tell the selectors apart.
        slots += (position - (of - 1) / 2.0) * (0.6 / of)
    stand_in = _SERIES[position % len(_SERIES)]
    # A value with a gap on both sides has no line to lie on: mark it.
    alone = known & ~np.r_[False, known[:-1]] & ~np.r_[known[1:], False]
    axes.plot(slots, band.mean, color=stand_in, linewidth=1.8, linestyle="--" if is_broken(position) else "-")
    axes.plot(slots[alone], band.mean[alone], color=stand_in, marker="o", linestyle="none")
    # Few trials make intervals that leave [0, 1], where no opinion can be: there the drawing ends.
    low = np.maximum(band.mean - band.half_width, np.minimum(band.mean, 0.0))
    high = np.minimum(band.mean + band.half_width, np.maximum(band.mean, 1.0))
    axes.fill_between(slots, low, high, where=~np.isnan(low), color=stand_in, alpha=0.18, linewidth=0)
    single = alone & ~np.isnan(low)
    axes.vlines(slots[single], low[single], high[single], color=stand_in, linewidth=1.8)


def _as_element(document: str, title: str) -> str:
    """The svg element alone, with the page's colours and no fixed size."""
    element = document[document.index("<svg") :].strip()
    head, _, body = element.partition(">")
    box = head[head.index("viewBox=") :].split('"')[1]
    for number, stand_in in enumerate(_SERIES):
        body = body.replace(stand_in, colour(number))
    body = body.replace(_INK, "var(--text)").replace(_FAINT, "var(--line)")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{box}" role="img" aria-label="{title} over slots">{body}'
    )
