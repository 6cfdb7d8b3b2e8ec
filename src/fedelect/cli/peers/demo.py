"""`fedelect peers demo`: a federation of real processes on this machine, from keys to report."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from fedelect.cli.load import load_config, load_data
from fedelect.cli.peers.init import sized
from fedelect.cli.tables import print_summary
from fedelect.records import read_table
from fedelect.report import write_report

if TYPE_CHECKING:
    from fedelect.runtime.demo import Held

SHOWN = 12


def demo(
    clients: Annotated[int, typer.Option(help="Peers, a process each.")] = 20,
    slots: Annotated[int, typer.Option(help="Slots to play.")] = 30,
    scenario: Annotated[str, typer.Option(help="Preset or TOML file with a linear model.")] = "digits",
    seed: Annotated[int, typer.Option(help="The one seed.")] = 1,
    rule: Annotated[str, typer.Option(help="How they elect: bp-ucb, or bp-gp (docs/SELECTORS.md).")] = "bp-ucb",
    faults: Annotated[int, typer.Option(help="Peers that may fail in a slot while the others still decide.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder to make; it must not hold anything.")] = Path("runs/peers"),
) -> None:
    """Start real peers on this machine, let them elect who trains, slot by slot, and write a report.

    This process plays the FL server: it trains, and learns each cohort from a certificate that it verifies.
    """
    from fedelect.runtime.demo import Demo, play_demo

    console = Console()
    config = sized(load_config(scenario), clients, None)
    view = _View(slots)
    with Live(view.table("starting the peers"), console=console, refresh_per_second=4) as live:

        def progress(held: "Held", training: object) -> None:
            view.add(held)
            live.update(view.table(f"slot {min(held.slot, slots)} of {slots}"))

        try:
            folder = play_demo(
                Demo(config=config, slots=slots, seed=seed, rule=rule, faults=faults),
                load_data(config, scenario),
                out,
                command=shlex.join(["fedelect", *sys.argv[1:]]),
                progress=progress,
            )
        except KeyboardInterrupt:
            console.print("stopped; no peer is left running", highlight=False)
            raise typer.Exit(130) from None
    print_summary(read_table(folder), console)
    page = write_report(folder, out / "report.html")
    console.print(f"what lies where: {out / 'README.md'}", highlight=False, soft_wrap=True)
    console.print(f"open the report: {page}", highlight=False, soft_wrap=True)


class _View:
    """The last elections, as the server sees them."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._rows: list[tuple[str, str, str, str]] = []

    def add(self, held: "Held") -> None:
        if held.slot > self._slots:
            return  # the last model is only judged
        certificate = held.certificate
        cohort = " ".join(map(str, certificate.cohort)) if certificate is not None else f"skipped: {held.reason}"
        signed = str(len(certificate.signatures)) if certificate is not None else "-"
        self._rows.append((str(held.slot), cohort, signed, f"{held.seconds:.2f}"))

    def table(self, title: str) -> Table:
        table = Table(title=title)
        for name in ("slot", "elected", "signatures", "seconds"):
            table.add_column(name, justify="left" if name == "elected" else "right")
        for row in self._rows[-SHOWN:]:
            table.add_row(*row)
        return table
