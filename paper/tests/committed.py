"""The results that are committed, without what a run under way may be adding beside them."""

import shutil
import subprocess
from pathlib import Path

from paper import ResultStoreOnFile, committed_results, committed_results_on_atlas

ROOT = Path(__file__).parents[2]


def committed(folder: Path) -> ResultStoreOnFile:
    """The trained results among the tracked files of paper/results/."""
    return committed_results(tracked(folder))


def committed_on_atlas(folder: Path) -> ResultStoreOnFile:
    """The results on the atlas among them."""
    return committed_results_on_atlas(tracked(folder))


def tracked(folder: Path) -> Path:
    """The folder with copies of the tracked files of paper/results/; the clone itself where there is no git."""
    git = shutil.which("git")
    names = ""
    if git is not None:
        listed = subprocess.run(
            [git, "ls-files", "paper/results"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        names = listed.stdout
    if not names:
        return ROOT
    for name in names.splitlines():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
    return folder
