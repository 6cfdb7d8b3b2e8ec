"""`python -m paper registered`: calibrate if that is not on file, then play the blocks that are missing, in order."""

import time
from pathlib import Path

from rich.console import Console

from fedelect.datasets import load_dataset
from fedelect.records.files import make_folder
from fedelect.records.lock import FolderLock
from fedelect.records.run_folder import LOCK_NAME
from paper.player import BlockTask
from paper.registered.calibration import calibrate_registered
from paper.registered.registration import read_registration
from paper.registered.run import CALIBRATION, FOLDER, missing_tasks
from paper.runner import format_duration, play


def run_registered(console: Console, *, workers: int, root: Path = FOLDER) -> None:
    """Go on with the run where it was stopped; each finished block is told with the time that the rest will take."""
    registration = read_registration()
    dataset = load_dataset("mnist")
    make_folder(root)
    lock = FolderLock(root / LOCK_NAME)
    try:
        calibrate_registered(dataset, root / CALIBRATION.name, registration.drawings, workers=workers)
        tasks = missing_tasks(registration, dataset, root)
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
