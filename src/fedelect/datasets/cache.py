"""Where fetched data is kept on this machine."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder for fetched data: FEDELECT_CACHE if set, else `fedelect` in the user's cache folder.

    The folder need not exist yet.
    """
    named = os.environ.get("FEDELECT_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "fedelect" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fedelect"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path there is to be ignored.
    return (Path(shared) if os.path.isabs(shared) else Path.home() / ".cache") / "fedelect"
