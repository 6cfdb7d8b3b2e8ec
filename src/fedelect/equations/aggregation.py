"""Aggregation of the uploads of one round."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.vocabulary import Ints


def aggregate(
    models: NDArray[np.floating[Any]],
    sizes: Ints,
    arrivals: NDArray[np.bool_],
    previous: NDArray[np.floating[Any]],
) -> NDArray[np.floating[Any]]:
    """FedAvg over the uploads that arrived, weights X |D|; eq. `ave01`.

    Summed in 64 bits in cohort order and rounded once to the models' precision, so one arrival is handed on
    unchanged. What did not arrive is not looked at, be it nan.

    Args:
        models: (K, ...) the clients' models after local training.
        sizes: (K,) training samples of each client, |D|, at least 1.
        arrivals: (K,) whose upload arrived, X.
        previous: (...) the global model before the round; stays when nothing arrived.

    Returns:
        (...) the new global model.
    """
    arrived = np.flatnonzero(arrivals)
    if not arrived.size:
        return previous
    weights = sizes[arrived] / sizes[arrived].sum()
    total = np.zeros(models.shape[1:], dtype=np.float64)
    for weight, client in zip(weights.tolist(), arrived.tolist(), strict=True):
        total += weight * models[client].astype(np.float64)
    return total.astype(models.dtype)
