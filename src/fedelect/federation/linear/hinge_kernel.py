"""The compiled kernel of the hinge in score space.

Only samples inside the margin have a slope, and it is +-1, so a batch changes the scores by a signed sum of the rows of
its active samples. The violated margins and the members of a batch are kept as bits; their common bits are the active
samples, in whatever order the batch was drawn. If the order stays for all epochs of a round, each batch keeps its sum.
After the first epoch only the samples whose margin flipped are added or taken back.
"""

from typing import Any

import numpy as np

from fedelect.federation.linear.kernels import Array, compile_function
from fedelect.federation.linear.layout import LANES
from fedelect.federation.linear.vectors import add_rows, advance, lowest

_BLOCK = 80  # columns that go through an epoch together: a strip of the Gram matrix serves all of them
_ONE = np.uint64(1)


@compile_function
def _list_bits(word: Any, positive: Any, start: int, picks: Array, weights: Array, at: int) -> int:
    while word:
        bit = lowest(word)
        picks[at] = start + bit
        weights[at] = 1 if (positive >> np.uint64(bit)) & _ONE else -1
        at += 1
        word &= word - _ONE
    return at


@compile_function
def _stacked_epoch(
    gram: Array,
    sets: Array,
    follows: Array,
    positive: Array,
    rates: Array,
    repeats: int,
    scores: Array,
    gains: Array,
    violated: Array,
    sums: Array,
    chosen: Array,
) -> None:
    """One epoch of many columns in step, so that each strip of the Gram matrix is read once for all of them.

    sets (U, batches, S): members of each batch. sums (Q, kept, 64 S) and chosen (Q, kept, S): each batch's sum of rows
    and its active samples, for `_settled_epochs`; kept is 1 where they are not wanted. repeats: epochs gains count for.
    """
    strips, samples = gram.shape[0], gram.shape[1]
    columns, classes, kept = scores.shape[0], positive.shape[0], sums.shape[1]
    picks, weights = np.empty((columns, samples), np.int32), np.empty((columns, samples), scores.dtype)
    listed = np.empty(columns, np.int64)
    scores_, sums_, gram_ = scores.reshape(-1), sums.reshape(-1), gram.reshape(-1)
    for batch in range(sets.shape[1]):
        for q in range(columns):
            count = 0
            for strip in range(strips):
                word = violated[q, strip] & sets[follows[q], batch, strip]
                chosen[q, batch % kept, strip] = word
                count = _list_bits(word, positive[q % classes, strip], strip * LANES, picks[q], weights[q], count)
            for k in range(count):
                gains[q, picks[q, k]] += weights[q, k] * rates[batch] * repeats
            listed[q] = count
            sums[q, batch % kept] = 0
        for strip in range(strips):
            for q in range(columns):
                at = ((q * kept + batch % kept) * strips + strip) * LANES
                add_rows(gram_, strip * samples * LANES, picks[q], weights[q], 0, listed[q], sums_, at)
                here = (q * strips + strip) * LANES
                violated[q, strip] = advance(scores_, here, sums_, at, rates[batch], positive[q % classes, strip])


@compile_function
def _settled_epochs(
    gram: Array,
    sets: Array,
    positive: Array,
    rates: Array,
    epochs: int,
    scores: Array,
    gains: Array,
    violated: Array,
    sums: Array,
    chosen: Array,
) -> None:
    """The epochs after the first of one column whose order stays: only flipped margins change a batch's sum.

    sets and chosen (batches, S), positive and violated (S,), scores and gains (64 S,), sums (batches, 64 S).
    """
    strips, samples = gram.shape[0], gram.shape[1]
    picks, weights = np.empty(samples, np.int32), np.empty(samples, scores.dtype)
    sums_, gram_ = sums.reshape(-1), gram.reshape(-1)
    for left in range(epochs - 1, 0, -1):
        for batch in range(sets.shape[0]):
            count = 0
            for strip in range(strips):
                word = violated[strip] & sets[batch, strip]
                # A sample that turns active adds its row with its sign, one that turns inactive takes it back.
                flips = word ^ chosen[batch, strip]
                count = _list_bits(flips, ~(word ^ positive[strip]), strip * LANES, picks, weights, count)
                chosen[batch, strip] = word
            for k in range(count):
                gains[picks[k]] += weights[k] * rates[batch] * left
            for strip in range(strips):
                at = (batch * strips + strip) * LANES
                if count:
                    add_rows(gram_, strip * samples * LANES, picks, weights, 0, count, sums_, at)
                violated[strip] = advance(scores, strip * LANES, sums_, at, rates[batch], positive[strip])


@compile_function
def hinge_by_gram(
    gram: Array,
    sets: Array,
    follows: Array,
    positive: Array,
    rates: Array,
    epochs: int,
    kept_bytes: int,
    scores: Array,
    gains: Array,
) -> None:
    """Local epochs of the one-vs-rest hinge in score space.

    Args:
        gram: (S, D, 64) inner products of the client's samples, plus 1 for the bias.
        sets: (U, E or 1, batches, S) members of each batch; one epoch's if the order stays for all of them.
        follows: (Q,) which of the U orders each column follows.
        positive: (C, S) the samples of each class.
        rates: (batches,) step / samples in the batch.
        epochs: E.
        kept_bytes: Memory for the sums of all batches; where those of one job need more, they are not kept.
        scores: (Q, 64 S) to start from, the C columns of one job side by side; changed.
        gains: (Q, 64 S) zeros; becomes the change of each column, as a multiple of each sample.
    """
    strips, classes, batches = gram.shape[0], positive.shape[0], sets.shape[2]
    own_bytes = batches * strips * LANES * scores.itemsize * classes  # for one job
    stays = sets.shape[1] == 1 and epochs > 1 and own_bytes <= kept_bytes
    jobs = max(1, min(_BLOCK // classes, kept_bytes // own_bytes if stays else _BLOCK))
    block, kept = jobs * classes, batches if stays else 1
    sums = np.empty((block, kept, strips * LANES), scores.dtype)
    chosen, violated = np.empty((block, kept, strips), np.uint64), np.empty((block, strips), np.uint64)
    for first in range(0, scores.shape[0], block):
        last = min(first + block, scores.shape[0])
        sums[:, 0] = 0
        for q in range(first, last):
            for strip in range(strips):
                violated[q - first, strip] = advance(
                    scores[q], strip * LANES, sums[q - first, 0], 0, rates[0], positive[q % classes, strip]
                )
        for epoch in range(1 if stays else epochs):
            _stacked_epoch(
                gram,
                sets[:, epoch % sets.shape[1]],
                follows[first:last],
                positive,
                rates,
                epochs if stays else 1,
                scores[first:last],
                gains[first:last],
                violated,
                sums,
                chosen,
            )
        if stays:
            for q in range(first, last):
                _settled_epochs(
                    gram,
                    sets[follows[q], 0],
                    positive[q % classes],
                    rates,
                    epochs,
                    scores[q],
                    gains[q],
                    violated[q - first],
                    sums[q - first],
                    chosen[q - first],
                )
