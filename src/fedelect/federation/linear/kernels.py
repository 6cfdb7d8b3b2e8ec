"""Compiled kernels: every (job, class) column is a problem of its own that shares the client's data.

A column is one lane of a vector, or one row of its own. Only the client's data and the job's batch order decide the
order of its additions. So a job's result is the same to the bit whichever other jobs are in the call. Needs numba
(extra `lab`); what is compiled is cached on disk.
"""

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np

from fedelect.federation.linear.layout import LANES, NARROW
from fedelect.federation.linear.vectors import add_narrow_rows, add_rows, add_rows_in_turns, spread_row

Array = np.ndarray[Any, Any]
_TILE = 512  # rows of a product that are made before they are dealt to their columns
_ONE = np.uint64(1)


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call; cache on disk where a folder can be written."""
    try:
        made = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        made = numba.njit(error_model="numpy", nogil=True)(function)
    return cast(Callable[..., Any], made)


@compile_function
def multiply(
    starts: Array,
    indices: Array,
    values: Array,
    source: Array,
    take: Array,
    take_step: int,
    length: int,
    target: Array,
    put: Array,
    put_step: int,
) -> None:
    """Multiply a sparse matrix by many columns, wherever they lie.

    Column q of the source is source[take[q] + take_step * k], k < length; row i of its product goes to
    target[put[q] + put_step * i].
    """
    columns, rows, first = take.size, starts.size - 1, 0
    while first < columns:
        lanes = LANES if columns - first > 2 * NARROW else NARROW
        width = min(lanes, columns - first)
        packed, product = np.zeros(length * lanes, source.dtype), np.empty(_TILE * lanes, source.dtype)
        for k in range(length):
            for lane in range(width):
                packed[k * lanes + lane] = source[take[first + lane] + take_step * k]
        for tile in range(0, rows, _TILE):
            end = min(tile + _TILE, rows)
            product[:] = 0
            for row in range(tile, end):
                if lanes == LANES:
                    add_rows(packed, 0, indices, values, starts[row], starts[row + 1], product, (row - tile) * LANES)
                else:
                    add_narrow_rows(
                        packed, 0, indices, values, starts[row], starts[row + 1], product, (row - tile) * NARROW
                    )
            for lane in range(width):
                for row in range(tile, end):
                    target[put[first + lane] + put_step * row] = product[(row - tile) * lanes + lane]
        first += width


@compile_function
def batch_sets(orders: Array, batch: int) -> Array:
    """Members of each batch, as bits: orders (U, E, D) -> (U, E, batches, S)."""
    samples = orders.shape[2]
    shape = (orders.shape[0], orders.shape[1], -(-samples // batch), -(-samples // LANES))
    sets = np.zeros(shape, np.uint64)
    for one in range(shape[0]):
        for epoch in range(shape[1]):
            for position in range(samples):
                sample = orders[one, epoch, position]
                sets[one, epoch, position // batch, sample // LANES] |= _ONE << np.uint64(sample % LANES)
    return sets


@compile_function
def _softmax_slopes(scores: Array, label: int, slopes: Array) -> None:
    """Derivative of one sample's softmax loss by its scores (C,), into `slopes` (C,)."""
    highest, total = scores.max(), scores[0] * 0
    for c in range(scores.size):
        slopes[c] = np.exp(scores[c] - highest)
        total += slopes[c]
    for c in range(scores.size):
        slopes[c] /= total
    slopes[label] -= 1


@compile_function
def softmax_by_gram(
    gram: Array, orders: Array, follows: Array, labels: Array, batch: int, rates: Array, scores: Array, gains: Array
) -> None:
    """Local epochs of softmax regression in score space.

    As `hinge_by_gram`, with orders (U, E, D), follows (m,) for jobs and not columns, labels (D,), scores and gains
    (m, C, 64 S).
    """
    strips, samples, classes = gram.shape[0], gram.shape[1], scores.shape[1]
    jobs = scores.shape[0]
    scores_, gram_ = scores.reshape(-1), gram.reshape(-1)
    weights = np.empty((jobs, classes, min(batch, samples)), scores.dtype)
    own, slopes = np.empty(classes, scores.dtype), np.empty(classes, scores.dtype)
    for epoch in range(orders.shape[1]):
        for start in range(0, samples, batch):
            length = min(batch, samples - start)
            for job in range(jobs):
                for k in range(length):
                    sample = orders[follows[job], epoch, start + k]
                    for c in range(classes):
                        own[c] = scores[job, c, sample]
                    _softmax_slopes(own, labels[sample], slopes)
                    for c in range(classes):
                        weights[job, c, k] = -rates[start // batch] * slopes[c]
                        gains[job, c, sample] += weights[job, c, k]
            for strip in range(strips):
                for job in range(jobs):
                    picks = orders[follows[job], epoch, start : start + length]
                    for c in range(classes):
                        at = ((job * classes + c) * strips + strip) * LANES
                        add_rows(gram_, strip * samples * LANES, picks, weights[job, c], 0, length, scores_, at)


@compile_function
def primal_epochs(
    starts: Array,
    indices: Array,
    values: Array,
    orders: Array,
    labels: Array,
    batch: int,
    rates: Array,
    classes: int,
    hinge: bool,
    model: Array,
) -> None:
    """Local epochs of one job on its model itself.

    starts, indices, values: the client's samples with the bias feature, sparse; orders (E, D); model (P, F+1, 16), the
    C classes in P packs of 16, padded with zeros; changed.
    """
    packs, length, samples = model.shape[0], model.shape[1], labels.size
    scores = np.empty(packs * NARROW, model.dtype)
    slopes = np.zeros((min(batch, samples), packs * NARROW), model.dtype)
    model_, slopes_ = model.reshape(-1), slopes.reshape(-1)
    for epoch in range(orders.shape[0]):
        for start in range(0, samples, batch):
            count = min(batch, samples - start)
            for k in range(count):
                sample = orders[epoch, start + k]
                scores[:] = 0
                for pack in range(packs):
                    base = pack * length * NARROW
                    add_rows_in_turns(
                        model_, base, indices, values, starts[sample], starts[sample + 1], scores, pack * NARROW
                    )
                _negative_slopes(scores[:classes], labels[sample], rates[start // batch], hinge, slopes[k])
            for k in range(count):
                sample = orders[epoch, start + k]
                for pack in range(packs):
                    at = (k * packs + pack) * NARROW
                    if slopes_[at : at + NARROW].any():
                        base = pack * length * NARROW
                        spread_row(model_, base, indices, values, starts[sample], starts[sample + 1], slopes_, at)


@compile_function
def _negative_slopes(scores: Array, label: int, rate: float, hinge: bool, slopes: Array) -> None:
    if hinge:
        for c in range(scores.size):
            sign = 1 if c == label else -1
            slopes[c] = sign * rate if sign * scores[c] < 1 else 0
    else:
        _softmax_slopes(scores, label, slopes[: scores.size])
        for c in range(scores.size):
            slopes[c] *= -rate
