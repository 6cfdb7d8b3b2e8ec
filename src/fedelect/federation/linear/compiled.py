"""Local training of many jobs at one client by the compiled kernels."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedelect.federation.linear.hinge_kernel import hinge_by_gram
from fedelect.federation.linear.kernels import batch_sets, multiply, primal_epochs, softmax_by_gram
from fedelect.federation.linear.layout import LANES, NARROW, Numbers, Sparse, strips, take_rows
from fedelect.federation.linear.model import Scores
from fedelect.federation.linear.shares import Share, Shares
from fedelect.vocabulary import Ints

SUFFIX = ""
_BYTES_AT_ONCE = 2**26  # for batches as bits, scores and gains of the jobs that train together at a client
_KEPT_BYTES = 2**25  # for the sums that batches keep where the order stays
_MODELS_AT_ONCE = 64  # bounds the memory of scores: 25 MB for 10000 test samples and 10 classes in 32 bits


def train_by_gram(share: Share, models: Numbers, orders: NDArray[np.int32], follows: Ints) -> Numbers:
    """Train in score space.

    Args:
        share: The client's data.
        models: (m, F+1, C) to start from.
        orders: (U, E, D) batch orders, or (U, 1, D) if one order serves all epochs.
        follows: (m,) which of the orders each job follows.

    Returns:
        (m, F+1, C) local models.
    """
    at_once = _jobs_at_once(share, epochs=orders.shape[1])
    parts = [slice(first, first + at_once) for first in range(0, len(models), at_once)]
    return np.concatenate([_train_jobs_by_gram(share, models[part], orders, follows[part]) for part in parts])


def _jobs_at_once(share: Share, *, epochs: int) -> int:
    words = epochs * len(share.rates) * strips(share.samples)
    numbers = 2 * share.classes * strips(share.samples) * LANES
    return max(1, _BYTES_AT_ONCE // (8 * words + share.inputs.itemsize * numbers))


def _train_jobs_by_gram(share: Share, models: Numbers, orders: NDArray[np.int32], follows: Ints) -> Numbers:
    used, follows = np.unique(follows, return_inverse=True)
    orders = orders[used]
    jobs, length, classes = models.shape
    wide = strips(share.samples) * LANES
    columns = np.arange(jobs * classes)
    in_models = columns // classes * (length * classes) + columns % classes
    in_scores = columns * wide
    scores, gains = np.zeros((2, jobs, classes, wide), dtype=models.dtype)
    multiply(*share.by_sample, models.reshape(-1), in_models, classes, length, scores.reshape(-1), in_scores, 1)
    gram, epochs, batch = share.gram_strips(multiply), share.settings.epochs, share.settings.batch
    if share.settings.kind == "svm":
        sets = batch_sets(orders, batch)
        flat = (scores.reshape(-1, wide), gains.reshape(-1, wide))
        hinge_by_gram(gram, sets, np.repeat(follows, classes), share.positive, share.rates, epochs, _KEPT_BYTES, *flat)
    else:
        every = np.ascontiguousarray(np.broadcast_to(orders, (len(orders), epochs, share.samples)))
        softmax_by_gram(gram, every, follows, share.labels, batch, share.rates, scores, gains)
    gained = np.empty_like(models)
    multiply(*share.by_feature, gains.reshape(-1), in_scores, 1, share.samples, gained.reshape(-1), in_models, classes)
    gained += models
    return gained


def train_by_primal(share: Share, models: Numbers, orders: NDArray[np.int32], follows: Ints) -> Numbers:
    """Train the models themselves; as `train_by_gram`."""
    jobs, length, classes = models.shape
    packs = -(-classes // NARROW)
    settings = share.settings
    local = np.empty_like(models)
    for job in range(jobs):
        order = np.ascontiguousarray(np.broadcast_to(orders[follows[job]], (settings.epochs, share.samples)))
        packed = np.zeros((length, packs * NARROW), dtype=models.dtype)
        packed[:, :classes] = models[job]
        packed = np.ascontiguousarray(packed.reshape(length, packs, NARROW).transpose(1, 0, 2))
        hinge = settings.kind == "svm"
        primal_epochs(*share.by_sample, order, share.labels, settings.batch, share.rates, classes, hinge, packed)
        local[job] = packed.transpose(1, 0, 2).reshape(length, -1)[:, :classes]
    return local


def score_tests(shares: Shares, models: Sequence[Numbers]) -> Iterator[Scores]:
    """Yield for each model the (all test samples, C) scores of all clients' test shares, client after client."""
    yield from _score(shares.test_by_sample, models)


def score_global_tests(shares: Shares, models: Sequence[Numbers]) -> Iterator[Scores]:
    """Yield for each model the (M, C) scores of the clean test set of all clients."""
    yield from _score(shares.global_test_by_sample, models)


def score_clients(shares: Shares, model: Numbers, clients: Ints) -> list[Scores]:
    """Return for each of the clients the (D, C) scores of its test share."""
    if not clients.size:
        return []
    first, last = shares.test_starts[clients], shares.test_starts[clients + 1]
    (scores,) = _score(take_rows(shares.test_by_sample, first, last), [model])
    return np.split(scores, np.cumsum(last - first)[:-1])


def _score(matrix: Sparse, models: Sequence[Numbers]) -> Iterator[Scores]:
    samples = len(matrix.starts) - 1
    for first in range(0, len(models), _MODELS_AT_ONCE):
        stacked = np.stack(models[first : first + _MODELS_AT_ONCE])
        jobs, length, classes = stacked.shape
        columns = np.arange(jobs * classes)
        take = columns // classes * (length * classes) + columns % classes
        put = columns // classes * (samples * classes) + columns % classes
        scores = np.empty((jobs, samples, classes), dtype=stacked.dtype)
        multiply(*matrix, stacked.reshape(-1), take, classes, length, scores.reshape(-1), put, classes)
        yield from scores
