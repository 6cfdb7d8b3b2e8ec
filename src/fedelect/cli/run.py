"""`fedelect run`: simulate a scenario into a run folder."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedelect.cli.load import load_ground
from fedelect.cli.look import serving
from fedelect.cli.progress import Bar
from fedelect.cli.tables import print_summary
from fedelect.errors import ConfigurationError
from fedelect.federation import DEFAULT_ENGINE
from fedelect.loop import SUPPLIES, FrameworkName
from fedelect.records import read_table
from fedelect.simulator import Plan, TrainingSource, parse_selectors, simulate

DEFAULT_SELECTORS: dict[FrameworkName, tuple[str, ...]] = {
    "fa": ("quick-init-ucb", "random"),
    "da": ("bp-ucb", "random"),
}


def run(
    scenario: Annotated[
        str, typer.Argument(help="A preset (digits, paper), a scenario .toml file or an atlas .npz file.")
    ],
    framework: Annotated[
        str, typer.Option(help="fa: the average opinion reaches the server. da: the clients elect among themselves.")
    ] = "fa",
    selector: Annotated[
        list[str] | None,
        typer.Option(
            help="Who decides; give it several times to compare. NAME, NAME:key=value,... or module:Class. "
            "`fedelect selectors` lists them."
        ),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(help="Slots in each trial; the scenario's own number if left out.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Monte Carlo trials.")] = 1,
    seed: Annotated[int, typer.Option(help="The one seed of the run.")] = 1,
    out: Annotated[Path, typer.Option(help="Run folder; the same command on it resumes.")] = Path("runs/latest"),
    engine: Annotated[
        str,
        typer.Option(
            help="What trains: auto; plain, the reference loop; gram or primal, the two fast ways for linear models; "
            "torch-loop or torch-vmap, the two for PyTorch modules. Their results agree to rounding, not to the bit."
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
) -> None:
    """Simulate a scenario: train, let the clients judge, let the selectors decide, record every slot.

    A run that was stopped or killed goes on when the same command is given again.
    """
    config, ground = load_ground(scenario)
    chosen = _framework(framework)
    plan = Plan(
        config=config,
        framework=chosen,
        selectors=parse_selectors(selector or DEFAULT_SELECTORS[chosen]),
        slots=config.slots if slots is None else slots,
        trials=trials,
        seed=seed,
    )
    console = Console()
    with serving(out, console, wanted=live, port=live_port):
        simulate_with_progress(plan, ground, out, console, engine=engine, workers=workers, ray_address=ray)
    print_summary(read_table(out), console)
    console.print(f"records: {out}", highlight=False, soft_wrap=True)
    console.print(f"report:  fedelect report {shlex.quote(str(out))}", highlight=False, soft_wrap=True)


def simulate_with_progress(
    plan: Plan,
    ground: TrainingSource,
    out: Path,
    console: Console,
    *,
    engine: str = DEFAULT_ENGINE,
    workers: int | None = None,
    ray_address: str | None = None,
) -> None:
    """Run the plan under a progress bar over replica-slots; see `simulate`."""
    title = f"{plan.config.name}, FL&{plan.framework.upper()}"
    bar = Bar(title, "replica-slots", console)
    try:
        command = shlex.join(["fedelect", *sys.argv[1:]])
        simulate(
            plan,
            ground,
            out,
            command=command,
            progress=bar.show,
            engine=engine,
            workers=workers,
            ray_address=ray_address,
        )
    except KeyboardInterrupt:
        bar.stop()
        console.print("stopped; give the same command again to go on", highlight=False)
        raise typer.Exit(130) from None
    finally:
        bar.stop()


def _framework(text: str) -> FrameworkName:
    for name in SUPPLIES:
        if name == text:
            return name
    raise ConfigurationError(f"unknown framework {text!r}; use {' or '.join(SUPPLIES)}")
