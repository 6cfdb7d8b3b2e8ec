"""MNIST and Fashion-MNIST: fetched once from a mirror or a folder, verified by checksum, kept in the cache."""

import gzip
import hashlib
import http.client
import math
import os
import struct
import sys
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect._text import suggest
from fedelect.errors import ConfigurationError, DataError
from fedelect.scenario import Dataset


class Published(NamedTuple):
    """A data set as it was published: four files in the IDX format.

    Attributes:
        title: What it is called in messages.
        mirrors: Web folders with the four files, each gzipped, in the order in which they are tried.
        files: Training images and labels, test images and labels: size in bytes and SHA-256, both of the decompressed
            file.
    """

    title: str
    mirrors: tuple[str, ...]
    files: dict[str, tuple[int, str]]


PUBLISHED = {
    "mnist": Published(
        "MNIST",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ),
        {
            "train-images-idx3-ubyte": (47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
            "train-labels-idx1-ubyte": (60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
            "t10k-images-idx3-ubyte": (7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
            "t10k-labels-idx1-ubyte": (10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        },
    ),
    "fashion-mnist": Published(
        "Fashion-MNIST",
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
        ),
        {
            "train-images-idx3-ubyte": (47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
            "train-labels-idx1-ubyte": (60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
            "t10k-images-idx3-ubyte": (7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
            "t10k-labels-idx1-ubyte": (10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
        },
    ),
}
"""Data sets that can be fetched, by name; each has a folder of that name in the cache."""

HTTP_TIMEOUT_S = 10.0

_FAILURES = (DataError, OSError, EOFError, http.client.HTTPException, zlib.error)
"""What reading from a mirror or a folder may raise."""

_UNSIGNED_BYTE = 0x08


def cache_folder() -> Path:
    """Folder for fetched data: FEDELECT_CACHE if set, else `fedelect` in the user's cache folder.

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


def load_fetched(name: str, cache: Path | None = None) -> Dataset:
    """One of `PUBLISHED` from the cache: 60 000 and 10 000 images as (n, 784) raw values 0..255.

    Raises:
        DataError: It has not been fetched, or the files in the cache are damaged.
    """
    published = PUBLISHED[name]
    folder = (cache or cache_folder()) / name
    files = {}
    for file in published.files:
        try:
            files[file] = (folder / file).read_bytes()
        except FileNotFoundError as error:
            raise DataError(f"{published.title} is not in {folder}; run: fedelect data fetch {name}") from error
        except OSError as error:
            raise DataError(f"cannot read {folder / file}: {error}") from error
    try:
        _verify(published, files)
    except DataError as error:
        raise DataError(f"in {folder}: {error}; run: fedelect data fetch {name}") from error
    train_images, train_labels, test_images, test_labels = (parse_idx(files[file], file) for file in published.files)
    return Dataset(
        inputs=train_images.reshape(len(train_images), -1),
        labels=train_labels.astype("int64"),
        test_inputs=test_images.reshape(len(test_images), -1),
        test_labels=test_labels.astype("int64"),
        name=name,
    )


def fetch_dataset(
    name: str,
    cache: Path | None = None,
    *,
    folder: Path | None = None,
    mirrors: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Path:
    """Bring a data set into the cache, verified; do nothing if it is there.

    Args:
        name: One of `PUBLISHED`.
        cache: The cache folder; `cache_folder()` if None.
        folder: Take the four original files from here, gzipped or not, instead of from the mirrors.
        mirrors: Addresses of web folders to try, in order; those in `PUBLISHED` if None.
        progress: Called with a line of text for each step.

    Returns:
        The folder that holds the four files.

    Raises:
        ConfigurationError: There is no such data set to fetch.
        DataError: No mirror, or not the folder, has the right files; the message gives each one's reason.
    """
    if name not in PUBLISHED:
        raise ConfigurationError(
            f"unknown data set {name!r}{suggest(name, PUBLISHED)}; {' and '.join(PUBLISHED)} can be fetched, "
            "digits comes with scikit-learn"
        )
    published = PUBLISHED[name]
    target = (cache or cache_folder()) / name
    if _is_complete(published, target):
        progress(f"{published.title} is already in {target}")
        return target
    reasons = []
    sources: Sequence[str | Path] = (published.mirrors if mirrors is None else mirrors) if folder is None else (folder,)
    for source in sources:
        progress(f"trying {source}")
        try:
            files = _download(published, source) if isinstance(source, str) else _read_folder(published, source)
            _verify(published, files)
        except _FAILURES as error:
            reasons.append(f"{source}: {str(error) or type(error).__name__}")
            progress(f"failed: {reasons[-1]}")
            continue
        _store(files, target)
        progress(f"{published.title} verified and stored in {target}")
        return target
    advice = f"with its four files in a folder: fedelect data fetch {name} --from FOLDER"
    raise DataError("\n- ".join([f"{published.title} could not be fetched; {advice}", *reasons]))


def parse_idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """Array of unsigned bytes in a file of the IDX format, in which MNIST is published.

    The header is two zero bytes, a byte for the element type, a byte for the number of dimensions, then each
    dimension as a big-endian 32-bit number.

    Args:
        content: The whole file, not compressed.
        name: The file's name, for messages.

    Raises:
        DataError: The file is damaged or is something else.
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise DataError(f"{name} is not an IDX file: it starts with {content[:4].hex() or 'nothing'}")
    kind, dimensions = content[2], content[3]
    if kind != _UNSIGNED_BYTE or not 1 <= dimensions <= 4:
        raise DataError(f"{name}: element type {kind:#04x} in {dimensions} dimensions; expected bytes (0x08) in 1 to 4")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataError(f"{name} is cut off: {len(content)} bytes, but its header alone has {start}")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) != start + math.prod(shape):
        raise DataError(
            f"{name} is damaged: its header promises {shape} and so {start + math.prod(shape)} bytes, "
            f"it has {len(content)}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _download(published: Published, address: str) -> dict[str, bytes]:
    files = {}
    for name, (size, _) in published.files.items():
        url = f"{address}/{name}.gz"
        with urllib.request.urlopen(url, timeout=HTTP_TIMEOUT_S) as response, gzip.GzipFile(fileobj=response) as file:
            files[name] = _read(file, size, url)
    return files


def _read_folder(published: Published, folder: Path) -> dict[str, bytes]:
    files = {}
    for name, (size, _) in published.files.items():
        packed = folder / f"{name}.gz"
        with gzip.open(packed) if packed.exists() else open(folder / name, "rb") as file:
            files[name] = _read(file, size, name)
    return files


def _read(file: IO[bytes] | gzip.GzipFile, size: int, name: str) -> bytes:
    """Read `size` bytes and not one more, so that a damaged or hostile file cannot fill the memory."""
    content = file.read(size + 1)
    if len(content) != size:
        raise DataError(f"{name} holds {'more' if len(content) > size else 'less'} than {size} bytes")
    return content


def _verify(published: Published, files: Mapping[str, bytes]) -> None:
    for name, (_, sha256) in published.files.items():
        if hashlib.sha256(files[name]).hexdigest() != sha256:
            raise DataError(f"{name} is not the original file (checksum differs)")


def _is_complete(published: Published, folder: Path) -> bool:
    try:
        _verify(published, {name: (folder / name).read_bytes() for name in published.files})
    except (OSError, DataError):
        return False
    return True


def _store(files: Mapping[str, bytes], folder: Path) -> None:
    """Write each file under a temporary name first, so that a reader never sees half a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, folder / name)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error}; set FEDELECT_CACHE to a folder you can use") from error
