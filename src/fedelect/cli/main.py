"""`fedelect`: the entry point. Errors are one line that says what to do; a traceback only with --debug.

A command's module is imported when the command is called: `fedelect --help` imports none of them.
"""

import importlib
import os
import sys
from typing import Annotated, Any

import click
import typer
from typer.core import TyperGroup

from fedelect._version import __version__
from fedelect.errors import FedelectError

COMMANDS = {
    "demo": (
        "demo:demo",
        "Run a users' world, then FL&FA and FL&DA with all selectors of the paper, and write their report.",
    ),
    "run": (
        "run:run",
        "Simulate a scenario: train, let the clients judge, let the selectors decide, record every slot.",
    ),
    "chaos": (
        "peers:chaos",
        "Inject crashes, message loss, partitions and Byzantine peers into elections; check that no slot is split.",
    ),
    "peer": (
        "peers:peer",
        "Run one peer: commands on standard input, notices on standard output, a line of JSON each (docs/PEERS.md).",
    ),
    "show": ("look:show", "Print a run as a table: mean opinion, gap to the best fixed cohort, who was elected."),
    "report": ("look:report", "Write a run, or several side by side, as one self-contained HTML page."),
    "figures": (
        "look:figures",
        "Draw a run's figures for a paper: one column wide, readable in grey. Needs the extra `lab`.",
    ),
    "live": (
        "look:live",
        "Serve the report of a run that is going on, in this or another process, and update it as slots finish.",
    ),
    "selectors": (
        "look:selectors",
        "List the selectors that can be named, by family, each with a line on when to choose it.",
    ),
    "peers": ("peers:app", "Real peers: found a federation, or see one at work on this machine."),
    "scenario": ("scenario:app", "Look at scenarios."),
    "data": ("data:app", "Get data sets."),
    "atlas": ("atlas:app", "Know what every cohort is worth."),
    "bench": ("bench:app", "Rank what fedelect offers."),
}
"""Command -> "module:attribute" (a function, or a `typer.Typer`) in fedelect.cli, and its line in `fedelect --help`."""


class _LazyGroup(TyperGroup):
    """The commands, each imported when it is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, line) in COMMANDS.items():
            self.add_command(click.Command(name, help=line))  # stands in for it in --help

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name), rest


def load_command(name: str) -> click.Command:
    """Import a command of `COMMANDS`."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(f"fedelect.cli.{module}"), attribute)
    parent = typer.Typer(add_completion=False, suggest_commands=False)
    parent.callback()(lambda: None)  # a group, also with one command in it
    if isinstance(command, typer.Typer):
        parent.add_typer(command, name=name)
    else:
        parent.command(name)(command)
    group = typer.main.get_command(parent)
    assert isinstance(group, click.Group)
    return group.commands[name]


app = typer.Typer(
    name="fedelect",
    cls=_LazyGroup,
    help="Let the clients of a federated learning system elect who trains next.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    suggest_commands=False,  # here and in `load_command`: click does, and both together ask twice
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedelect {__version__}")
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
    """Run the command line and exit."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run a command line and exit: 0 well, 1 an error of ours, 2 a misused command, 130 stopped by Ctrl-C."""
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
        if isinstance(error, MemoryError):
            text = f"not enough memory: {str(error) or 'none is left'}; take smaller numbers, or a larger machine"
        from rich.text import Text

        from fedelect.cli.console import make_console

        make_console(stderr=True).print(Text.assemble(("error:", "bold red"), " ", text), soft_wrap=True)
        sys.exit(1)
