"""A data set as checked arrays, wherever they came from."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.errors import DataError
from fedelect.vocabulary import Ints

Inputs = NDArray[Any]
"""(samples, features) real numbers of any numeric dtype, as the data came (raw pixels, say)."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A classification data set with a held-out part. The arrays are copies, read only.

    Attributes:
        inputs: (n, F) finite numbers.
        labels: (n,) classes 0 .. C-1; each class occurs.
        test_inputs: (m, F), m >= 1.
        test_labels: (m,) classes 0 .. C-1.
        name: Name in messages.
        owners: (n,) the client 0 .. N-1 that each sample belongs to; None if the data belongs to nobody yet.
        test_owners: (m,) the same of the test samples; every client has some of both.
        client_names: N different names, or None.

    Raises:
        DataError: The arrays do not fit each other or hold something else than numbers and classes.
    """

    inputs: Inputs
    labels: Ints
    test_inputs: Inputs
    test_labels: Ints
    name: str = "data"
    owners: Ints | None = None
    test_owners: Ints | None = None
    client_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for part in ("", "test_"):
            inputs = _as_inputs(self.name, f"{part}inputs", getattr(self, f"{part}inputs"))
            labels = _as_labels(self.name, f"{part}labels", getattr(self, f"{part}labels"))
            if len(inputs) != len(labels):
                raise DataError(f"{self.name}: {len(inputs)} {part}inputs but {len(labels)} {part}labels")
            object.__setattr__(self, f"{part}inputs", inputs)
            object.__setattr__(self, f"{part}labels", labels)
        if self.inputs.shape[1] != self.test_inputs.shape[1]:
            raise DataError(
                f"{self.name}: inputs have {self.inputs.shape[1]} features, "
                f"test_inputs {self.test_inputs.shape[1]}; both need the same"
            )
        present = np.unique(self.labels)
        if present.size < 2 or present[-1] != present.size - 1:
            raise DataError(
                f"{self.name}: labels must be the classes 0..C-1, each occurring, C >= 2; "
                f"got {present[:12].tolist()}; renumber the classes"
            )
        if self.test_labels.max() >= present.size:
            raise DataError(f"{self.name}: test label {self.test_labels.max()} does not occur among the labels")
        if self.owners is not None or self.test_owners is not None:
            self._check_owners()
        elif self.client_names is not None:
            raise DataError(f"{self.name}: clients have names, but no samples; give owners and test_owners")

    def _check_owners(self) -> None:
        for part in ("", "test_"):
            owners = getattr(self, f"{part}owners")
            if owners is None:
                raise DataError(f"{self.name}: {part}owners are missing; give owners and test_owners, or neither")
            owners = _as_labels(self.name, f"{part}owners", owners)
            labels = getattr(self, f"{part}labels")
            if len(owners) != len(labels):
                raise DataError(f"{self.name}: {len(labels)} {part}labels but {len(owners)} {part}owners")
            object.__setattr__(self, f"{part}owners", owners)
        for part, other in (("", "test_"), ("test_", "")):
            held = np.bincount(getattr(self, f"{part}owners"), minlength=getattr(self, f"{other}owners").max() + 1)
            if not held.all():
                raise DataError(
                    f"{self.name}: client {held.argmin()} has no {'test' if part else 'training'} data; each needs some"
                )
        names = self.client_names
        if names is not None and (len(names) != self.clients or len(set(names)) != len(names)):
            raise DataError(f"{self.name}: {self.clients} clients need as many different names, got {len(set(names))}")

    @property
    def clients(self) -> int | None:
        """N, the clients that the data belongs to; None if it belongs to nobody yet."""
        return None if self.owners is None else int(self.owners.max()) + 1

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return int(self.labels.max()) + 1

    @property
    def digest(self) -> str:
        """Hash of all arrays, with their shapes and types: 32 hexadecimal digits."""
        content = hashlib.blake2b(digest_size=16)
        arrays = (self.inputs, self.labels, self.test_inputs, self.test_labels, self.owners, self.test_owners)
        for array in (array for array in arrays if array is not None):
            content.update(repr((array.shape, array.dtype.str)).encode())
            content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()

    @property
    def features(self) -> int:
        """F, the numbers in one input."""
        return int(self.inputs.shape[1])


def _array(name: str, part: str, values: object) -> NDArray[Any]:
    try:
        return np.array(values)
    except ValueError as error:
        raise DataError(f"{name}: {part} must be an array; {error}") from error


def _as_inputs(name: str, part: str, values: object) -> Inputs:
    array = _array(name, part, values)
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(f"{name}: {part} must have shape (samples, features), neither 0; got {array.shape}")
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: {part} must be real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise DataError(f"{name}: {part} must be finite; row {row} holds nan or infinity")
    array.flags.writeable = False
    return array


def _as_labels(name: str, part: str, values: object) -> Ints:
    array = _array(name, part, values)
    if array.ndim != 1 or not array.size:
        raise DataError(f"{name}: {part} must have shape (samples,), at least one; got {array.shape}")
    if array.dtype.kind not in "biu":
        raise DataError(f"{name}: {part} must be whole numbers, got dtype {array.dtype}")
    labels = array.astype(np.int64)
    if labels.min() < 0:
        raise DataError(f"{name}: {part} must be the classes 0..C-1, got {labels.min()}")
    labels.flags.writeable = False
    return labels
