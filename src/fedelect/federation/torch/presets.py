"""Modules and losses by name: the presets "mlp" and "cnn", and the user's own as "module:attribute".

A factory takes (features, classes) and returns a module that maps inputs (B, features), floats in the scenario's
precision just as the data set holds them (raw pixels stay raw), to scores (B, classes). The presets first
standardise each input by its own mean and deviation, so the range of the pixels does not matter to them.
"""

import math
from collections.abc import Callable

from torch import Tensor, nn

from fedelect._imports import import_callable
from fedelect.errors import ConfigurationError

Factory = Callable[[int, int], nn.Module]
"""(features, classes) -> module from (B, features) to (B, classes)."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""(scores (B, C), labels (B,) int64) -> scalar, the mean loss of a batch."""

HIDDEN = 64
SMALLEST_SIDE = 4


def mlp(features: int, classes: int) -> nn.Module:
    """One hidden layer of 64 rectified units."""
    return nn.Sequential(
        nn.LayerNorm(features, elementwise_affine=False),
        nn.Linear(features, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, classes),
    )


def cnn(features: int, classes: int) -> nn.Module:
    """Two convolutions of 3 x 3 with 8 and 16 channels, each halved by max pooling, then a linear layer.

    Args:
        features: The pixels of a square image of one channel, row by row; its side is at least 4.
        classes: C.

    Raises:
        ConfigurationError: `features` is no such number.
    """
    side = math.isqrt(features)
    if side * side != features or side < SMALLEST_SIDE:
        raise ConfigurationError(
            f'model.kind: got "cnn" for inputs of {features} numbers; it needs a square image of at least '
            f'{SMALLEST_SIDE} x {SMALLEST_SIDE} pixels; allowed: "mlp", or your own "module:factory", for other inputs'
        )
    return nn.Sequential(
        nn.LayerNorm(features, elementwise_affine=False),
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, 8, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (side // 4) ** 2, classes),
    )


def load_factory(kind: str) -> Factory:
    """The factory that `model.kind` names."""
    presets: dict[str, Factory] = {"mlp": mlp, "cnn": cnn}
    return presets[kind] if kind in presets else import_callable(kind, what="model.kind")


def load_loss(name: str) -> Loss:
    """The loss that `model.loss` names."""
    return nn.functional.cross_entropy if name == "cross-entropy" else import_callable(name, what="model.loss")
