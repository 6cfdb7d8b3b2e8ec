"""Convolutions of 3 x 3 at every pixel by Winograd's minimal filtering: a quarter of the multiplications.

Compiled by numba, for processors with AVX-512 (see `tiles.py`), in channels-last. It rounds other than torch's way, by
about 1e-5 of the largest output in float32. An image's outputs depend on that image alone, to the bit. Memory: the
transformed weights, four times the weights of one layer, and 14 tiles.
"""

from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedelect.federation.linear.kernels import compile_function
from fedelect.federation.torch.images.channels_last import PIXELS, ChannelsLastConv2d
from fedelect.federation.torch.images.tiles import (
    FILTER,
    LANES,
    MADE,
    ROWS,
    SIDE,
    multiply_narrow,
    multiply_square,
    multiply_wide,
    transform_filter,
    transform_filter_back,
    transform_inputs,
    transform_outputs,
    transform_slopes,
)

Array = NDArray[Any]
PRODUCTS = SIDE * SIDE
CHANNELS_LIMIT = 256 * 256
"""Products of input and output channels up to which the transformed weights stay in the cache."""

NUMBERS_AT_ONCE = 2**16
"""Transformed inputs and slopes that are kept at a time, for the second cache."""


def has_wide_vectors() -> bool:
    """Whether the processor has the registers that the tiles are made for."""
    return bool(llvmlite.binding.get_host_cpu_features().get("avx512f"))


@compile_function
def transform_weights(weights: Array, taken: int, made: int, target: Array) -> None:
    """Weights (3, 3, I, O), flat, as (6, 6, I, O), flat."""
    filters = taken * made
    for first in range(0, filters, LANES):
        transform_filter(weights, first, filters, target, first, filters)


