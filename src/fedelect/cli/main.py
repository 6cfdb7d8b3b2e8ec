"""`fedelect`: the entry point. Errors are one line that says what to do; a traceback only with --debug."""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

import fedelect
from fedelect.cli import atlas, bench, data, demo, look, peers, reproduce, run, scenario
from fedelect.errors import FedelectError

app = typer.Typer(
    name="fedelect",
    help="Let the clients of a federated learning system elect who trains next.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("chaos")(peers.chaos)
app.command("peer")(peers.peer)
app.command("show")(look.show)
app.command("report")(look.report)
app.command("figures")(look.figures)
app.command("live")(look.live)
app.command("selectors")(look.selectors)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(peers.app, name="peers")
app.add_typer(scenario.app, name="scenario")
app.add_typer(data.app, name="data")
app.add_typer(atlas.app, name="atlas")
app.add_typer(bench.app, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedelect {fedelect.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and exit: 0 well, 1 an error of ours, 2 a misused command, 130 stopped by Ctrl-C."""
    # Your own selectors and opinion functions are found in the folder you stand in; last, so that they hide nothing.
    sys.path.append(os.getcwd())
    debug = "--debug" in sys.argv
    sys.argv[1:] = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app()
    except Exception as error:
        if debug:
            raise
        known = isinstance(error, FedelectError)
        text = str(error) if known else f"unexpected {type(error).__name__}: {error}; --debug shows where"
        Console(stderr=True).print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)
        sys.exit(1)
