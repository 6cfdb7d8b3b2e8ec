"""The colours of the page in light and in dark, and of the figures.

The selectors' colours are those of Okabe and Ito, which people with the common kinds of colour blindness can tell
apart, without the yellow on white; lightened for the dark page. Every line also has a pattern, for grey print.
"""

LIGHT_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b4508c", "#a87400", "#3a9bd9", "#6b6b6b", "#4b3aa8")
DARK_COLOURS = ("#56b4e9", "#ff8a4c", "#2fc59a", "#e59ac6", "#f0b93a", "#a8d8f5", "#b5b5b5", "#a99cf5")

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
