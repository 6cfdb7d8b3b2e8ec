"""Write the figures of a benchmark to a JSON file."""

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

from rich.console import Console

from fedelect.errors import ConfigurationError, RunError
from fedelect.records.files import TEMPORARY_SUFFIX, replace_file


def make_room(out: Path) -> None:
    """Make the folder of `out`, and see that it can be written, before the work of which it is to hold the figures."""
    try:
        if out.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        out.parent.mkdir(parents=True, exist_ok=True)
        probe = out.with_name(out.name + TEMPORARY_SUFFIX)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigurationError(
            f"--out: cannot write {out}: {error.strerror or error}; name a file in a folder that you may write to"
        ) from error


def write_figures(out: Path, figures: dict[str, Any], console: Console) -> None:
    """Write figures as JSON, and say where."""
    try:
        replace_file(out, json.dumps(figures, indent=2, allow_nan=False).encode() + b"\n")
    except RunError as error:
        raise RunError(
            f"cannot write the figures to {out}: {error.__cause__}; what is printed above is all that is left of them"
        ) from error
    console.print(f"figures: {out}", highlight=False, soft_wrap=True)


def plain(value: Any) -> Any:
    """The value with lists for tuples, and None in place of nan, which JSON lacks."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
