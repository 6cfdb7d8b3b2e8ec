"""`fedelect demo`: both closed loops, every selector of the paper, on the bundled digits."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedelect.cli.load import load_config, load_data
from fedelect.cli.run import simulate_with_progress
from fedelect.cli.tables import print_summary
from fedelect.loop import FrameworkName
from fedelect.records import read_table
from fedelect.report import write_report
from fedelect.simulator import Plan, parse_selectors

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
    config = load_config("digits")
    dataset = load_data(config, "digits")
    folders = []
    for framework, names in SELECTORS.items():
        plan = Plan(
            config=config,
            framework=framework,
            selectors=parse_selectors(names),
            slots=slots,
            trials=trials,
            seed=seed,
        )
        folder = out / framework
        simulate_with_progress(plan, dataset, folder, console)
        print_summary(read_table(folder), console)
        folders.append(folder)
    page = write_report(folders, out / "report.html")
    console.print(f"open the report: {page}", highlight=False, soft_wrap=True)