@compile_function
def convolve(
    maps: Array, shape: tuple[int, int, int, int], weights: Array, bias: Array, margin: int, made: int, target: Array
) -> None:
    """Convolve maps of `shape` (B, H, W, I), flat, into (B, H + 2 margin - 2, W + 2 margin - 2, O), flat.

    Args:
        maps: The maps.
        shape: Theirs.
        weights: As from `transform_weights`.
        bias: (O,).
        margin: Rows and columns of zeros around a map.
        made: O.
        target: For the outputs.
    """
    images, height, width, taken = shape
    high, wide = height + 2 * margin - FILTER + 1, width + 2 * margin - FILTER + 1
    down, across = (high + MADE - 1) // MADE, (wide + MADE - 1) // MADE
    tiles = images * down * across
    apart, made_apart = ROWS * taken, ROWS * made
    given, products = np.zeros(PRODUCTS * apart, maps.dtype), np.empty(PRODUCTS * made_apart, maps.dtype)
    zeros, spare = np.zeros(LANES, maps.dtype), np.empty(LANES, maps.dtype)
    for first in range(0, tiles, ROWS):
        count = min(ROWS, tiles - first)
        for row in range(count):
            image, tile = divmod(first + row, down * across)
            top, left = MADE * (tile // across) - margin, MADE * (tile % across) - margin
            for channel in range(0, taken, LANES):
                start = image * height * width * taken + channel
                transform_inputs(
                    maps, start, taken, top, left, height, width, zeros, given, row * taken + channel, apart
                )
        for product in range(PRODUCTS):
            start, there = product * apart, product * made_apart
            if made % (2 * LANES) == 0:
                for channel in range(0, made, 2 * LANES):
                    place = product * taken * made + channel
                    multiply_wide(given, start, taken, 1, weights, place, made, taken, products, there + channel, made)
            else:
                for channel in range(0, made, LANES):
                    place = product * taken * made + channel
                    multiply_narrow(
                        given, start, taken, 1, weights, place, made, taken, products, there + channel, made
                    )
        for row in range(count):
            image, tile = divmod(first + row, down * across)
            top, left = MADE * (tile // across), MADE * (tile % across)
            for channel in range(0, made, LANES):
                start, there = image * high * wide * made + channel, row * made + channel
                transform_outputs(
                    products, there, made_apart, target, start, made, top, left, high, wide, bias, channel, spare
                )


@compile_function
def find_weight_slopes(
    maps: Array, shape: tuple[int, int, int, int], slopes: Array, margin: int, made: int, target: Array
) -> None:
    """Slopes (3, 3, I, O), flat, for the weights of a convolution.

    Args:
        maps: Its inputs as for `convolve`, and so are the next.
        shape: (B, H, W, I).
        slopes: For its outputs, (B, H + 2 margin - 2, W + 2 margin - 2, O), flat.
        margin: Rows and columns of zeros around a map.
        made: O.
        target: For the slopes.
    """
    images, height, width, taken = shape
    high, wide = height + 2 * margin - FILTER + 1, width + 2 * margin - FILTER + 1
    down, across = (high + MADE - 1) // MADE, (wide + MADE - 1) // MADE
    tiles, filters = images * down * across, taken * made
    at_once = max(ROWS, NUMBERS_AT_ONCE // (PRODUCTS * (taken + made)))
    apart, made_apart = at_once * taken, at_once * made
    given, above = np.empty(PRODUCTS * apart, maps.dtype), np.empty(PRODUCTS * made_apart, maps.dtype)
    zeros, sums = np.zeros(LANES, maps.dtype), np.zeros(PRODUCTS * filters, maps.dtype)
    for first in range(0, tiles, at_once):
        count = min(at_once, tiles - first)
        for row in range(count):
            image, tile = divmod(first + row, down * across)
            top, left = MADE * (tile // across), MADE * (tile % across)
            for channel in range(0, taken, LANES):
                start, there = image * height * width * taken + channel, row * taken + channel
                transform_inputs(
                    maps, start, taken, top - margin, left - margin, height, width, zeros, given, there, apart
                )
            for channel in range(0, made, LANES):
                start, there = image * high * wide * made + channel, row * made + channel
                transform_slopes(slopes, start, made, top, left, high, wide, zeros, above, there, made_apart)
        for product in range(PRODUCTS):
            for row in range(0, taken, LANES):
                for channel in range(0, made, LANES):
                    start, from_ = product * apart + row, product * made_apart + channel
                    there = product * filters + row * made + channel
                    multiply_square(given, start, 1, taken, above, from_, made, count, sums, there, made)
    for first in range(0, filters, LANES):
        transform_filter_back(sums, first, filters, target, first, filters)


def _find_weight_slopes(images: Tensor, slopes: Tensor, margin: int) -> Tensor:
    """Slopes (O, I, 3, 3) of images (B, I, H, W) and slopes (B, O, H + 2 margin - 2, ...)."""
    count, taken, height, width = images.shape
    made = slopes.shape[1]
    found = images.new_empty(FILTER, FILTER, taken, made)
    find_weight_slopes(
        _pixels(images), (count, height, width, taken), _pixels(slopes), margin, made, found.view(-1).numpy()
    )
    return found.permute(3, 2, 0, 1)


def _convolve(images: Tensor, weights: Tensor, bias: Tensor | None, margin: int) -> Tensor:
    """Outputs (B, O, H + 2 margin - 2, ...) of images (B, I, H, W) under weights (3, 3, I, O), channels-last."""
    taken, made = weights.shape[2:]
    transformed = weights.new_empty(PRODUCTS * taken * made)
    transform_weights(weights.contiguous().view(-1).numpy(), taken, made, transformed.numpy())
    count, _, height, width = images.shape
    grown = 2 * margin - FILTER + 1
    outputs = torch.empty(
        (count, made, height + grown, width + grown), dtype=images.dtype, memory_format=torch.channels_last
    )
    added = weights.new_zeros(made) if bias is None else bias.contiguous()
    shape = (count, height, width, taken)
    convolve(_pixels(images), shape, transformed.numpy(), added.numpy(), margin, made, _pixels(outputs))
    return outputs


def _pixels(images: Tensor) -> Array:
    """Images (B, C, H, W) as (B, H, W, C), flat and without gaps; a view where they are channels-last."""
    return images.permute(0, 2, 3, 1).contiguous().view(-1).numpy()


class Winograd(torch.autograd.Function):
    """A convolution of images (B, I, H, W) by weights (O, I, 3, 3) with a margin of zeros; I and O multiples of 16."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor | None, margin: int) -> Tensor:
        """(B, O, H + 2 margin - 2, W + 2 margin - 2), channels-last."""
        ctx.save_for_backward(images, weight)
        ctx.margin = margin
        return _convolve(images, weight.detach().permute(2, 3, 1, 0), None if bias is None else bias.detach(), margin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        """Slopes for images, weights and biases, where wanted."""
        images, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        below = own = shift = None
        if wanted[0]:
            turned = weight.detach().flip(2, 3).permute(2, 3, 0, 1)
            below = _convolve(slopes, turned, None, FILTER - 1 - ctx.margin)
        if wanted[1]:
            own = _find_weight_slopes(images, slopes, ctx.margin)
        if wanted[2]:
            shift = slopes.sum((0, 2, 3))
        return below, own, shift, None


convolve_by_winograd = cast(Callable[[Tensor, Tensor, Tensor | None, int], Tensor], Winograd.apply)


class WinogradConv2d(ChannelsLastConv2d):
    """A convolution in channels-last, by Winograd's way where it is made for that, else by torch's."""

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        if input.ndim != PIXELS or input.dtype != torch.float32 or not self._fits():
            return super().forward(input)
        return convolve_by_winograd(input, self.weight, self.bias, cast(int, self.padding[0]))

    def _fits(self) -> bool:
        channels = self.in_channels, self.out_channels
        return (
            self.kernel_size == (FILTER, FILTER)
            and self.stride == self.dilation == (1, 1)
            and self.groups == 1
            and self.padding_mode == "zeros"
            and self.padding in ((0, 0), (1, 1), (2, 2))
            and all(channel % LANES == 0 for channel in channels)
            and channels[0] * channels[1] <= CHANNELS_LIMIT
        )
