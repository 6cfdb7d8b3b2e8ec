"""Run the digits app on Flower's simulation engine, offline: python simulate.py [--out FOLDER] [key=value ...]."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from loopback import Loopback

APP = Path(__file__).parent


def options(description: str) -> tuple[Path, dict[str, object]]:
    """The run folder and the settings of pyproject.toml that are given otherwise on the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("runs/flower"), help="the run folder; gone on with if there")
    parser.add_argument(
        "settings", nargs="*", help="for example slots=40 start=cold rounds-per-slot=5; see pyproject.toml"
    )
    given = parser.parse_args()
    settings: dict[str, object] = {"run-folder": str(given.out.resolve())}
    for text in given.settings:
        key, _, value = text.partition("=")
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return given.out, settings


def main() -> int:
    """Simulate; 0 if Flower says that the run was completed."""
    out, settings = options(__doc__ or "")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        Loopback(Path(scratch), simulation=True) as link,
    ):
        run = link.run(APP, settings, nodes=int(str(settings.get("clients", 20))))
        status = link.wait(run, deadline_s=3600)
        print(link.log(run))
    print(f"{status}; see it with: fedelect show {out}")
    return 0 if status == "finished:completed" else 1


if __name__ == "__main__":
    sys.exit(main())
