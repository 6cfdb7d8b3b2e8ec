"""Group normalisation in channels-last, compiled by numba; torch's own is ten times as slow in that layout.

What often follows, the addition of a shortcut and a rectifier, is done on the way (see `fusing.py`).

An image is worked on as rows of a few pixels, (R, W), where W is a multiple of the channels: long enough for vectors,
short enough for the first cache. Sums go over the rows first, then over pixels, then over a group's channels, and are
taken about the mean. An image's outputs depend on that image alone, to the bit.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from fedelect.federation.linear.kernels import compile_function
from fedelect.federation.torch.images.channels_last import PIXELS, channels_last

Array = NDArray[Any]
_WIDTH = 256  # of a row, in numbers


@compile_function
def _gather(sums: Array, channels: int) -> None:
    """Add up (W,) over pixels into the first (C,)."""
    for start in range(channels, sums.size, channels):
        for i in range(channels):
            sums[i] += sums[start + i]


@compile_function
def _repeat(values: Array, channels: int) -> None:
    """Copy the first (C,) to every pixel of (W,)."""
    for i in range(channels, values.size):
        values[i] = values[i - channels]


@compile_function
def normalise(
    maps: Array,
    weight: Array,
    bias: Array,
    added: Array,
    least: float,
    rectified: bool,
    target: Array,
    means: Array,
    rates: Array,
) -> None:
    """Normalise maps (B, R, W).

    Args:
        maps: The maps.
        weight: (C,).
        bias: (C,).
        added: (B, R, W) to be added to the outputs, or empty.
        least: What is added to variances.
        rectified: Whether negative outputs become zero.
        target: (B, R, W) for the outputs.
        means: (B, G) for the means.
        rates: (B, G) for 1 / deviations.
    """
    images, rows, width = maps.shape
    channels, groups = weight.size, means.shape[1]
    members, count = channels // groups, maps.dtype.type(rows * width // groups)
    shift, scale, zero = np.empty(width, maps.dtype), np.empty(width, maps.dtype), maps.dtype.type(0)
    for image in range(images):
        shift[:] = 0
        for row in range(rows):
            own = maps[image, row]
            for i in range(width):
                shift[i] += own[i]
        _gather(shift, channels)
        for group in range(groups):
            total = zero
            for i in range(group * members, (group + 1) * members):
                total += shift[i]
            means[image, group] = total / count
            for i in range(group * members, (group + 1) * members):
                shift[i] = total / count
        _repeat(shift, channels)
        scale[:] = 0
        for row in range(rows):
            own = maps[image, row]
            for i in range(width):
                away = own[i] - shift[i]
                scale[i] += away * away
        _gather(scale, channels)
        for group in range(groups):
            total = zero
            for i in range(group * members, (group + 1) * members):
                total += scale[i]
            rates[image, group] = 1 / np.sqrt(total / count + maps.dtype.type(least))
            for i in range(group * members, (group + 1) * members):
                scale[i] = rates[image, group] * weight[i]
                shift[i] = bias[i] - means[image, group] * scale[i]
        _repeat(scale, channels)
        _repeat(shift, channels)
        for row in range(rows):
            own, out = maps[image, row], target[image, row]
            for i in range(width):
                out[i] = own[i] * scale[i] + shift[i]
        if added.size:
            for row in range(rows):
                more, out = added[image, row], target[image, row]
                for i in range(width):
                    out[i] += more[i]
        if rectified:
            for row in range(rows):
                out = target[image, row]
                for i in range(width):
                    out[i] = zero if out[i] < zero else out[i]


@compile_function
def descend(
    slopes: Array,
    made: Array,
    maps: Array,
    weight: Array,
    means: Array,
    rates: Array,
    target: Array,
    passed: Array,
    weight_slopes: Array,
    bias_slopes: Array,
) -> None:
    """Slopes for what `normalise` was given, of slopes (B, R, W) for its outputs.

    Args:
        slopes: For the outputs.
        made: (B, R, W) the outputs if they are rectified, else empty.
        maps: As there, and so are the next three.
        weight: (C,).
        means: (B, G).
        rates: (B, G).
        target: (B, R, W) for the slopes of the maps.
        passed: (B, R, W) for the slopes of what was added, which the rectifier lets through; not used without one.
        weight_slopes: (C,) to be added to.
        bias_slopes: (C,) to be added to.
    """
    images, rows, width = maps.shape
    channels, groups = weight.size, means.shape[1]
    members, count, zero = channels // groups, maps.dtype.type(rows * width // groups), maps.dtype.type(0)
    through = passed if made.size else slopes
    of_slopes, of_maps, rest = np.empty(width, maps.dtype), np.empty(width, maps.dtype), np.empty(width, maps.dtype)
    for image in range(images):
        of_slopes[:] = 0
        of_maps[:] = 0
        if made.size:
            for row in range(rows):
                above, out, given = slopes[image, row], made[image, row], passed[image, row]
                for i in range(width):
                    given[i] = zero if out[i] <= zero else above[i]
        for row in range(rows):
            own, given = maps[image, row], through[image, row]
            for i in range(width):
                of_slopes[i] += given[i]
                of_maps[i] += given[i] * own[i]
        _gather(of_slopes, channels)
        _gather(of_maps, channels)
        for group in range(groups):
            mean, rate = means[image, group], rates[image, group]
            total = aligned = zero
            for i in range(group * members, (group + 1) * members):
                along = (of_maps[i] - of_slopes[i] * mean) * rate  # sum of slopes * normalised inputs
                weight_slopes[i] += along
                bias_slopes[i] += of_slopes[i]
                total += weight[i] * of_slopes[i]
                aligned += weight[i] * along
            for i in range(group * members, (group + 1) * members):
                of_slopes[i] = weight[i] * rate
                of_maps[i] = -rate * rate * aligned / count
                rest[i] = -rate * total / count - of_maps[i] * mean
        _repeat(of_slopes, channels)
        _repeat(of_maps, channels)
        _repeat(rest, channels)
        for row in range(rows):
            own, given, out = maps[image, row], through[image, row], target[image, row]
            for i in range(width):
                out[i] = given[i] * of_slopes[i] + own[i] * of_maps[i] + rest[i]


@cache
def _width(pixels: int, channels: int) -> int:
    """The longest row of whole pixels that is no longer than `_WIDTH`, if it can be, and divides an image."""
    return channels * max(
        part for part in range(1, pixels + 1) if pixels % part == 0 and (part == 1 or part * channels <= _WIDTH)
    )


class GroupNormalisation(torch.autograd.Function):
    """Group normalisation of images (B, C, H, W) in channels-last, plus others of that shape, through a rectifier."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        weight: Tensor,
        bias: Tensor,
        added: Tensor | None,
        groups: int,
        least: float,
        rectified: bool,
    ) -> Tensor:
        """(B, C, H, W)."""
        images = channels_last(images)
        made = torch.empty_like(images)
        means, rates = images.new_empty(2, len(images), groups)
        given = [tensor.detach().numpy() for tensor in (weight, bias)]
        more = _nothing(images) if added is None else _rows(channels_last(added.detach()))
        normalise(_rows(images), *given, more, least, rectified, _rows(made), means.numpy(), rates.numpy())
        ctx.save_for_backward(images, weight, means, rates, made if rectified else None)
        ctx.added = added is not None
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Slopes for images, weights, biases and what was added."""
        images, weight, means, rates, made = ctx.saved_tensors
        slopes, below = channels_last(slopes), torch.empty_like(images)
        passed = slopes if made is None else torch.empty_like(images)
        own, shift = torch.zeros_like(weight), torch.zeros_like(weight)
        descend(
            _rows(slopes),
            _nothing(images) if made is None else _rows(made),
            _rows(images),
            *(tensor.detach().numpy() for tensor in (weight, means, rates)),
            _rows(below),
            _rows(passed),
            own.numpy(),
            shift.numpy(),
        )
        return below, own, shift, passed if ctx.added else None, None, None, None


def _rows(images: Tensor) -> Array:
    """(B, R, W) view of images in channels-last."""
    count, channels, height, width = images.shape
    return images.permute(0, 2, 3, 1).reshape(count, -1, _width(height * width, channels)).numpy()


def _nothing(like: Tensor) -> Array:
    return like.new_empty(0, 0, 0).numpy()


normalise_groups = cast(
    Callable[[Tensor, Tensor, Tensor, Tensor | None, int, float, bool], Tensor], GroupNormalisation.apply
)


class ChannelsLastGroupNorm(nn.GroupNorm):
    """A group normalisation whose inputs and outputs are channels-last."""

    def forward(self, input: Tensor, added: Tensor | None = None, rectified: bool = False) -> Tensor:
        """Normalise, add and rectify."""
        fits = input.ndim == PIXELS and input.dtype == torch.float32 and len(input)
        if not fits or (added is not None and (added.shape, added.dtype) != (input.shape, input.dtype)):
            made = super().forward(input)
            made = made if added is None else made + added
            return made.relu() if rectified else made
        channels = input.shape[1]
        own, shift = self._parameters["weight"], self._parameters["bias"]
        weight: Tensor = input.new_ones(channels) if own is None else own
        bias: Tensor = input.new_zeros(channels) if shift is None else shift
        return normalise_groups(input, weight, bias, added, self.num_groups, self.eps, rectified)
