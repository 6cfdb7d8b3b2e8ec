"""Linear layers and rectifiers under cross-entropy and plain SGD: a few local trainings side by side, without autograd.

A stack holds the weights of `ROWS` trainings, transposed, and takes their steps by batched matrix products, each as if
alone. A BLAS library may choose its kernel by the address of a matrix, so a row's bits would depend on its place in the
stack. Therefore every matrix starts at a multiple of `ALIGNMENT` bytes: all widths are padded with zeros, which stay
zeros. What is left to rely on is that a product of a batch depends on its own two matrices alone, in one thread. Torch
keeps this and does not promise it: `layers.repeats` tries it out for every batch size before training.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, final

import numpy as np
import torch
from torch import Tensor, nn

from fedelect.federation.linear.model import Model
from fedelect.federation.torch.local_training import LocalTraining, padded_width
from fedelect.scenario import ModelConfig

ROWS = 8
"""Trainings in a stack: enough to hide Python's share, few enough for the cache, whatever the number of replicas."""


class Shares(Protocol):
    """Training data of all clients, client after client; `DataTensors` is one.

    Attributes:
        labels: (sum of D,).
        starts: Where each client's share starts.
    """

    labels: Tensor
    starts: list[int]

    @property
    def padded_inputs(self) -> Tensor:
        """(sum of D, F padded) inputs through `pad`."""


class _Place(NamedTuple):
    """Where a linear layer (inputs I, outputs O) lies in a flat model, and whether a rectifier follows."""

    weight: slice
    bias: slice | None
    shape: tuple[int, int]
    rectified: bool

    def read_weights(self, flat: Tensor) -> Tensor:
        """(n, I padded, O padded) weights of flat models (n, P), transposed."""
        made, taken = self.shape
        padded = [padded_width(width, flat.dtype) for width in (taken, made)]
        weights = flat.new_zeros((len(flat), *padded))
        weights[:, :taken, :made] = flat[:, self.weight].view(-1, made, taken).transpose(1, 2)
        return weights

    def read_biases(self, flat: Tensor) -> Tensor | None:
        """(n, 1, O padded) biases of flat models (n, P)."""
        if self.bias is None:
            return None
        biases = flat.new_zeros((len(flat), 1, padded_width(self.shape[0], flat.dtype)))
        biases[:, 0, : self.shape[0]] = flat[:, self.bias]
        return biases

    def write(self, flat: Tensor, weights: Tensor, biases: Tensor | None) -> None:
        """Put weights and biases back into flat models (n, P)."""
        made, taken = self.shape
        flat[:, self.weight].view(-1, made, taken).copy_(weights[:, :taken, :made].transpose(1, 2))
        if self.bias is not None and biases is not None:
            flat[:, self.bias] = biases[:, 0, :made]


