"""Features of clients, and ridge regression on them."""

from typing import Any

import numpy as np

from fedelect.rules import pack, unpack
from fedelect.vocabulary import Floats, Ints


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


class ClientRidges:
    """One ridge regression for each client: H_n = I + sum of x x^T and b_n = sum of y x over its own outcomes.

    Args:
        clients: N.
        features: F, the number of features.
    """

    def __init__(self, clients: int, features: int) -> None:
        self._square = np.tile(np.eye(features), (clients, 1, 1))
        self._cross = np.zeros((clients, features))

    def add(self, members: Ints, contexts: Floats, targets: Floats) -> None:
        """Add a context (m, F) and a target (m,) to the regression of each of the distinct members (m,)."""
        square, cross = self._square.copy(), self._cross.copy()
        square[members] += contexts[:, :, None] * contexts[:, None, :]
        cross[members] += targets[:, None] * contexts
        self._square, self._cross = square, cross

    def estimate(self, contexts: Floats) -> tuple[Floats, Floats]:
        """(N,) theta_n^T x_n and (N,) its width sqrt(x_n^T H_n^-1 x_n), for one context (N, F) of each client."""
        inverse = np.linalg.inv(self._square)
        turned = (inverse * contexts[:, None, :]).sum(axis=2)  # H_n^-1 x_n
        means: Floats = (turned * self._cross).sum(axis=1)
        widths: Floats = np.sqrt(np.maximum((turned * contexts).sum(axis=1), 0.0))
        return means, widths

    def state(self) -> dict[str, Any]:
        """Return all H and b as JSON-able values."""
        return {"square": pack(self._square.ravel(), "<f8"), "cross": pack(self._cross.ravel(), "<f8")}

    def restore(self, state: dict[str, Any]) -> None:
        """Replace all H and b by those that `state` returned."""
        square = unpack(state["square"], "<f8", size=self._square.size, what="regressions")
        cross = unpack(state["cross"], "<f8", size=self._cross.size, what="regressions")
        self._square, self._cross = square.reshape(self._square.shape), cross.reshape(self._cross.shape)


def known_then(before: Floats, told: Floats) -> Floats:
    """What was known of the clients (N,) when a cohort was chosen or, where that is nan, what was told after it."""
    return np.where(np.isnan(before), told, before)


def fill_missing(values: Floats) -> Floats:
    """Replace nan in `values` (N,) by the mean of the others, or by 0 if all are nan."""
    known = values[~np.isnan(values)]
    return np.where(np.isnan(values), known.mean() if known.size else 0.0, values)


def divide_by_mean(values: Floats) -> Floats:
    """Divide `values` (N,) by the mean of those known, so that a typical client has 1; nan becomes 1."""
    known = values[~np.isnan(values)]
    typical = float(known.mean()) if known.size else 0.0
    return np.where(np.isnan(values), 1.0, values / typical) if typical > 0.0 else np.ones_like(values)
