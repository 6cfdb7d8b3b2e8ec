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

    Raises:
        DataError: The arrays do not fit each other or hold something else than numbers and classes.
    """

    inputs: Inputs
    labels: Ints
    test_inputs: Inputs
    test_labels: Ints
    name: str = "data"

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

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return int(self.labels.max()) + 1

    @property
    def digest(self) -> str:
        """Hash of all arrays, with their shapes and types: 32 hexadecimal digits."""
        content = hashlib.blake2b(digest_size=16)
        for array in (self.inputs, self.labels, self.test_inputs, self.test_labels):
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
