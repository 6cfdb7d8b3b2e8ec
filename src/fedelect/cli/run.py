"""`fedelect run`: simulate a scenario into a run folder."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fedelect._front import DEFAULT_TRIALS, simulate
from fedelect._run import Run
from fedelect.cli.console import make_console
from fedelect.cli.long_jobs import AllowLarge, show_progress
from fedelect.cli.look import serve_live
from fedelect.cli.run_folders import link_latest, play_numbered
from fedelect.cli.tables import print_summary
from fedelect.federation import DEFAULT_ENGINE


def run(
    scenario: Annotated[
        str, typer.Argument(help="A preset (`fedelect scenario list`), a scenario .toml file or an atlas .npz file.")
    ],
    framework: Annotated[
        str, typer.Option(help="fa: the average opinion reaches the server. da: the clients elect among themselves.")
    ] = "fa",
    selector: Annotated[
        list[str] | None,
        typer.Option(
            help="Who decides; give it several times to compare. NAME, NAME:key=value,... or module:Class. "
            "`fedelect selectors` lists them. If left out: auto, the recommended one (bp-ucb under da), and random."
        ),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(help="Slots in each trial; the scenario's own number if left out.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Monte Carlo trials.")] = DEFAULT_TRIALS,
    seed: Annotated[int, typer.Option(help="The one seed of the run.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder; the same command on it resumes. The next of runs/1, runs/2, ... if left out, with "
            "runs/latest a link to it."
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="What trains: auto; plain, the reference loop; gram or primal, the two fast ways for linear models; "
            "torch-layers or torch-loop, the two for PyTorch modules. Their results agree to rounding, not to the bit."
        ),
    ] = DEFAULT_ENGINE,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes to spread the trials over; one for each core if left out, 1 for none beside this one. "
            "The results are the same for any number, and a run may be resumed with another."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Spread the trials over a Ray cluster: HOST:PORT of its head, auto, or local to start one here. "
            "The same fedelect, and your own modules, must be importable on its machines. "
            "With --workers N, in N actors. Needs the extra `ray`.",
        ),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Show the run on a local web page while it goes on.")] = False,
    live_port: Annotated[int | None, typer.Option(help="Port of that page, 0 for any free one.")] = None,
    allow_large: AllowLarge = False,
) -> None:
    """Simulate a scenario: train, let the clients judge, let the selectors decide, record every slot.

    A run that was stopped or killed goes on when the same command is given again.
    """
    console = make_console()

    def play(folder: Path) -> Run:
        with serve_live(folder, console, wanted=live, port=live_port):
            return simulate_here(
                console,
                scenario,
                framework=framework,
                selectors=selector or None,
                slots=slots,
                trials=trials,
                seed=seed,
                out=folder,
                engine=engine,
                workers=workers,
                ray=ray,
                allow_large=allow_large,
                begun=(lambda: None) if out is not None else lambda: link_latest(folder),
            )

    result = play_numbered(play) if out is None else play(out)
    print_summary(result.summary(), console)
    console.print(f"records: {result.path}", highlight=False, soft_wrap=True)
    console.print(f"report:  fedelect report {shlex.quote(str(result.path))}", highlight=False, soft_wrap=True)


def simulate_here(console: Console, scenario: str, *, begun: Callable[[], None] = lambda: None, **options: Any) -> Run:
    """Call `fedelect.simulate` under a bar on `console`, and note the command line; Ctrl-C ends with code 130.

    Args:
        console: Where the bar is shown.
        scenario: As for `fedelect.simulate`.
        begun: Called once, when the run folder is there.
        options: As for `fedelect.simulate`.
    """
    framework = str(options.get("framework", "fa")).upper()
    command = shlex.join(["fedelect", *sys.argv[1:]])
    with show_progress(f"{Path(scenario).stem}, FL&{framework}", "replica-slots", console) as show:
        first = [begun]

        def progress(finished: int, total: int) -> None:
            while first:
                first.pop()()
            show(finished, total)

        return simulate(scenario, progress=progress, command=command, **options)
