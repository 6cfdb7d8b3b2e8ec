"""Torch's layers for images in the layout that suits them: channels-last, but for the group normalisation."""

from typing import cast

import torch
from torch import Tensor, nn

PIXELS = 4  # dimensions of a batch of images: (B, C, H, W)


class ChannelsLastConv2d(nn.Conv2d):
    """A convolution whose inputs and outputs are channels-last."""

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        return super().forward(channels_last(input))


class ChannelsLastMaxPool2d(nn.MaxPool2d):
    """Max pooling whose inputs and outputs are channels-last."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return cast(Tensor, super().forward(channels_last(input)))


class ContiguousGroupNorm(nn.GroupNorm):
    """A group normalisation whose inputs and outputs are in the usual layout."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        return super().forward(input.contiguous())


def channels_last(images: Tensor) -> Tensor:
    """Images (B, C, H, W) in that layout; other tensors as they are."""
    if images.ndim != PIXELS:
        return images
    if images.shape[1] == 1 and images.is_contiguous():  # either layout; the strides tell torch which one is meant
        height, width = images.shape[2:]
        return images.as_strided(images.shape, (height * width, 1, width, 1), images.storage_offset())
    return images.contiguous(memory_format=torch.channels_last)
