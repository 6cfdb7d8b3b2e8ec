"""What a linear model says about inputs."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.vocabulary import Ints


def linear_scores(model: NDArray[np.floating[Any]], inputs: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Score of each class for each input.

    Args:
        model: (F+1, C) weights; the last row is the bias.
        inputs: (D, F).

    Returns:
        (D, C).
    """
    scores: NDArray[np.floating[Any]] = inputs @ model[:-1] + model[-1]
    return scores


def accuracy_of(scores: NDArray[np.floating[Any]], labels: Ints) -> float:
    """Share of the samples whose highest score is at their own class; nan if there are none. (D, C), (D,)."""
    return float(np.count_nonzero(predicted_classes(scores) == labels) / len(labels)) if len(labels) else math.nan


def predicted_classes(scores: NDArray[np.floating[Any]]) -> Ints:
    """The class with the highest score, the lowest number among equals. Shapes: (D, C) -> (D,)."""
    classes: Ints = scores.argmax(axis=-1).astype(np.int64)
    return classes
