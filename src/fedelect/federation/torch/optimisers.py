"""SGD and Adam over rows of flat weights, with the formulas and the defaults of `torch.optim`.

One row is one client's training; rows may be at different numbers of steps. An optimiser lives for one visit: as in
FedAvg, its momenta start from zero in each round at each client and are never sent.
"""

from typing import Protocol

import torch
from torch import Tensor

from fedelect.scenario import ModelConfig

FIRST_DECAY, SECOND_DECAY, FLOOR = 0.9, 0.999, 1e-8  # Adam's betas and epsilon


class Optimiser(Protocol):
    """Moves weights against gradients."""

    def step(self, weights: Tensor, gradient: Tensor, rows: slice) -> None:
        """Take one step, in place.

        Args:
            weights: (n, T), the rows that take it.
            gradient: (n, T); may be overwritten.
            rows: Which rows of all those are.
        """


class Sgd:
    """w -= step * v with v = momentum * v + gradient + weight_decay * w."""

    def __init__(self, config: ModelConfig, like: Tensor) -> None:
        self._config = config
        self._velocity = torch.zeros_like(like) if config.momentum else None

    def step(self, weights: Tensor, gradient: Tensor, rows: slice) -> None:
        """See `Optimiser.step`."""
        if self._config.weight_decay:
            gradient.add_(weights, alpha=self._config.weight_decay)
        if self._velocity is not None:
            gradient = self._velocity[rows].mul_(self._config.momentum).add_(gradient)
        weights.sub_(gradient, alpha=self._config.step)


class Adam:
    """Adam with bias correction; weight decay is added to the gradient."""

    def __init__(self, config: ModelConfig, like: Tensor) -> None:
        self._config = config
        self._first, self._second = torch.zeros_like(like), torch.zeros_like(like)
        self._steps = torch.zeros(like.shape[0], 1, dtype=torch.float64, device=like.device)

    def step(self, weights: Tensor, gradient: Tensor, rows: slice) -> None:
        """See `Optimiser.step`."""
        if self._config.weight_decay:
            gradient.add_(weights, alpha=self._config.weight_decay)
        steps = self._steps[rows].add_(1.0)
        first = self._first[rows].lerp_(gradient, 1 - FIRST_DECAY)
        second = self._second[rows].mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1 - SECOND_DECAY)
        pace = (self._config.step / (1 - FIRST_DECAY**steps)).to(weights.dtype)
        width = (1 - SECOND_DECAY**steps).sqrt().to(weights.dtype)
        weights.sub_(first.mul(pace).div_(second.sqrt().div_(width).add_(FLOOR)))


def make_optimiser(config: ModelConfig, like: Tensor) -> Optimiser:
    """A fresh optimiser of the kind that `model.optimiser` names, for weights of the shape (rows, T) of `like`."""
    return Adam(config, like) if config.optimiser == "adam" else Sgd(config, like)
