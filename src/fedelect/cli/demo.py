"""`fedelect demo`: a world like those of users, and both closed loops of the paper, on the bundled digits."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedelect.cli.console import make_console
from fedelect.cli.run import simulate_here
from fedelect.cli.tables import print_summary
from fedelect.report import write_report
from fedelect.selectors.catalogue import AUTO

PAPERS = "quick-init-ucb"
AS_PRINTED = f"{PAPERS}:exploration=1.0"
BASELINES = ("fixed:cohort=0,1,2,3,4", "round-robin", "random")
RUNS: dict[str, dict[str, Any]] = {
    "users": {"scenario": "users-small", "framework": "fa", "selectors": (AUTO, PAPERS, "cycle", "random", "oracle")},
    "fa": {"scenario": "digits", "framework": "fa", "selectors": (AUTO, PAPERS, AS_PRINTED, "subset-ucb", *BASELINES)},
    "da": {"scenario": "digits", "framework": "da", "selectors": (AUTO, "bp-ucb", *BASELINES)},
}
"""Folder -> what is simulated there: warm training with flawed clients, then the paper's FL&FA and FL&DA; in each the
recommended selector beside the paper's."""

WORLDS = {
    "users": "Users' world (warm start, 30 % of 30 clients flawed)",
    "fa": "Paper's world (cold start, 5 of 20 clients i.i.d.), FL&FA",
    "da": "The same, FL&DA",
}
"""Folder -> what its world is, for the last lines."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and their report.")] = Path("runs/demo"),
    slots: Annotated[int, typer.Option(help="Slots in each trial; twice as many in the users' world.")] = 40,
    trials: Annotated[int, typer.Option(help="Monte Carlo trials.")] = 16,
    seed: Annotated[int, typer.Option(help="The one seed.")] = 1,
) -> None:
    """Run a users' world, then FL&FA and FL&DA with all selectors of the paper, and write their report."""
    console = make_console()
    verdicts = {}
    for name, options in RUNS.items():
        length = 2 * slots if name == "users" else slots
        run = simulate_here(console, **options, slots=length, trials=trials, seed=seed, out=out / name)
        print_summary(run.summary(), console)
        verdicts[name] = run.summary().notes[0]
    page = write_report([out / name for name in RUNS], out / "report.html")
    console.print("who won:", highlight=False)
    for name, verdict in verdicts.items():
        console.print(f"  {WORLDS[name]}: {verdict}", highlight=False, soft_wrap=True)
    console.print(f"open the report: {page}", highlight=False, soft_wrap=True)
