"""`fedelect bench users`: selectors in worlds like those of users."""

import dataclasses
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedelect._text import count
from fedelect._version import __version__
from fedelect.bench import CLAIM_TRIALS, USER_WORLDS, UsersBenchmark, Verdict, bench_users
from fedelect.cli.console import make_console
from fedelect.cli.figures_file import make_room, plain, write_figures
from fedelect.cli.long_jobs import show_progress
from fedelect.cli.tables import LONGEST_NAME
from fedelect.equations.closure import Closure
from fedelect.equations.intervals import Interval
from fedelect.records import ORACLE, RANDOM, MeasureSummary
from fedelect.selectors.catalogue import AUTO


def users(
    selector: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A selector, for example your own: module:Class; several times for more. {AUTO} if left out."
        ),
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option(help=f"A world: {', '.join(USER_WORLDS)}; several times for more. All if left out."),
    ] = None,
    trials: Annotated[int, typer.Option(help=f"Trials in each world; claims need at least {CLAIM_TRIALS}.")] = 10,
    seed: Annotated[int, typer.Option(help="The one seed.")] = 1,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    out_dir: Annotated[
        Path, typer.Option(help="Folder for the runs, one for each world; the same command goes on with them.")
    ] = Path("runs/users"),
    out: Annotated[Path | None, typer.Option(help="Write the figures as JSON, too.")] = None,
) -> None:
    """Let selectors play in small worlds like those of users, beside shuffled cycles, random and an oracle.

    Training is warm; clients are flawed, absent or not asked. No world was chosen by what a selector
    but random and the oracle does in it.
    """
    console = make_console()
    if out is not None:
        make_room(out)
    with show_progress("users' worlds", "worlds", console) as progress:
        found = bench_users(
            out_dir,
            selectors=selector or (AUTO,),
            worlds=world or (),
            trials=trials,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    print_worlds(found, console)
    print_verdicts(found, console)
    console.print(f"runs: {out_dir}; fedelect report shows one of them", highlight=False, soft_wrap=True)
    if out is not None:
        write_figures(out, {"fedelect": __version__, **plain(dataclasses.asdict(found))}, console)


def print_worlds(found: UsersBenchmark, console: Console) -> None:
    """The figures of every selector in every world, as one table."""
    table = Table(
        title=f"users' worlds: {count(found.slots, 'slot')}, {count(found.trials, 'trial')}",
        title_justify="left",
        caption=(
            "Accuracy on clean data over the last 10 slots, in %; minus random: points, same trials, ± 95 % interval. "
            "Closure: share of the way from random to the oracle, 95 % bootstrap interval; only where the oracle is "
            "clearly more than one point ahead. Low: 10th percentile over the clients, minus random. Slots: until "
            "random's accuracy at the end."
        ),
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    names = [world.name for world in found.worlds] + [f"  {one.label}" for one in found.verdicts]
    table.add_column("world\nselector", overflow="fold", min_width=min(LONGEST_NAME, max(map(len, names))))
    for head in ("accu-\nracy", "minus\nrandom", "closure", "low minus\nrandom", "slots", "flawed"):
        table.add_column(head, justify="right", no_wrap=True)
    for world in found.worlds:
        table.add_row(world.name, style="bold")
        for label, one in world.selectors.items():
            table.add_row(f"  {label}", *_cells(one), style="dim" if label in (RANDOM, ORACLE) else None)
        table.add_section()
    console.print(table, crop=False)


def _cells(one: MeasureSummary) -> list[str]:
    reached = one.slots_to_random
    return [
        f"{100 * one.final_accuracy.mean:.1f}",
        _points(one.difference),
        _closure(one.closure),
        _points(one.low_difference),
        "" if reached is None else f"{reached.slots.mean:.0f}",
        "" if math.isnan(one.flawed_share.mean) else f"{100 * one.flawed_share.mean:.0f} %",
    ]


def print_verdicts(found: UsersBenchmark, console: Console) -> None:
    """Mean closure and harm of each selector, which worlds they are from, and how far to trust them."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("selector", overflow="fold")
    for head in (
        f"mean closure\n{count(len(found.averaged), 'world')}",
        "worst minus random\nwhere nobody is flawed",
        "there",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for one in found.verdicts:
        table.add_row(one.label, _closure(one.closure), _points(one.harm), one.harm_world or "", style=_style(one))
    console.print(table)
    if found.unclear:
        console.print(
            f"not averaged, for the oracle is not clearly more than one point ahead: {', '.join(found.unclear)}",
            highlight=False,
        )
    if found.trials < CLAIM_TRIALS:
        console.print(
            f"{count(found.trials, 'trial')} can only give a first look; a claim needs at least {CLAIM_TRIALS}: "
            f"--trials {CLAIM_TRIALS}",
            highlight=False,
        )


def _style(one: Verdict) -> str | None:
    return "dim" if one.label in (RANDOM, ORACLE) else None


def _points(interval: Interval | None) -> str:
    """A difference of accuracies in points."""
    if interval is None or math.isnan(interval.mean):
        return ""
    spread = "" if interval.half_width is None else f" ±{100 * interval.half_width:.1f}"
    return f"{100 * interval.mean:+.1f}{spread}"


def _closure(one: Closure | None) -> str:
    return "" if one is None else f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"
