"""Memory layout that the kernels and caches of the stacked engine share.

Gram matrices are stored in strips (S, D, 64) with S = ceil(D / 64), so that one strip stays in the cache while all
columns use it. Sets of samples are bits, S words of 64. Matrices that multiply are stored by rows without their zeros.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect.vocabulary import Ints

LANES = 64
"""Samples in a strip of a Gram matrix, bits in a word of a set, columns in a wide pack."""

NARROW = 16
"""Columns in a narrow pack."""

Words = NDArray[np.uint64]
Numbers = NDArray[np.floating[Any]]

_CACHE_LINE = 64


class Sparse(NamedTuple):
    """A matrix by rows, without zeros.

    Attributes:
        starts: (rows + 1,) int64: row i has the entries starts[i] .. starts[i+1]-1.
        indices: (entries,) int32: their columns, ascending in each row.
        values: (entries,).
    """

    starts: Ints
    indices: NDArray[np.int32]
    values: Numbers

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.starts.nbytes + self.indices.nbytes + self.values.nbytes


def as_sparse(dense: Numbers) -> Sparse:
    """The entries of a matrix (rows, columns) that are not zero."""
    rows, columns = np.nonzero(dense)
    starts = np.zeros(len(dense) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(dense)), out=starts[1:])
    return Sparse(starts, columns.astype(np.int32), np.ascontiguousarray(dense[rows, columns]))


def take_rows(matrix: Sparse, first: Ints, last: Ints) -> Sparse:
    """The rows first[0] .. last[0]-1 of a matrix, then first[1] .. last[1]-1 and so on."""
    rows = np.concatenate([np.arange(one, end) for one, end in zip(first.tolist(), last.tolist(), strict=True)])
    lengths = matrix.starts[rows + 1] - matrix.starts[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    spans = zip(matrix.starts[first].tolist(), matrix.starts[last].tolist(), strict=True)
    entries = np.concatenate([np.arange(one, end) for one, end in spans])
    return Sparse(starts.astype(np.int64), matrix.indices[entries], matrix.values[entries])


def with_bias(inputs: Numbers) -> Numbers:
    """The inputs (D, F) with a last feature that is always 1: (D, F+1)."""
    return np.concatenate([inputs, np.ones((len(inputs), 1), dtype=inputs.dtype)], axis=1)


def strips(samples: int) -> int:
    """S: number of strips, or words of bits, for `samples` samples."""
    return -(-samples // LANES)


def member_bits(members: NDArray[np.bool_]) -> Words:
    """Sets as bits: (..., D) -> (..., S)."""
    samples = members.shape[-1]
    padded = np.zeros((*members.shape[:-1], strips(samples) * LANES), dtype=np.bool_)
    padded[..., :samples] = members
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Numbers:
    """Zeros that begin at a cache line, so that no vector of a strip straddles two."""
    size = int(np.prod(shape)) * dtype.itemsize
    room = np.zeros(size + _CACHE_LINE, dtype=np.uint8)
    shift = -room.ctypes.data % _CACHE_LINE
    return room[shift : shift + size].view(dtype).reshape(shape)
