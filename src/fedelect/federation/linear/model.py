"""Linear models and their losses: the one-vs-rest hinge SVM of the paper, and softmax regression.

A model is an array (F+1, C) whose last row is the bias; both kinds start from zeros. Losses are means over samples.
The SVM's loss of a sample is the sum of C hinge losses max(0, 1 - y s) with y = +1 for the sample's class and -1
for the others. The paper states no regulariser, so there is none.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.scores import linear_scores
from fedelect.vocabulary import Ints

Model = NDArray[np.floating[Any]]
"""(F+1, C) weights and, in the last row, bias."""

Scores = NDArray[np.floating[Any]]
"""(D, C), or of that shape: targets, slopes."""


class LinearLoss(NamedTuple):
    """A loss over the scores of a linear model.

    Attributes:
        targets: (labels (D,), classes, dtype) -> (D, C) what the scores are compared with.
        values: (scores, targets) -> (D,) loss of each sample.
        slopes: (scores, targets) -> (D, C) derivative of each sample's loss by its scores.
    """

    targets: Callable[[Ints, int, np.dtype[Any]], Scores]
    values: Callable[[Scores, Scores], Scores]
    slopes: Callable[[Scores, Scores], Scores]


def _indicators(labels: Ints, classes: int, dtype: np.dtype[Any]) -> Scores:
    return np.eye(classes, dtype=dtype)[labels]


def _signs(labels: Ints, classes: int, dtype: np.dtype[Any]) -> Scores:
    return 2 * _indicators(labels, classes, dtype) - 1


def _hinge_values(scores: Scores, signs: Scores) -> Scores:
    values: Scores = np.maximum(0, 1 - signs * scores).sum(axis=1)
    return values


def _hinge_slopes(scores: Scores, signs: Scores) -> Scores:
    # At the kink, where a sample just meets its margin, the slope is taken as 0.
    return -signs * (signs * scores < 1)


def _log_normaliser(scores: Scores) -> Scores:
    highest = scores.max(axis=1, keepdims=True)
    total: Scores = highest + np.log(np.exp(scores - highest).sum(axis=1, keepdims=True))
    return total


def _softmax_values(scores: Scores, indicators: Scores) -> Scores:
    values: Scores = _log_normaliser(scores)[:, 0] - (scores * indicators).sum(axis=1)
    return values


def _softmax_slopes(scores: Scores, indicators: Scores) -> Scores:
    slopes: Scores = np.exp(scores - _log_normaliser(scores)) - indicators
    return slopes


LOSSES = {
    "svm": LinearLoss(_signs, _hinge_values, _hinge_slopes),
    "softmax": LinearLoss(_indicators, _softmax_values, _softmax_slopes),
}
"""The losses by `model.kind`."""


def mean_loss(loss: LinearLoss, model: Model, inputs: Scores, labels: Ints) -> float:
    """Mean loss of `model` over the samples: inputs (D, F), labels (D,)."""
    targets = loss.targets(labels, model.shape[1], model.dtype)
    return float(loss.values(linear_scores(model, inputs), targets).mean(dtype=np.float64))


def gradient(loss: LinearLoss, model: Model, inputs: Scores, targets: Scores) -> Model:
    """Gradient of the mean loss over a minibatch by the model.

    Args:
        loss: Which loss.
        model: (F+1, C).
        inputs: (B, F).
        targets: (B, C), from `loss.targets`.

    Returns:
        (F+1, C).
    """
    slopes = loss.slopes(linear_scores(model, inputs), targets)
    return np.concatenate([inputs.T @ slopes, slopes.sum(axis=0, keepdims=True)]) / len(inputs)
