"""`python -m paper registered` continues the pre-registered run, `python -m paper verdict` judges it by its files."""

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fedelect.datasets import load_dataset
from fedelect.records.files import make_folder
from fedelect.records.lock import FolderLock
from fedelect.records.run_folder import LOCK_NAME
from paper.player import BlockTask
from paper.registered.calibration import calibrate_registered
from paper.registered.registration import read_registration
from paper.registered.run import CALIBRATION, FOLDER, list_missing_tasks
from paper.registered.verdicts import judge_registered
from paper.registered.words import figure
from paper.runner import format_duration, play


def run_registered(console: Console, *, workers: int, root: Path = FOLDER) -> None:
    """Calibrate if that is not on file, then play the blocks that are missing, in order.

    After a stop, the same call resumes. Each finished block is reported with the time that the rest will take.
    """
    registration = read_registration()
    dataset = load_dataset("mnist")
    make_folder(root)
    lock = FolderLock(root / LOCK_NAME)
    try:
        calibrate_registered(dataset, root / CALIBRATION.name, registration.drawings, workers=workers)
        tasks = list_missing_tasks(registration, dataset, root)
        left, begun = sum(task.replica_slots for task in tasks), time.monotonic()
        console.print(f"{len(tasks)} blocks to play, {left:,} replica-slots", highlight=False)
        played = 0

        def count(more: int) -> None:
            nonlocal played
            played += more

        def tell(task: BlockTask) -> None:
            rest = (time.monotonic() - begun) / max(played, 1) * (left - played)
            console.print(
                f"finished: {task.path}; {left - played:,} replica-slots left, about {format_duration(rest)}",
                highlight=False,
                soft_wrap=True,
            )

        play(tasks, dataset, workers=workers, progress=count, finished=tell)
    finally:
        lock.release()


def print_verdicts(console: Console, root: Path = FOLDER) -> None:
    """Print the twelve numbers and the verdicts, from the drawings that are complete."""
    for result in judge_registered(read_registration(), root):
        if not result.numbers:
            console.print(f"{result.world.reading}: {result.verdict_text}", highlight=False, soft_wrap=True)
            continue
        table = Table(title=f"{result.world.reading}; {len(result.drawings)} of {result.planned} drawings complete")
        for column in ("number", "paper", "the reading", "as printed", "reading, unmapped", "verdict", "nearer"):
            table.add_column(column, justify="left" if column in ("number", "verdict") else "right")
        for one in result.numbers:
            means = [figure(one.number, mean.interval) for mean in (one.reading, one.as_printed, one.unmapped)]
            paper = f"{one.number.paper:g}"
            table.add_row(one.number.name, paper, *means, one.verdict, "yes" if one.nearer else "no")
        console.print(table)
        console.print(f"verdict: {result.verdict_text.replace('*', '')}", highlight=False, soft_wrap=True)