@final
class DenseStack:
    """Trains the models of one network.

    Args:
        layers: Linear layers whose parameters are views of a flat model, each with at most one rectifier behind it.
        classes: C.
    """

    def __init__(self, layers: Sequence[nn.Module], classes: int) -> None:
        followed = zip(layers, [*layers[1:], None], strict=True)
        self._places = [_place(one, next_) for one, next_ in followed if isinstance(one, nn.Linear)]
        self._classes = classes

    def train(self, config: ModelConfig, data: Shares, trainings: Sequence[LocalTraining]) -> list[Model]:
        """Run E epochs of minibatch steps for each; return the models (P,) in order."""
        by_size = sorted(range(len(trainings)), key=lambda index: -trainings[index].orders.shape[1])
        models: dict[int, Model] = {}
        for start in range(0, len(trainings), ROWS):
            chosen = by_size[start : start + ROWS]
            trained = self._train_rows(config, data, [trainings[index] for index in chosen])
            models.update(zip(chosen, trained, strict=True))
        return [models[index] for index in range(len(trainings))]

    def _train_rows(self, config: ModelConfig, data: Shares, trainings: Sequence[LocalTraining]) -> list[Model]:
        device = data.labels.device
        flat = torch.tensor(np.stack([training.model for training in trainings]), device=device)
        sizes = [training.orders.shape[1] for training in trainings]
        orders = np.zeros((len(trainings), config.epochs, sizes[0]), dtype=np.int64)
        for row, (training, size) in enumerate(zip(trainings, sizes, strict=True)):
            orders[row, :, :size] = training.orders + data.starts[training.client]
        chosen = torch.tensor(orders, device=device)
        labels = torch.eye(self._classes, padded_width(self._classes, flat.dtype), dtype=flat.dtype, device=device)
        weights = [place.read_weights(flat) for place in self._places]
        biases = [place.read_biases(flat) for place in self._places]
        for epoch in range(config.epochs):
            for rows, samples in batches(sizes, config.batch):
                batch = chosen[rows, epoch, samples]
                count = batch.shape[0]
                inputs = data.padded_inputs.index_select(0, batch.reshape(-1)).view(count, -1, weights[0].shape[1])
                wanted = labels.index_select(0, data.labels.index_select(0, batch.reshape(-1)))
                layers = zip(weights, biases, strict=True)
                own = [(weight[rows], None if bias is None else bias[rows]) for weight, bias in layers]
                self._step(own, inputs, wanted.view(count, -1, labels.shape[1]), config.step)
        for place, weight, bias in zip(self._places, weights, biases, strict=True):
            place.write(flat, weight, bias)
        return list(flat.cpu().numpy())

    def _step(self, layers: list[tuple[Tensor, Tensor | None]], inputs: Tensor, wanted: Tensor, step: float) -> None:
        """Take a step of each row, in place; I, O, F and C are padded here.

        Args:
            layers: Weights (n, I, O) and biases (n, 1, O).
            inputs: (n, B, F).
            wanted: (n, B, C) ones at the labels.
            step: Step size.
        """
        kept = [inputs]
        for place, (weight, bias) in zip(self._places, layers, strict=True):
            made = torch.bmm(kept[-1], weight)
            if bias is not None:
                made += bias
            kept.append(made.relu_() if place.rectified else made)
        slopes = torch.zeros_like(kept[-1])
        slopes[..., : self._classes] = torch.softmax(kept[-1][..., : self._classes], 2)
        slopes.sub_(wanted).mul_(1 / inputs.shape[1])
        for number in reversed(range(len(layers))):
            weight, bias = layers[number]
            below = torch.bmm(slopes, weight.transpose(1, 2)) if number else slopes  # before the weights change
            weight.baddbmm_(kept[number].transpose(1, 2), slopes, alpha=-step)
            if bias is not None:
                bias.sub_(slopes.sum(1, keepdim=True), alpha=step)
            if number and self._places[number - 1].rectified:
                below = torch.ops.aten.threshold_backward(below, kept[number], 0)
            slopes = below


def _place(layer: nn.Linear, following: nn.Module | None) -> _Place:
    parts = [slice(start := own.storage_offset(), start + own.numel()) for own in layer.parameters()]
    shape = (layer.out_features, layer.in_features)
    return _Place(parts[0], parts[1] if parts[1:] else None, shape, isinstance(following, nn.ReLU))


def batches(sizes: Sequence[int], batch: int) -> Iterator[tuple[slice, slice]]:
    """The steps of one epoch as (rows, samples of each row's order), every row's in its own order.

    Args:
        sizes: Samples of each row, falling.
        batch: B.
    """
    for start in range(0, sizes[0] - batch + 1, batch):
        yield slice(0, sum(size >= start + batch for size in sizes)), slice(start, start + batch)
    for size, rows in itertools.groupby(range(len(sizes)), key=lambda row: sizes[row]):
        if size % batch:
            first, *others = rows
            yield slice(first, first + 1 + len(others)), slice(size - size % batch, size)
