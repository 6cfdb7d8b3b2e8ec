"""`fedelect peers demo`: a federation of real processes on this machine, from keys to report."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from fedelect._front import load_source, read_config
from fedelect._imports import require_extras
from fedelect.cli.console import make_console
from fedelect.cli.peers.init import resize
from fedelect.cli.tables import print_summary
from fedelect.errors import ConfigurationError
from fedelect.records import summary_table
from fedelect.report import write_report
from fedelect.scenario import Dataset


def demo(
    clients: Annotated[int, typer.Option(help="Peers, a process each.")] = 20,
    slots: Annotated[int, typer.Option(help="Slots to play.")] = 30,
    scenario: Annotated[str, typer.Option(help="Preset or TOML file with a linear model.")] = "digits",
    seed: Annotated[int, typer.Option(help="The one seed.")] = 1,
    rule: Annotated[str, typer.Option(help="How they elect: bp-ucb, or bp-gp (docs/theory/set-gp.md).")] = "bp-ucb",
    max_faulty: Annotated[int, typer.Option(help="Peers that may fail in a slot while the others still decide.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder to make; it must not hold anything.")] = Path("runs/peers"),
) -> None:
    """Start real peers on this machine, let them elect who trains, slot by slot, and write a report.

    This process plays the FL server: it trains, and learns each cohort from a certificate that it verifies.
    """
    config = resize(read_config(scenario), clients, None)
    data = {"sklearn": "lab"} if config.data.source == "digits" else {}
    require_extras("a federation of real peers", cryptography="peer", **data)
    from fedelect.cli.peers.view import PeersView
    from fedelect.runtime.demo import Demo, play_demo

    _, source = load_source(scenario)
    if not isinstance(source, Dataset):
        raise ConfigurationError(f"{scenario!r} is an atlas; peers train, so give a preset or a .toml file")
    console = make_console()
    view = PeersView(clients, slots)
    try:
        with Live(view, console=console, refresh_per_second=4):
            folder = play_demo(
                Demo(config=config, slots=slots, seed=seed, rule=rule, max_faulty=max_faulty),
                source,
                out,
                command=shlex.join(["fedelect", *sys.argv[1:]]),
                on_result=view.show_result,
                on_notice=view.show_notice,
            )
    except KeyboardInterrupt:
        console.print("stopped; no peer is left running", highlight=False)
        raise typer.Exit(130) from None
    print_summary(summary_table(folder), console)
    page = write_report(folder, out / "report.html")
    console.print(f"what lies where: {out / 'README.md'}", highlight=False, soft_wrap=True)
    console.print(f"open the report: {page}", highlight=False, soft_wrap=True)
