"""What a linear model says about inputs."""

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


def predicted_classes(scores: NDArray[np.floating[Any]]) -> Ints:
    """The class with the highest score, the lowest number among equals. Shapes: (D, C) -> (D,)."""
    classes: Ints = scores.argmax(axis=-1).astype(np.int64)
    return classes
