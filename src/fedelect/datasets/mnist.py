"""MNIST: fetched once from the first source that answers, verified, kept in the cache."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fedelect.datasets.cache import cache_folder
from fedelect.datasets.idx import parse_idx
from fedelect.datasets.sources import FAILURES, SOURCES, Source
from fedelect.errors import DataError
from fedelect.scenario import Dataset

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Checksums of the four files once decompressed, the same whatever they came packed in."""


def load_mnist(cache: Path | None = None) -> Dataset:
    """MNIST from the cache: 60 000 and 10 000 images as (n, 784) raw values 0..255.

    Raises:
        DataError: It has not been fetched, or the files in the cache are damaged.
    """
    folder = (cache or cache_folder()) / "mnist"
    files = {}
    for name in SHA256:
        try:
            files[name] = (folder / name).read_bytes()
        except FileNotFoundError as error:
            raise DataError(f"MNIST is not in {folder}; run: fedelect data fetch mnist") from error
        except OSError as error:
            raise DataError(f"cannot read {folder / name}: {error}") from error
    try:
        _verify(files)
    except DataError as error:
        raise DataError(f"in {folder}: {error}; run: fedelect data fetch mnist") from error
    arrays = [parse_idx(files[name], name) for name in SHA256]
    train_images, train_labels, test_images, test_labels = arrays
    return Dataset(
        inputs=train_images.reshape(len(train_images), -1),
        labels=train_labels.astype("int64"),
        test_inputs=test_images.reshape(len(test_images), -1),
        test_labels=test_labels.astype("int64"),
        name="mnist",
    )


def fetch_mnist(
    cache: Path | None = None,
    *,
    sources: Sequence[Source] = SOURCES,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Bring MNIST into the cache, from the first source whose files verify; nothing to do if it is there.

    Args:
        cache: The cache folder; `cache_folder()` if None.
        sources: What to try, in order.
        progress: Called with a line of text as things happen.

    Returns:
        The folder that holds the four files.

    Raises:
        DataError: No source answered with the right files; the message gives each one's reason.
    """
    tell = progress or (lambda _line: None)
    folder = (cache or cache_folder()) / "mnist"
    if _is_complete(folder):
        tell(f"MNIST is already in {folder}")
        return folder
    reasons = []
    for source in sources:
        tell(f"trying {source.name}")
        try:
            with tempfile.TemporaryDirectory(prefix="fedelect-") as scratch:
                files = source.fetch(Path(scratch))
            _verify(files)
        except FAILURES as error:
            reasons.append(f"{source.name}: {str(error) or type(error).__name__}")
            tell(f"no luck: {reasons[-1]}")
            continue
        _store(files, folder)
        tell(f"MNIST verified and stored in {folder}")
        return folder
    raise DataError("MNIST could not be fetched from any source:\n" + "\n".join(f"- {reason}" for reason in reasons))


def _verify(files: Mapping[str, bytes]) -> None:
    for name, expected in SHA256.items():
        if name not in files:
            raise DataError(f"{name} is missing")
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise DataError(f"{name} is not the original file (checksum differs)")


def _is_complete(folder: Path) -> bool:
    try:
        _verify({name: (folder / name).read_bytes() for name in SHA256})
    except (OSError, DataError):
        return False
    return True


def _store(files: Mapping[str, bytes], folder: Path) -> None:
    """Write each file under a temporary name first, so that a reader never sees half a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in SHA256:
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(files[name])
                os.replace(temporary, folder / name)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error}; set FEDELECT_CACHE to a folder you can use") from error
