"""Random projection of model changes to a few numbers, which keeps lengths and angles approximately.

Each coordinate is added to one of the numbers, drawn evenly, with a random sign (the count sketch of Charikar, Chen and
Farach-Colton 2002; feature hashing, Weinberger et al. 2009). Inner products are kept in expectation, with a standard
deviation of about |x| |y| / sqrt(size). Of very long vectors a part of the coordinates is drawn and scaled up, so that
the cost of a large model stays small.
"""

import functools

import numpy as np
from numpy.typing import ArrayLike

from fedelect.seeds import stream
from fedelect.vocabulary import UPDATE_SIZE, Floats

MOST_COORDINATES = 2**18
"""Longest vector of which all coordinates are used."""


class UpdateSketch:
    """Projects vectors of one length; the same for all clients, slots and processes.

    Args:
        length: Coordinates of a vector.
        seed: Names the stream of the projection.
    """

    def __init__(self, length: int, seed: int) -> None:
        rng = stream(seed, "update sketch", length)
        used = min(length, MOST_COORDINATES)
        self._drawn = None if used == length else np.sort(rng.integers(length, size=used))  # with replacement
        self._places = rng.integers(UPDATE_SIZE, size=used)
        self._signs = rng.choice(np.array([-1.0, 1.0]), size=used) * np.sqrt(length / used)

    def project(self, change: ArrayLike) -> Floats:
        """Return the (64,) projection of a change; an array of any shape with `length` elements."""
        flat = np.asarray(change).reshape(-1)
        flat = (flat if self._drawn is None else flat[self._drawn]).astype(np.float64)
        return np.asarray(np.bincount(self._places, self._signs * flat, UPDATE_SIZE), dtype=np.float64)


@functools.lru_cache(maxsize=8)
def make_sketch(length: int, seed: int) -> UpdateSketch:
    """Return the projection of vectors of this length; drawn once in a process."""
    return UpdateSketch(length, seed)
