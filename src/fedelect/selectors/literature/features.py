"""Features of clients, and ridge regression on them."""

from typing import Any

import numpy as np

from fedelect.rules import pack, unpack
from fedelect.vocabulary import Floats


class Ridge:
    """Ridge regression: H = I + sum of x x^T and b = sum of y x, their estimates and confidence widths.

    Args:
        features: F, the number of features.
    """

    def __init__(self, features: int) -> None:
        self._features = features
        self._square = np.eye(features)
        self._cross = np.zeros(features)

    def add(self, contexts: Floats, targets: Floats) -> None:
        """Add contexts (m, F) and their targets (m,)."""
        self._square = self._square + contexts.T @ contexts
        self._cross = self._cross + contexts.T @ targets

    def estimate(self, contexts: Floats) -> tuple[Floats, Floats]:
        """(m,) theta^T x and (m,) its width sqrt(x^T H^-1 x), for contexts (m, F)."""
        inverse = np.linalg.inv(self._square)
        means: Floats = contexts @ (inverse @ self._cross)
        widths: Floats = np.sqrt(np.maximum(((contexts @ inverse) * contexts).sum(axis=1), 0.0))
        return means, widths

    def state(self) -> dict[str, Any]:
        """Return H and b as JSON-able values."""
        return {"square": pack(self._square, "<f8"), "cross": pack(self._cross, "<f8")}

    def restore(self, state: dict[str, Any]) -> None:
        """Replace H and b by those that `state` returned."""
        size = self._features
        square = unpack(state["square"], "<f8", size=size * size, what="regression")
        self._square = square.reshape(size, size)
        self._cross = unpack(state["cross"], "<f8", size=size, what="regression")


def fill_missing(values: Floats) -> Floats:
    """Replace nan in `values` (N,) by the mean of the others, or by 0 if all are nan."""
    known = values[~np.isnan(values)]
    return np.where(np.isnan(values), known.mean() if known.size else 0.0, values)


def divide_by_mean(values: Floats) -> Floats:
    """Divide `values` (N,) by the mean of those known, so that a typical client has 1; nan becomes 1."""
    known = values[~np.isnan(values)]
    typical = float(known.mean()) if known.size else 0.0
    return np.where(np.isnan(values), 1.0, values / typical) if typical > 0.0 else np.ones_like(values)
