"""Data that already belongs to clients: joined into one data set that knows whose each sample is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect.errors import DataError
from fedelect.scenario import Dataset
from fedelect.seeds import stream
from fedelect.vocabulary import Ints

HELD_OUT = 0.2
"""Share of its samples that a client without test data keeps for testing, rounded, at least one."""

_PARTS = ("X", "y", "X_test", "y_test")


class ClientShare(NamedTuple):
    """What one client holds.

    Attributes:
        name: Its name.
        arrays: (X, y) or (X, y, X_test, y_test).
    """

    name: str
    arrays: Sequence[Any]


def join_shares(shares: Iterable[ClientShare], data_name: str, *, named: bool) -> Dataset:
    """Join the clients' shares into one data set.

    A client without test data keeps `HELD_OUT` of its samples for testing, drawn from the stream ("held out", name) of
    seed 0: the same ones in every run, whatever the other clients hold.

    Args:
        shares: The clients, in order.
        data_name: What to call the data in messages.
        named: Whether the names are to be kept; else clients are numbers.

    Raises:
        DataError: A share is not arrays that fit each other and the other shares, or too small to be split.
    """
    names: list[str] = []
    parts: dict[str, list[NDArray[Any]]] = {part: [] for part in _PARTS}
    for share in shares:
        arrays = _split(f"{data_name}, client {share.name}", share)
        if names and arrays["X"].shape[1] != parts["X"][0].shape[1]:
            raise DataError(
                f"{data_name}: an input of client {share.name} has {arrays['X'].shape[1]} features, one of client "
                f"{names[0]} {parts['X'][0].shape[1]}; all need the same"
            )
        names.append(share.name)
        for part, array in arrays.items():
            parts[part].append(array)
    if not names:
        raise DataError(f"{data_name} holds no clients; give one or more")
    inputs, labels, test_inputs, test_labels = (np.concatenate(parts[part]) for part in _PARTS)
    return Dataset(
        inputs,
        labels,
        test_inputs,
        test_labels,
        name=data_name,
        owners=_repeat_numbers(parts["y"]),
        test_owners=_repeat_numbers(parts["y_test"]),
        client_names=tuple(names) if named else None,
    )


def number_clients(data_name: str, client: object, client_test: object) -> tuple[Ints, Ints, tuple[str, ...] | None]:
    """Number the clients that samples belong to, in order of their ids.

    Args:
        data_name: What to call the data in messages.
        client: (n,) id of each training sample's client: whole numbers or text.
        client_test: (m,) the same of the test samples.

    Returns:
        (n,) and (m,) numbers 0 .. N-1, and the ids as names; None if they are 0 .. N-1 already.

    Raises:
        DataError: The ids are something else, or one of them is in one of the arrays only.
    """
    ids, test_ids = _as_ids(data_name, "client", client), _as_ids(data_name, "client_test", client_test)
    if ids.dtype.kind != test_ids.dtype.kind:
        raise DataError(f"{data_name}: client holds {_kind(ids)} and client_test {_kind(test_ids)}; use one of them")
    known, owners = np.unique(ids, return_inverse=True)
    tested = np.unique(test_ids)
    for one, other, lacking in ((known, tested, "test"), (tested, known, "training")):
        missing = np.setdiff1d(one, other)
        if missing.size:
            more = f" (and {missing.size - 1} more)" if missing.size > 1 else ""
            raise DataError(
                f"{data_name}: client {missing[0]}{more} has no {lacking} data; every id must be in both client and "
                f"client_test"
            )
    plain = known.dtype.kind == "i" and np.array_equal(known, np.arange(known.size))
    return owners, np.searchsorted(known, test_ids), None if plain else tuple(str(name) for name in known)


def as_client_shares(data: object) -> tuple[list[ClientShare], bool] | None:
    """Read data as clients: a sequence of (X, y) or (X, y, X_test, y_test), or a mapping of names to these.

    Returns:
        The clients, and whether they have names; None if the data is something else.
    """
    if isinstance(data, Mapping):
        shares = [ClientShare(str(name), arrays) for name, arrays in data.items()]
    elif isinstance(data, Sequence) and not isinstance(data, str):
        shares = [ClientShare(str(number), arrays) for number, arrays in enumerate(data)]
    else:
        return None
    if not shares or not all(_is_share(share.arrays) for share in shares):
        return None
    return shares, isinstance(data, Mapping)


def flatten(name: str, key: str, array: NDArray[Any]) -> NDArray[Any]:
    """(samples, ...) as (samples, features).

    Raises:
        DataError: The array has no axis but the samples.
    """
    if array.ndim < 2:
        raise DataError(f"{name}: {key} must have shape (samples, ...), got {array.shape}")
    return array.reshape(len(array), -1) if array.size else array


def _is_share(arrays: object) -> bool:
    """Whether these are a client's arrays, and not one array: its first part has rows of its own."""
    if not isinstance(arrays, tuple | list) or len(arrays) not in (2, 4):
        return False
    try:
        return np.ndim(arrays[0]) >= 2 and np.ndim(arrays[1]) == 1
    except ValueError:  # rows of different lengths
        return False


def _split(name: str, share: ClientShare) -> dict[str, NDArray[Any]]:
    """A client's four arrays, of which some samples are held out if it has no test data."""
    arrays = {part: np.asarray(array) for part, array in zip(_PARTS, share.arrays, strict=False)}
    inputs, labels = flatten(name, "X", arrays["X"]), arrays["y"]
    if len(inputs) != len(labels):
        raise DataError(f"{name}: {len(inputs)} inputs in X but {len(labels)} labels in y")
    if len(arrays) == len(_PARTS):
        test_inputs = flatten(name, "X_test", arrays["X_test"])
        if len(test_inputs) != len(arrays["y_test"]):
            raise DataError(f"{name}: {len(test_inputs)} inputs in X_test but {len(arrays['y_test'])} labels in y_test")
        if not len(labels) or not len(test_inputs):
            raise DataError(
                f"{name} has {len(labels)} training and {len(test_inputs)} test samples; it needs some of each"
            )
        return {"X": inputs, "y": labels, "X_test": test_inputs, "y_test": arrays["y_test"]}
    if len(labels) < 2:
        raise DataError(
            f"{name} has {len(labels)} samples and no test data; it needs two or more, of which one is held out"
        )
    held_out = max(1, int(HELD_OUT * len(labels) + 0.5))
    order = stream(0, "held out", share.name).permutation(len(labels))
    test, train = np.sort(order[:held_out]), np.sort(order[held_out:])
    return {"X": inputs[train], "y": labels[train], "X_test": inputs[test], "y_test": labels[test]}


def _repeat_numbers(labels: Sequence[NDArray[Any]]) -> Ints:
    return np.repeat(np.arange(len(labels)), [len(own) for own in labels])


def _as_ids(data_name: str, key: str, values: object) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise DataError(
            f"{data_name}: {key} must name the client of each sample, whole numbers or text of shape (samples,); got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64) if array.dtype.kind == "u" else array


def _kind(ids: NDArray[Any]) -> str:
    return "text" if ids.dtype.kind == "U" else "whole numbers"
