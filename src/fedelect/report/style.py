"""How the page looks: one style sheet, and the colours of the selectors in light and in dark.

The colours are those of Okabe and Ito, which people with the common kinds of colour blindness can tell apart,
without the yellow on white; lightened for the dark page. Further selectors repeat them with broken lines.
"""

LIGHT_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b4508c", "#c98a00", "#3a9bd9", "#6b6b6b", "#4b3aa8")
DARK_COLOURS = ("#56b4e9", "#ff8a4c", "#2fc59a", "#e59ac6", "#f0b93a", "#a8d8f5", "#b5b5b5", "#a99cf5")

_LAYOUT = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2126; --soft: #5b6670; --line: #d9dfe4;
  --panel: #f5f7f9; --accent: #0072b2; LIGHT }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --text: #e6eaee; --soft: #9aa6b0; --line: #323a42;
  --panel: #1c2227; --accent: #56b4e9; DARK } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p, figcaption, .hint { color: var(--soft); margin: .25rem 0 .75rem; }
p.warning { color: var(--text); border-left: 4px solid #d55e00; background: var(--panel); padding: .5rem .75rem; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: .5rem; margin: 1rem 0; }
dl.facts div { background: var(--panel); border-radius: .4rem; padding: .5rem .75rem; }
dl.facts dt { color: var(--soft); font-size: .8rem; }
dl.facts dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 52rem; border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .35rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { position: sticky; top: 0; z-index: 1; background: var(--panel); color: var(--soft); font-weight: 600; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--page); font-weight: 600;
  white-space: normal; overflow-wrap: anywhere; max-width: 14rem; }
.selectors th:first-child { min-width: 8.5rem; }
thead th:first-child { z-index: 2; min-width: 5rem; background: var(--panel); }
thead th { white-space: normal; vertical-align: bottom; min-width: 6rem; max-width: 12rem; overflow-wrap: anywhere; }
tr:last-child > * { border-bottom: 0; }
td .spread, th .kind { color: var(--soft); font-weight: 400; font-size: .85em; }
th .kind { display: block; }
td.heat { background: color-mix(in srgb, var(--accent) calc(var(--heat) * 55%), transparent); }
.key { display: inline-block; width: 1.5em; height: 0; border-top: .25em solid; vertical-align: middle;
  margin-right: .4em; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .5rem 0; list-style: none; }
.legend li { overflow-wrap: anywhere; }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption { color: var(--text); font-weight: 600; margin: 0; }
pre { background: var(--panel); border-radius: .4rem; padding: .75rem; overflow-x: auto; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; }
@media (max-width: 30rem) { body { font-size: 15px; padding: 1rem .75rem 3rem; } th, td { padding: .3rem .5rem; }
  th:first-child { max-width: 9rem; } }
@media print { .scroll { max-height: none; overflow: visible; } }
"""


def style_sheet() -> str:
    """The whole style sheet of the page."""
    return _LAYOUT.replace("LIGHT", _variables(LIGHT_COLOURS)).replace("DARK", _variables(DARK_COLOURS))


def colour(position: int) -> str:
    """The colour of the selector at `position`, as a CSS value."""
    return f"var(--series-{position % len(LIGHT_COLOURS)})"


def is_broken(position: int) -> bool:
    """Whether the selector's line is broken, because all colours are taken."""
    return position // len(LIGHT_COLOURS) % 2 == 1


def _variables(colours: tuple[str, ...]) -> str:
    return " ".join(f"--series-{number}: {value};" for number, value in enumerate(colours))
