"""`fedelect demo`: both closed loops, every selector of the paper, on the bundled digits."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedelect.cli.run import simulate_here
from fedelect.cli.tables import print_summary
from fedelect.loop import FrameworkName
from fedelect.report import write_report

BASELINES = ("fixed:cohort=0,1,2,3,4", "round-robin", "random")
SELECTORS: dict[FrameworkName, tuple[str, ...]] = {
    "fa": ("quick-init-ucb", "subset-ucb", *BASELINES),
    "da": ("bp-ucb", *BASELINES),
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the two runs and their report.")] = Path("runs/demo"),
    slots: Annotated[int, typer.Option(help="Slots in each trial.")] = 40,
    trials: Annotated[int, typer.Option(help="Monte Carlo trials.")] = 16,
    seed: Annotated[int, typer.Option(help="The one seed.")] = 1,
) -> None:
    """Run FL&FA and FL&DA on the bundled digits with all selectors of the paper, and write their report."""
    console = Console()
    for framework, selectors in SELECTORS.items():
        run = simulate_here(
            console,
            "digits",
            framework=framework,
            selectors=selectors,
            slots=slots,
            trials=trials,
            seed=seed,
            out=out / framework,
        )
        print_summary(run.summary(), console)
    page = write_report([out / framework for framework in SELECTORS], out / "report.html")
    console.print(f"open the report: {page}", highlight=False, soft_wrap=True)
