"""How long `fedelect --help` takes, beside the imports that it cannot do without.

    python benchmarks/startup.py
    python benchmarks/startup.py --times 40 --most 2.5   # exit code 1 if the ratio is larger

Each measurement is a fresh interpreter; the two alternate, so that both meet the same load, and medians are compared.
"""

import sys

if sys.path[0].endswith("benchmarks"):
    del sys.path[0]  # selectors.py there would hide the standard library's

import argparse
import statistics
import subprocess
import time

IMPORTS = [sys.executable, "-c", "import numpy, typer, rich"]
HELP = [sys.executable, "-m", "fedelect", "--help"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="measurements of each")
    parser.add_argument("--most", type=float, help="largest ratio that passes")
    options = parser.parse_args()
    for command in (IMPORTS, HELP):  # files into the cache, bytecode onto the disk
        seconds(command)
    pairs = [(seconds(IMPORTS), seconds(HELP)) for _ in range(options.times)]
    imports_s, help_s = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"import numpy, typer, rich: {1e3 * imports_s:.0f} ms (median of {options.times})")
    print(f"fedelect --help:           {1e3 * help_s:.0f} ms")
    print(f"ratio:                     {help_s / imports_s:.2f}")
    if options.most is not None and help_s > options.most * imports_s:
        sys.exit(f"the ratio is larger than {options.most:g}")


def seconds(command: list[str]) -> float:
    """Time from start to exit of a command, in seconds."""
    began_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
