"""A data set by the name that a scenario gives it."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect._imports import require_extras
from fedelect.datasets.mnist import load_mnist
from fedelect.errors import DataError
from fedelect.scenario import Dataset
from fedelect.seeds import stream

_DIGITS_TRAINING = 1300


def load_dataset(source: str, *, cache: Path | None = None) -> Dataset:
    """The data set that `data.source` names.

    Args:
        source: "digits" (bundled with scikit-learn, raw values 0..16), "mnist" (from the cache, raw values 0..255) or
            the path of an .npz file with X, y, X_test and y_test; X may hold images.
        cache: The folder where fetched data is kept; `cache_folder()` if None.

    Raises:
        DataError: There is no such data set, or it is damaged or of the wrong shape.
        MissingExtraError: scikit-learn is not installed.
    """
    if source == "digits":
        return _load_digits()
    if source == "mnist":
        return load_mnist(cache)
    if source.endswith(".npz"):
        return _load_npz(Path(source).expanduser())
    raise DataError(f'data.source: got {source!r}; allowed: "mnist", "digits" or the path of an .npz file')


def _load_digits() -> Dataset:
    """1797 images of 8 x 8, split 1300 / 497 by a stream of its own: the same split for everybody."""
    require_extras("the digits data", sklearn="lab")
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    order = stream(0, "digits", "split").permutation(len(labels))
    train, test = order[:_DIGITS_TRAINING], order[_DIGITS_TRAINING:]
    return Dataset(inputs[train], labels[train].astype(np.int64), inputs[test], labels[test].astype(np.int64), "digits")


def _load_npz(path: Path) -> Dataset:
    arrays = _read_npz(path)
    inputs, test_inputs = _flat(path, "X", arrays["X"]), _flat(path, "X_test", arrays["X_test"])
    return Dataset(inputs, arrays["y"], test_inputs, arrays["y_test"], path.name)


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    keys = ("X", "y", "X_test", "y_test")
    try:
        with open(path, "rb") as opened:
            file = np.load(opened, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds one array; expected an .npz file with {', '.join(keys)}")
            missing = [key for key in keys if key not in file.files]
            if missing:
                raise DataError(f"{path} lacks {', '.join(missing)}; it holds {', '.join(file.files) or 'nothing'}")
            return {key: file[key] for key in keys}
    except FileNotFoundError as error:
        raise DataError(
            f"there is no file {path}; data.source is taken from the folder of the scenario's file"
        ) from error
    except ValueError as error:
        raise DataError(
            f"{path} holds pickled objects or is damaged; save plain arrays with numpy.savez ({error})"
        ) from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read as an .npz file: {error}") from error


def _flat(path: Path, key: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim < 2:
        raise DataError(f"{path}: {key} must have shape (samples, ...), got {array.shape}")
    return array.reshape(len(array), -1) if array.size else array
