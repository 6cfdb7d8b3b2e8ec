"""Load a data set by the name that a scenario gives it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect._imports import require_extras
from fedelect._npz import read_npz
from fedelect.datasets.fetch import PUBLISHED, load_fetched
from fedelect.datasets.own_shares import ClientShare, as_client_shares, flatten, join_shares, number_clients
from fedelect.errors import DataError
from fedelect.scenario import Dataset
from fedelect.seeds import stream

_ARRAYS = ("X", "y", "X_test", "y_test")
_OWNERS = ("client", "client_test")
_DIGITS_TRAINING = 1300

NAMED = (*PUBLISHED, "digits")
"""Data sets with a name; any other `data.source` is a path."""


def load_dataset(source: str, *, cache: Path | None = None) -> Dataset:
    """Load the data set that `data.source` names.

    Args:
        source: "digits" (bundled with scikit-learn, raw values 0..16), "mnist" or "fashion-mnist" (from the cache, raw
            values 0..255), or the path of an .npz file with X, y, X_test and y_test, where X may hold images. For data
            that belongs to clients: an .npz file that has `client` and `client_test` too, the id of each sample's
            client. Or a folder with one .npz file for each client, whose name is the file's. Those may leave X_test
            and y_test out; see `own_shares.HELD_OUT`.
        cache: The folder where fetched data is kept; `cache_folder()` if None.

    Raises:
        DataError: There is no such data set, or it is damaged or of the wrong shape.
        MissingExtraError: scikit-learn is not installed.
    """
    if source == "digits":
        return _load_digits()
    if source in PUBLISHED:
        return load_fetched(source, cache)
    path = Path(source).expanduser()
    if os.path.isdir(path):  # False also for what is too long to be a path
        return _load_folder(path)
    if source.endswith(".npz"):
        return as_dataset(_read_npz(path, _ARRAYS, _OWNERS), path.name)
    names = ", ".join(f'"{name}"' for name in NAMED)
    raise DataError(
        f"data.source: got {source!r}; allowed: {names}, the path of an .npz file, or of a folder with one for each "
        f"client"
    )


def as_dataset(data: object, name: str = "data") -> Dataset:
    """Make a data set of arrays.

    Args:
        data: A `Dataset`; a sequence (X, y, X_test, y_test), or a mapping of these names, with `client` and
            `client_test` if the samples belong to clients; or a sequence of clients, each (X, y) or
            (X, y, X_test, y_test), or a mapping of their names to these. X has shape (samples, ...).
        name: What to call it in messages.

    Raises:
        DataError: It is none of these, or the arrays do not fit.
    """
    if isinstance(data, Dataset):
        return data
    clients = as_client_shares(data)
    if clients is not None:
        shares, named = clients
        return join_shares(shares, name, named=named)
    owners: list[Any] = []
    if isinstance(data, Mapping):
        given = [key for key in _OWNERS if key in data]
        missing = [key for key in (*_ARRAYS, *(_OWNERS if given else ())) if key not in data]
        if missing:
            raise DataError(f"{name} lacks {', '.join(missing)}; it holds {', '.join(map(str, data)) or 'nothing'}")
        parts = [data[key] for key in _ARRAYS]
        owners = [data[key] for key in given]
    else:
        parts = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else []
        if len(parts) != len(_ARRAYS):
            raise DataError(
                f"{name} must be ({', '.join(_ARRAYS)}), a mapping of these, or a list of clients, each (X, y) or "
                f"({', '.join(_ARRAYS)}); got {type(data).__name__}"
            )
    try:
        inputs, labels, test_inputs, test_labels = (np.asarray(part) for part in parts)
    except ValueError as error:
        raise DataError(f"{name} must hold arrays: {error}") from error
    arrays = (flatten(name, "X", inputs), labels, flatten(name, "X_test", test_inputs), test_labels)
    if not owners:
        return Dataset(*arrays, name)
    return Dataset(*arrays, name, *number_clients(name, *owners))


def _load_digits() -> Dataset:
    """1797 images of 8 x 8, split 1300 / 497 by a stream of its own: the same split everywhere."""
    require_extras("the digits data", sklearn="lab")
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    order = stream(0, "digits", "split").permutation(len(labels))
    train, test = order[:_DIGITS_TRAINING], order[_DIGITS_TRAINING:]
    return Dataset(inputs[train], labels[train].astype(np.int64), inputs[test], labels[test].astype(np.int64), "digits")


def _load_folder(folder: Path) -> Dataset:
    """One client for each .npz file, in order of their names."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise DataError(f"{folder} holds no .npz file; expected one for each client, with X and y")
    return join_shares((_read_client(path) for path in paths), folder.name, named=True)


def _read_client(path: Path) -> ClientShare:
    arrays = _read_npz(path, _ARRAYS[:2], _ARRAYS[2:])
    if len(arrays) == 3:
        raise DataError(f"{path} holds {', '.join(arrays)}; give both X_test and y_test, or neither")
    return ClientShare(path.stem, list(arrays.values()))


def _read_npz(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    def choose(found: Sequence[str]) -> list[str]:
        missing = [key for key in needed if key not in found]
        if missing:
            raise DataError(f"{path} lacks {', '.join(missing)}; it holds {', '.join(found) or 'nothing'}")
        return [key for key in (*needed, *optional) if key in found]

    try:
        return read_npz(path, choose)
    except FileNotFoundError as error:
        raise DataError(
            f"there is no file {path}; data.source is taken from the folder of the scenario's file"
        ) from error
