"""Load a data set by the name that a scenario gives it."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect._imports import require_extras
from fedelect.datasets.mnist import load_mnist
from fedelect.errors import DataError
from fedelect.scenario import Dataset
from fedelect.seeds import stream

_ARRAYS = ("X", "y", "X_test", "y_test")
_DIGITS_TRAINING = 1300


def load_dataset(source: str, *, cache: Path | None = None) -> Dataset:
    """Load the data set that `data.source` names.

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


def as_dataset(data: object, name: str = "data") -> Dataset:
    """Make a data set of arrays.

    Args:
        data: A `Dataset`, a sequence (X, y, X_test, y_test), or a mapping of these names; X has shape (samples, ...).
        name: What to call it in messages.

    Raises:
        DataError: It is none of these, or the arrays do not fit.
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, Mapping):
        missing = [key for key in _ARRAYS if key not in data]
        if missing:
            raise DataError(f"{name} lacks {', '.join(missing)}; it holds {', '.join(map(str, data)) or 'nothing'}")
        parts = [data[key] for key in _ARRAYS]
    else:
        parts = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else []
        if len(parts) != len(_ARRAYS):
            raise DataError(f"{name} must be ({', '.join(_ARRAYS)}) or a mapping of these, got {type(data).__name__}")
    try:
        inputs, labels, test_inputs, test_labels = (np.asarray(part) for part in parts)
    except ValueError as error:
        raise DataError(f"{name} must hold arrays: {error}") from error
    return Dataset(_flatten(name, "X", inputs), labels, _flatten(name, "X_test", test_inputs), test_labels, name)


def _load_digits() -> Dataset:
    """1797 images of 8 x 8, split 1300 / 497 by a stream of its own: the same split everywhere."""
    require_extras("the digits data", sklearn="lab")
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    order = stream(0, "digits", "split").permutation(len(labels))
    train, test = order[:_DIGITS_TRAINING], order[_DIGITS_TRAINING:]
    return Dataset(inputs[train], labels[train].astype(np.int64), inputs[test], labels[test].astype(np.int64), "digits")


def _load_npz(path: Path) -> Dataset:
    return as_dataset(_read_npz(path), path.name)


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as opened:
            file = np.load(opened, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds one array; expected an .npz file with {', '.join(_ARRAYS)}")
            missing = [key for key in _ARRAYS if key not in file.files]
            if missing:
                raise DataError(f"{path} lacks {', '.join(missing)}; it holds {', '.join(file.files) or 'nothing'}")
            return {key: file[key] for key in _ARRAYS}
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


def _flatten(name: str, key: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim < 2:
        raise DataError(f"{name}: {key} must have shape (samples, ...), got {array.shape}")
    return array.reshape(len(array), -1) if array.size else array
