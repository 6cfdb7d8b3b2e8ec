"""Products of a linear layer by torch's own function, or by oneDNN, which torch brings along.

On processors of AMD, MKL leaves half of the vector unit unused in float32: there oneDNN is twice as fast. Torch gives
oneDNN's products no public name for usual tensors, so they are used only where they are found, and tried when a module
is built. Which way is taken follows from the kind of numbers and the build of torch, never from a clock.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor


class Linear(Protocol):
    """Computes a linear layer; rows of inputs may be at any multiple of their width."""

    def __call__(
        self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None, rectified: bool = False, /
    ) -> Tensor:
        """(n, O) of inputs (n, I), weights (O, I) and biases (O,), through a rectifier if asked."""


def linear_of_torch(inputs: Tensor, weight: Tensor, bias: Tensor | None = None, rectified: bool = False, /) -> Tensor:
    """See `Linear`."""
    made = torch.nn.functional.linear(inputs, weight, bias)
    return made.relu_() if rectified else made


def linear_of_onednn(inputs: Tensor, weight: Tensor, bias: Tensor | None = None, rectified: bool = False, /) -> Tensor:
    """See `Linear`; for float32 on the CPU.

    Raises:
        RuntimeError: This build of torch does not have it.
    """
    product = _operator()
    if product is None:
        raise RuntimeError("torch has no linear layer by oneDNN")
    return product(inputs, weight, bias, "relu" if rectified else "none", [], "")


def _operator() -> Callable[..., Tensor] | None:
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def ways_for(numbers: Tensor) -> list[Linear]:
    """The ways to be tried for such numbers, the fastest first."""
    fits = numbers.dtype == torch.float32 and numbers.device.type == "cpu" and _operator() is not None
    return [linear_of_onednn, linear_of_torch] if fits else [linear_of_torch]
