"""The colours of the page in light and in dark, and of the figures.

The selectors' colours are those of Okabe and Ito, which people with the common kinds of colour blindness can tell
apart, without the yellow on white; lightened for the dark page. Every line also has a pattern, for grey print. The
last two colours are those of what all others are compared with: grey for random, black for the oracle.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fedelect.records import ORACLE, RANDOM

LIGHT_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b4508c", "#a87400", "#3a9bd9", "#4b3aa8", "#6b6b6b", "#1c2126")
DARK_COLOURS = ("#56b4e9", "#ff8a4c", "#2fc59a", "#e59ac6", "#f0b93a", "#a8d8f5", "#a99cf5", "#b5b5b5", "#e6eaee")

DASHES: tuple[tuple[int, ...], ...] = ((), (8, 4), (2, 3), (11, 3, 2, 3))
"""Patterns of lines: pixels on and off in turn; () is solid."""


class LineStyle(NamedTuple):
    """How a selector is drawn.

    Attributes:
        colour: Number of its colour.
        dash: Number of its pattern in `DASHES`.
    """

    colour: int
    dash: int


def deal_line_styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """Deal colours and patterns to labels in order; no two of up to 28 are alike. Random and oracle have their own.

    >>> deal_line_styles(["random", "a", "b", "a"])
    {'random': LineStyle(colour=7, dash=2), 'a': LineStyle(colour=0, dash=0), 'b': LineStyle(colour=1, dash=1)}
    """
    colours = len(LIGHT_COLOURS) - 2
    own = {RANDOM: LineStyle(colours, 2), ORACLE: LineStyle(colours + 1, 1)}
    styles: dict[str, LineStyle] = {}
    for label in dict.fromkeys(labels):
        dealt = len(styles.keys() - own.keys())
        styles[label] = own.get(label, LineStyle(dealt % colours, dealt % len(DASHES)))
    return styles


_LIGHT = {
    "page": "#ffffff",
    "text": "#1c2126",
    "soft": "#55606a",
    "line": "#d5dce2",
    "panel": "#f4f6f8",
    "accent": "#0072b2",
    "lit": "#d55e00",
}
_DARK = {
    "page": "#14181c",
    "text": "#e6eaee",
    "soft": "#a3afb9",
    "line": "#38424b",
    "panel": "#1d2329",
    "accent": "#56b4e9",
    "lit": "#ff8a4c",
}


def colour_rules() -> str:
    """The style rules that set the colours: as the system says, or as the page's switch says."""
    light, dark = _variables(_LIGHT, LIGHT_COLOURS), _variables(_DARK, DARK_COLOURS)
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-theme=light] {{ color-scheme: light; {light} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }} }}\n"
        f"@media print {{ :root {{ color-scheme: light; }} }}\n"
    )


def _variables(names: dict[str, str], series: tuple[str, ...]) -> str:
    pairs = [*names.items(), *((f"series-{number}", value) for number, value in enumerate(series))]
    return " ".join(f"--{name}: {value};" for name, value in pairs)
