"""Run the tests on Flower, those without engines and processes, with other versions of it.

    python tools/flower_versions.py [--versions 1.24.0 1.38.0 1.42.0] [TEST ...]

Each version is installed into an environment of its own, which is deleted afterwards. The tests and the package are
those of this checkout. What cannot be installed here is skipped by name. 1.24 is the first version whose errors can be
caught, 1.38 the first whose grid has `get_nodes`. Prints a Markdown table; 1 if a test failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("1.24.0", "1.38.0", "1.42.0")
TESTS = [
    f"tests/flower/test_{name}.py" for name in ("goal_directed", "like_flower", "nodes", "failures", "resume", "legacy")
]
TOOLS = ("pytest", "pytest-xdist", "hypothesis")


def requirements(version: str) -> list[str]:
    """What to install: the package's own dependencies and those of its extra, this Flower, and what runs tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["flower"]]
    return [*(one for one in needed if not one.startswith("flwr")), f"flwr=={version}", *TOOLS]


def try_version(version: str, tests: list[str]) -> tuple[str, bool]:
    """Return the outcome in words, and whether it is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements(version)]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return f"skipped, cannot be installed: {(reasons or ['no reason given'])[-1]}", False
        # Warnings are those of libraries as old as that Flower.
        options = ["-q", "-n", "0", "-m", "not integration", "-o", "filterwarnings=default", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        command = [python, "-m", "pytest", *options, *tests]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        lines = done.stdout.splitlines() or done.stderr.splitlines() or ["pytest said nothing"]
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return "; ".join([lines[-1], *failed]), done.returncode != 0


def main() -> int:
    """Try every version; 1 if a test failed in one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS))
    parser.add_argument("tests", nargs="*", default=TESTS)
    given = parser.parse_args()
    worst = 0
    print("| flwr | outcome |\n| --- | --- |")
    for version in given.versions:
        said, failed = try_version(version, given.tests)
        worst = max(worst, int(failed))
        print(f"| {version} | {said} |", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
