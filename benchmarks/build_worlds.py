"""Build the atlases of the reporting worlds (`benchmarks.selector_report.worlds`): train every cohort of each.

    python benchmarks/build_worlds.py                          # all; about 40 minutes of one core, most of it MNIST
    python benchmarks/build_worlds.py --only r-lossy-N12-K4    # one of them

Those of up to `SMALL` cohorts come with fedelect, for `fedelect bench selectors`; the others lie in atlases/. What is
there is checked and left as it is, and a build that was stopped goes on.
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # here `selectors.py` would hide the standard library's

import argparse
import time
from pathlib import Path

from benchmarks.selector_report.worlds import REPORTING, SMALL
from rich.console import Console

from fedelect._progress import TerminalBar
from fedelect.atlas import build_atlas, table_truth
from fedelect.bench import shipped_worlds
from fedelect.datasets import load_dataset

LARGE = Path(__file__).parent / "atlases"


def atlas_path(name: str) -> Path:
    """Where the atlas of the reporting world of that name is kept."""
    (world,) = [world for world in REPORTING if world.name == name]
    assert world.plan is not None, f"{name} has no atlas"
    return LARGE / f"{name}.npz" if world.plan.cohorts > SMALL else shipped_worlds()[name]


def main() -> None:
    """Build what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [world.name for world in REPORTING if world.plan is not None]
    parser.add_argument("--only", action="append", choices=names, help="this world; may be given several times")
    console = Console()
    for world in REPORTING:
        if world.plan is None or world.name not in (parser.parse_args().only or names):
            continue
        path = atlas_path(world.name)
        path.parent.mkdir(exist_ok=True)
        bar, before = TerminalBar(world.name, "trainings", console), time.process_time()
        command = f"python benchmarks/build_worlds.py --only {world.name}"
        data = load_dataset(world.config.data.source)
        try:
            atlas = build_atlas(world.plan, data, path, workers=1, command=command, progress=bar.show)
        finally:
            bar.stop()
        console.print(
            f"{path.name}: {atlas.cohorts:,} cohorts, {atlas.seeds} seeds, best {table_truth(atlas).optimum.mean:.4f}, "
            f"{path.stat().st_size / 1000:.0f} kB, {time.process_time() - before:.0f} s of CPU time",
            highlight=False,
            soft_wrap=True,
        )


if __name__ == "__main__":
    main()
