"""The results that are committed, without what a run under way may be adding beside them."""

import shutil
import subprocess
from pathlib import Path

from fedelect.reproduce import LibraryOnFile, committed_library

ROOT = Path(__file__).parents[2]


def committed(folder: Path) -> LibraryOnFile:
    """The tracked files of reproduction/ in a folder of their own; all of it where there is no clone."""
    git = shutil.which("git")
    names = ""
    if git is not None:
        listed = subprocess.run(
            [git, "ls-files", "reproduction"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        names = listed.stdout
    if not names:
        return committed_library(ROOT)
    for name in names.splitlines():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
    return committed_library(folder)
