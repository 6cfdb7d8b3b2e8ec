"""A network with one hidden layer for Q values, in NumPy: forward, backward, one step of gradient descent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect.rules import pack, unpack
from fedelect.vocabulary import Ints

Weights = NDArray[Any]
"""Array of floats, 32 bits where a network holds it."""

_PRECISION = np.float32  # networks of many clients are large
_MOST_SLOPE = 1.0  # longest gradient of a step, over all weights


class QNetwork(NamedTuple):
    """Q(s, .) = W2 max(W1 s + b1, 0) + b2 for states s (S,) and A actions, with H hidden units. 32-bit floats.

    Attributes:
        inner: (H, S) W1.
        inner_bias: (H,) b1.
        outer: (A, H) W2.
        outer_bias: (A,) b2.
    """

    inner: Weights
    inner_bias: Weights
    outer: Weights
    outer_bias: Weights

    @classmethod
    def draw(cls, states: int, hidden: int, actions: int, rng: np.random.Generator) -> "QNetwork":
        """Draw the weights (He et al. 2015); biases are 0."""
        inner = rng.standard_normal((hidden, states), dtype=_PRECISION) * np.float32(np.sqrt(2.0 / states))
        outer = rng.standard_normal((actions, hidden), dtype=_PRECISION) * np.float32(np.sqrt(2.0 / hidden))
        return cls(inner, np.zeros(hidden, _PRECISION), outer, np.zeros(actions, _PRECISION))

    def values(self, states: Weights) -> Weights:
        """(n, A) Q values of states (n, S)."""
        found: Weights = self._compute_hidden(states) @ self.outer.T + self.outer_bias
        return found

    def _compute_hidden(self, states: Weights) -> Weights:
        hidden: Weights = np.maximum(states.astype(_PRECISION) @ self.inner.T + self.inner_bias, 0)
        return hidden

    def slope(self, states: Weights, actions: Ints, targets: Weights) -> "QNetwork":
        """Gradient of the mean of (Q(s, a) - y)^2 / 2 over n states and their k actions each.

        Args:
            states: (n, S).
            actions: (n, k).
            targets: (n,) y.
        """
        hidden = self._compute_hidden(states)
        rows = np.arange(len(states))[:, None]
        values = hidden @ self.outer.T + self.outer_bias
        errors = np.zeros_like(values)
        errors[rows, actions] = (values[rows, actions] - targets[:, None]) / actions.size
        back = (errors @ self.outer) * (hidden > 0)
        return QNetwork(back.T @ states.astype(_PRECISION), back.sum(axis=0), errors.T @ hidden, errors.sum(axis=0))

    def descend(self, slope: "QNetwork", rate: float) -> "QNetwork":
        """Return the network after a step against `slope`, which is shortened to length 1 if it is longer."""
        length = float(np.sqrt(sum(float(np.square(part, dtype=np.float64).sum()) for part in slope)))
        step = np.float32(rate * min(1.0, _MOST_SLOPE / max(length, 1e-300)))
        return QNetwork(*(weights - step * part for weights, part in zip(self, slope, strict=True)))

    def state(self) -> list[str]:
        """Return the weights as JSON-able values."""
        return [pack(part, "<f4") for part in self]

    def restore(self, state: Sequence[Any]) -> "QNetwork":
        """Return the network of this shape with the weights that `state` returned."""
        parts = zip(self, state, strict=True)
        return QNetwork(
            *(unpack(text, "<f4", size=part.size, what="network").reshape(part.shape) for part, text in parts)
        )
