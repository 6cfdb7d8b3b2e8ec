"""Run test folders again and again, part of the time beside busy loops, and count failures.

    python tools/repeat_tests.py --times 20 --busy 10 tests/runtime tests/simulator
    python tools/repeat_tests.py --whole 3     # `make test` as a whole

Prints a line for each run, then the counts and the names of tests that failed; exit code 1 if any did.
"""

import argparse
import contextlib
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUSY_LOOPS = 2
BUSY_LOOP = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"  # ends with us, however we end
MARKERS = "not integration and not paper"
BROKEN = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main() -> None:
    """Repeat the tests as asked for on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", help="test folders or files")
    parser.add_argument("--times", type=int, default=20, help="runs of each folder")
    parser.add_argument("--busy", type=int, default=10, help=f"how many of them beside {BUSY_LOOPS} busy loops")
    parser.add_argument("--whole", type=int, default=0, help="runs of `make test`, after the folders")
    parser.add_argument("--markers", default=MARKERS, help="pytest's -m for the folders")
    options = parser.parse_args()
    broken: Counter[str] = Counter()
    bad_runs: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for folder in options.folders:
        command = [sys.executable, "-m", "pytest", "-q", "-m", options.markers, folder]
        for number in range(options.times):
            busy = number >= options.times - options.busy
            _run(f"{folder}{', busy' if busy else ''}", command, busy=busy, into=(counts, bad_runs, broken))
    for _ in range(options.whole):
        _run("make test", ["make", "test"], busy=False, into=(counts, bad_runs, broken))
    print()
    for what, count in counts.items():
        print(f"{what}: {count} runs, {bad_runs[what]} failed")
    for name, count in broken.most_common():
        print(f"failed {count} times: {name}")
    sys.exit(1 if bad_runs else 0)


def _run(what: str, command: list[str], *, busy: bool, into: tuple[Counter[str], Counter[str], Counter[str]]) -> None:
    counts, bad_runs, broken = into
    began_s = time.monotonic()
    with _busy_loops(BUSY_LOOPS if busy else 0):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    counts[what] += 1
    if done.returncode:
        bad_runs[what] += 1
        broken.update(BROKEN.findall(done.stdout) or [f"{what}: exit code {done.returncode}"])
    summary = lines[-1].strip("= ") if lines else "no output"
    print(f"{what} {counts[what]}: {summary} ({time.monotonic() - began_s:.0f} s)", flush=True)


@contextlib.contextmanager
def _busy_loops(number: int) -> Iterator[None]:
    """Keep `number` processes busy while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
