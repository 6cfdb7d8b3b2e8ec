"""The page: records in, one HTML file out, with nothing to load from anywhere else."""

import os
from pathlib import Path
from string import Template

from fedelect.errors import RunError
from fedelect.records import Run, RunTable, opinion_curves, running_mean_curves, summarise, tabulate
from fedelect.report.curves import draw_curves
from fedelect.report.sections import escape, facts, legend, provenance, selections_table, selectors_table, title_of
from fedelect.report.style import style_sheet

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>$style</style>
</head>
<body>
<header><h1>$title</h1>$facts</header>
<main>$body</main>
<footer><h2>Where it comes from</h2>$provenance</footer>
</body>
</html>
""")


def write_report(run: Run | RunTable, path: str | os.PathLike[str]) -> Path:
    """Write the report of `run`, finished or not, as one self-contained HTML page.

    Args:
        run: What to report; the table of a run too large to hold will do (`fedelect.records.read_table`).
        path: The file to write; its folder is made if it is not there.

    Returns:
        The file's path.

    Raises:
        MissingExtraError: matplotlib is not installed.
        RunError: The file cannot be written.
    """
    page = Path(path)
    text = _render(tabulate(run))
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


def _render(table: RunTable) -> str:
    return _PAGE.substitute(
        title=escape(title_of(table.header)),
        style=style_sheet(),
        facts=facts(table),
        body=_body(table),
        provenance=provenance(table.header),
    )


def _body(table: RunTable) -> str:
    if not table.recorded:
        return "<h2>Nothing to show yet</h2><p>No slot is on record so far.</p>"
    summaries = summarise(table)
    labels = [one.label for one in summaries]
    opinion = draw_curves(list(opinion_curves(table).values()), vertical="mean opinion", name="opinion")
    running = draw_curves(list(running_mean_curves(table).values()), vertical="running mean", name="running")
    spread = " \u00b1 and bands are 95 % intervals over trials." if table.header.trials > 1 else ""
    return (
        f"<h2>Selectors</h2><p>Opinions are the clients' mean score of the trained model, from 0 to 1.{spread}</p>"
        f"{selectors_table(table, summaries)}"
        f"<h2>Opinion over slots</h2>{legend(labels)}"
        f'<div class="curves"><figure><figcaption>In each slot</figcaption>{opinion}</figure>'
        f"<figure><figcaption>Mean of all slots so far</figcaption>{running}</figure></div>"
        f"<h2>Who was elected</h2><p>Slots for which each client was elected, on average over trials.</p>"
        f"{selections_table(table.header, summaries)}"
    )
