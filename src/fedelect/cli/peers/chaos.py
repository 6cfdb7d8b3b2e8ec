"""`fedelect chaos`: elections under injected faults, one run for each seed."""

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fedelect._text import count
from fedelect.cli.console import make_console
from fedelect.errors import ConfigurationError
from fedelect.testing.chaos import ChaosPlan, run_chaos


def chaos(
    seeds: Annotated[str, typer.Option(help="Which runs: FIRST:END (END not included), or one number.")] = "0:100",
    clients: Annotated[int, typer.Option(help="Peers in each run.")] = 7,
    slots: Annotated[int, typer.Option(help="Slots to elect for in each run.")] = 5,
    max_faulty: Annotated[int, typer.Option(help="Failing peers that the configuration tolerates.")] = 1,
    rule: Annotated[str, typer.Option(help="How cohorts are elected: bp-ucb or bp-gp.")] = "bp-ucb",
    byzantine: Annotated[int, typer.Option(help="Byzantine peers; at most --max-faulty.")] = 0,
    behaviour: Annotated[
        str | None, typer.Option(help="What Byzantine peers do; if left out, each draws two. A wrong one lists them.")
    ] = None,
    calm: Annotated[
        bool,
        typer.Option(
            "--calm",
            help="No loss, no partitions, at most --max-faulty peers crash or are Byzantine: "
            "all slots must be decided.",
        ),
    ] = False,
) -> None:
    """Inject crashes, message loss, partitions and Byzantine peers into elections; check that no slot is split.

    A run that violates a guarantee is named by its seed, and the exit code is 1.
    """
    plan = ChaosPlan(
        clients=clients,
        slots=slots,
        max_faulty=max_faulty,
        byzantine=byzantine,
        behaviour=behaviour,
        calm=calm,
        rule=rule,
    )
    numbers = _numbers(seeds)
    console = make_console()
    decided = skipped = split = proven = broken = 0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        for seed in bar.track(numbers, description="chaos"):
            outcome = run_chaos(seed, plan)
            decided += outcome.decided
            skipped += outcome.skipped
            split += outcome.split
            proven += len(outcome.proven)
            late = f"slots {list(outcome.undecided)} were not decided by all" if calm and outcome.undecided else ""
            faulty = [
                *outcome.violations,
                *([f"{count(outcome.split, 'slot')} split"] if outcome.split else []),
                *filter(None, [late]),
            ]
            if faulty:
                broken += 1
                bar.console.print(f"seed {seed}: {'; '.join(faulty)}", highlight=False, soft_wrap=True, markup=False)
    console.print(
        f"{count(len(numbers), 'run')} of {count(slots, 'slot')}: {decided} decided, {skipped} skipped, {split} split"
        + (f"; {proven} of {len(numbers) * byzantine} Byzantine peers proven" if byzantine else ""),
        highlight=False,
        soft_wrap=True,
    )
    if broken:
        console.print(
            f"{broken} runs violated a guarantee; `{_command(plan)}` repeats one",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )
        raise typer.Exit(1)


def _command(plan: ChaosPlan) -> str:
    """The command line that repeats a run of this plan."""
    options = f"--clients {plan.clients} --slots {plan.slots} --max-faulty {plan.max_faulty} --rule {plan.rule}"
    behaviour = "" if plan.behaviour is None else f' --behaviour "{plan.behaviour}"'
    calm = " --calm" if plan.calm else ""
    return f"fedelect chaos --seeds SEED {options} --byzantine {plan.byzantine}{behaviour}{calm}"


def _numbers(text: str) -> range:
    first, colon, end = text.partition(":")
    try:
        numbers = range(int(first or 0), int(end)) if colon else range(int(first), int(first) + 1)
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 0:
        raise ConfigurationError(f"--seeds must be FIRST:END with 0 <= FIRST < END, or one number, got {text!r}")
    return numbers
