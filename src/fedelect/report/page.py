"""The page: records in, one HTML file out, with nothing to load from anywhere else.

Data is embedded as JSON in which `<` is written as an escape, so that no text of a configuration can end the script
element it stands in; everything else of theirs is escaped where it is rendered. The page's own policy lets only the two
scripts run whose hashes it names.
"""

import base64
import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from fedelect.errors import RunError
from fedelect.records import RunRecords
from fedelect.report import numbers, sections, won
from fedelect.report.analysis import RunAnalysis, Source, analyse_runs, load_runs
from fedelect.report.chart_data import chart_data
from fedelect.report.html_parts import escape
from fedelect.report.style import colour_rules
from fedelect.report.worlds import World, group_worlds

_SCRIPTS = ("page.js", "charts.js", "curves.js", "bars.js", "frames.js", "map.js", "live.js")

_PARTS: dict[str, Callable[[Sequence[World]], str]] = {
    "won": won.render_won,
    "fairness": sections.render_fairness,
    "bounds": sections.render_bounds,
    "numbers": numbers.render_numbers,
    "provenance": sections.render_provenance,
    "thinned": sections.render_thinning,
}


def write_report(
    runs: Source | Sequence[Source], path: str | os.PathLike[str], *, targets: Sequence[float] | None = None
) -> Path:
    """Write the report of one or several runs, finished or not, as one self-contained HTML page.

    Args:
        runs: What to report: a run in memory or the folder of one, or several of them to show side by side.
        path: The file to write; its folder is made if it is not there.
        targets: Opinions whose time to be reached is tabulated; chosen from the runs if None.

    Returns:
        The file's path.

    Raises:
        RunError: A run cannot be read, or the file cannot be written.
    """
    sources = [runs] if isinstance(runs, RunRecords | str | os.PathLike) else list(runs)
    text = render(analyse_runs(load_runs(sources), targets))
    page = Path(path)
    temporary = page.with_name(page.name + ".new")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, page)
    except OSError as error:
        raise RunError(
            f"cannot write the report {page}: {error.strerror or error}; check free space and permissions, "
            f"or name another file"
        ) from error
    return page


def render(analyses: Sequence[RunAnalysis], *, live: bool = False) -> str:
    """Render the whole page. A live page asks its server for updates; see `render_update`."""
    charts, script = _asset("vendor/echarts.min.js"), _script()
    worlds = group_worlds(analyses)
    return Template(_asset("assets/page.html")).substitute(
        _render_parts(worlds, live=live),
        title=escape(sections.page_title(worlds)),
        policy=policy((charts, script), live=live),
        style=colour_rules() + _asset("assets/style.css"),
        data=embed_json({"live": live, **chart_data(worlds)}),
        charts=charts,
        script=script,
    )


def render_update(analyses: Sequence[RunAnalysis]) -> dict[str, Any]:
    """Changing parts of a live page, JSON-able: the charts' data, the parts that are text, the title."""
    worlds = group_worlds(analyses)
    return {
        **chart_data(worlds),
        "parts": _render_parts(worlds, live=True),
        "title": sections.page_title(worlds),
    }


def _render_parts(worlds: Sequence[World], *, live: bool) -> dict[str, str]:
    parts = {name: part(worlds) for name, part in _PARTS.items()}
    return {"facts": sections.render_facts(worlds, live=live), **parts}


def policy(scripts: Sequence[str], *, live: bool) -> str:
    """The content security policy: the scripts given, inline styles, and on a live page its own server; no more."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    connect = " connect-src 'self';" if live else ""
    rest = "base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline';{connect} {rest}"


def embed_json(value: object) -> str:
    r"""`value` as JSON that may stand inside a script element.

    >>> print(embed_json("</script>"))
    "\u003c/script>"
    """
    return msgspec.json.encode(value).decode("utf-8").replace("<", "\\u003c")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


@functools.cache
def _asset(name: str) -> str:
    return resources.files("fedelect.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _script() -> str:
    return '(() => {\n"use strict";\n' + "\n".join(_asset(f"assets/{name}") for name in _SCRIPTS) + "\n})();\n"
