"""Random projection of model changes to a few numbers, which keeps lengths and angles approximately.

Each coordinate is added to one of the numbers, drawn evenly, with a random sign (the count sketch of Charikar, Chen and
Farach-Colton 2002; feature hashing, Weinberger et al. 2009). Inner products are kept in expectation, with a standard
deviation of about |x| |y| / sqrt(size).
"""

import functools

import numpy as np
from numpy.typing import ArrayLike

from fedelect.seeds import stream
from fedelect.vocabulary import UPDATE_SIZE, Floats


class UpdateSketch:
    """Projects vectors of one length; the same for all clients, slots and processes.

    Args:
        length: Coordinates of a vector.
        seed: Names the stream of the projection.
    """

    def __init__(self, length: int, seed: int) -> None:
        rng = stream(seed, "update sketch", length)
        self._places = rng.integers(UPDATE_SIZE, size=length)
        self._signs = rng.choice(np.array([-1.0, 1.0]), size=length)

    def project(self, change: ArrayLike) -> Floats:
        """Return the (64,) projection of a change; an array of any shape with `length` elements."""
        flat = np.asarray(change, dtype=np.float64).reshape(-1)
        return np.asarray(np.bincount(self._places, self._signs * flat, UPDATE_SIZE), dtype=np.float64)


@functools.lru_cache(maxsize=8)
def make_sketch(length: int, seed: int) -> UpdateSketch:
    """Return the projection of vectors of this length; drawn once in a process."""
    return UpdateSketch(length, seed)
