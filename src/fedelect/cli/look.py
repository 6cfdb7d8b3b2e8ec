"""`fedelect show`, `report`, `figures`, `live` and `selectors`: look at what there is."""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedelect.cli.console import make_console
from fedelect.cli.tables import print_summary
from fedelect.records import read_table, summary_json, summary_table
from fedelect.records.run_folder import HEADER_NAME
from fedelect.report import write_figures, write_report
from fedelect.report.live import DEFAULT_PORT, LiveServer, RunWatcher
from fedelect.selectors import AbstractSelector, selector_families

RunFolder = Annotated[Path, typer.Argument(help="A run folder, finished or still running.")]
RunFolders = Annotated[
    list[Path], typer.Argument(help="A run folder, finished or still running; several side by side.")
]
Targets = Annotated[
    list[float] | None,
    typer.Option("--target", help="An opinion whose time to be reached is tabulated; several times for several."),
]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on. Others than this machine's own serve the page to everybody on the network."
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        help=f"Port to listen on, 0 for any free one; {DEFAULT_PORT} if left out and free.", show_default=False
    ),
]


def show(
    folder: RunFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON, for programs.")] = False,
) -> None:
    """Print a run as a table: mean opinion, gap to the best fixed cohort, who was elected."""
    run = read_table(folder)
    if as_json:
        typer.echo(json.dumps(summary_json(run), indent=2, allow_nan=False))
    else:
        print_summary(summary_table(run), make_console())


def report(
    folders: RunFolders,
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write; if left out RUN/report.html, or comparison.html here for several runs."),
    ] = None,
    target: Targets = None,
) -> None:
    """Write a run, or several side by side, as one self-contained HTML page."""
    usual = folders[0] / "report.html" if len(folders) == 1 else Path("comparison.html")
    path = write_report(folders, out or usual, targets=target)
    make_console().print(f"report: {path}", highlight=False, soft_wrap=True)


def figures(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Folder for the figures; RUN/figures if left out.")] = None,
    format: Annotated[str, typer.Option(help="pdf, svg or png.")] = "pdf",
) -> None:
    """Draw a run's figures for a paper: one column wide, readable in grey. Needs the extra `lab`."""
    for path in write_figures(folder, out or folder / "figures", format=format):
        make_console().print(f"figure: {path}", highlight=False, soft_wrap=True)


def live(
    folders: Annotated[list[Path], typer.Argument(help="A run folder; may be begun later. Several side by side.")],
    host: Host = "127.0.0.1",
    port: Port = None,
    target: Targets = None,
) -> None:
    """Serve the report of a run that is going on, in this or another process, and update it as slots finish."""
    with LiveServer(RunWatcher(folders, targets=target), host=host, port=port) as server:
        console = make_console()
        console.print(f"live: {server.address}  (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        for folder in folders:
            if not (folder / HEADER_NAME).exists():
                console.print(Text(f"waiting for a run to begin in {folder}"), soft_wrap=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


@contextlib.contextmanager
def serve_live(folder: Path, console: Console, *, wanted: bool, port: int | None) -> Iterator[None]:
    """Serve `folder` while the block runs, if it is wanted; at its end pages get the last word."""
    if not wanted:
        yield
        return
    with LiveServer(RunWatcher([folder]), port=port) as server:
        console.print(f"live: {server.address}", highlight=False, soft_wrap=True)
        yield
        server.wait_for_pages()


def selectors(
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON, for programs.")] = False,
) -> None:
    """List the selectors that can be named, by family, each with a line on when to choose it."""
    families = selector_families()
    if as_json:
        typer.echo(json.dumps(_list_selectors(families), indent=2))
        return
    table = Table()
    for column in ("name", "needs", "choose it when"):
        table.add_column(column)
    for family, classes in families.items():
        table.add_section()
        table.add_row(Text(family, style="bold"), "", "")
        for name, kind in classes.items():
            needs = ", ".join([*sorted(kind.needs), *(f"({name})" for name in sorted(kind.uses))])
            table.add_row(name, needs or "nothing", kind.advice)
    console = make_console()
    console.print(table)
    if any(kind.uses for classes in families.values() for kind in classes.values()):
        console.print("Signals in brackets are optional.")
    console.print(
        "`auto` is the recommended one for the scenario: in a warm start equal turns for all that look sound."
    )
    console.print("In simulations `peers` elects as bp-ucb does, message by message over a simulated network.")
    console.print("In simulations `oracle` draws at random among the unflawed clients, whom no selector can know.")
    console.print("Parameters: NAME:key=value, for example bp-ucb:exploration=0.01. Your own: module:Class.")


def _list_selectors(families: Mapping[str, Mapping[str, type[AbstractSelector]]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "family": family,
            "class": kind.__name__,
            "needs": sorted(kind.needs),
            "uses": sorted(kind.uses),
            "asks": sorted(kind.asks),
            "advice": kind.advice,
        }
        for family, classes in families.items()
        for name, kind in classes.items()
    ]
