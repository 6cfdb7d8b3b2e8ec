"""Linear layers and rectifiers under cross-entropy and plain SGD: a few local trainings side by side, without autograd.

A stack holds `ROWS` trainings and takes their steps by batched matrix products, each as if alone. The first layer has
by far the most weights, and its steps need not touch them: a step on a batch b changes the layer's outputs for all D
samples X of the client by G[:, b] times the slopes, with G = X X' + 1. So where D is small, only those outputs are
followed, and the weights are brought up to date once at the end (`_BySamples`); elsewhere at each step (`_ByWeights`).
Products of one training or model alone, which have many rows, are left to a function `linear` (see `linear.py`).

A BLAS library may choose its kernel by the address of a matrix, so a row's bits would depend on its place in the stack.
Therefore every matrix starts at a multiple of `ALIGNMENT` bytes: all widths are padded with zeros, which stay zeros.
What is left to rely on is that a product of a batch depends on its own two matrices alone, in one thread. Torch keeps
this and does not promise it: `layers.repeats` tries it out for every batch size before training.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, final

import numpy as np
import torch
from torch import Tensor, nn

from fedelect.federation.linear.model import Model
from fedelect.federation.torch.linear import Linear, linear_of_torch
from fedelect.federation.torch.local_training import LocalTraining
from fedelect.federation.torch.shares import padded_width
from fedelect.scenario import ModelConfig

ROWS = 8
"""Trainings in a stack: enough to hide Python's share, few enough for the cache, whatever the number of replicas."""


class Shares(Protocol):
    """Training data of all clients, client after client; `DataTensors` is one.

    Attributes:
        labels: (sum of D,).
        starts: Where each client's share starts, and the end.
    """

    labels: Tensor
    starts: list[int]

    @property
    def padded_inputs(self) -> Tensor:
        """(sum of D, F padded) inputs through `pad`."""

    @property
    def products(self) -> Tensor | None:
        """(N, S, S) room for G of each client's samples, zeros beyond D and where not yet needed; None: by weights."""


class _Place(NamedTuple):
    """Where a linear layer (inputs I, outputs O) lies in a flat model, and whether a rectifier follows."""

    weight: slice
    bias: slice | None
    shape: tuple[int, int]
    rectified: bool

    def view(self, model: Tensor) -> tuple[Tensor, Tensor | None]:
        """Weights (O, I) and biases (O,) of a flat model (P,), as they lie there."""
        return model[self.weight].view(self.shape), None if self.bias is None else model[self.bias]

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


class _First(Protocol):
    """The first layer of a stack of n trainings; `rows` are some of them and `samples` (m, B) of their clients."""

    def forward(self, rows: slice, samples: Tensor) -> Tensor:
        """(m, B, O padded) outputs before the rectifier."""

    def step(self, rows: slice, samples: Tensor, slopes: Tensor, step: float) -> None:
        """Take a step along slopes (m, B, O padded) for these outputs, the last ones asked for."""

    def write(self, flat: Tensor) -> None:
        """Put the weights into flat models (n, P)."""


@final
class _ByWeights:
    """Its weights follow every step."""

    def __init__(self, place: _Place, data: Shares, clients: Sequence[int], flat: Tensor) -> None:
        self._place, self._data = place, data
        self._starts = torch.tensor([data.starts[client] for client in clients], device=flat.device)[:, None]
        self._weights, self._biases = place.read_weights(flat), place.read_biases(flat)
        self._inputs = flat.new_empty(0)

    def forward(self, rows: slice, samples: Tensor) -> Tensor:
        weights = self._weights[rows]
        chosen = (samples + self._starts[rows]).reshape(-1)
        self._inputs = self._data.padded_inputs.index_select(0, chosen).view(len(samples), -1, weights.shape[1])
        made = torch.bmm(self._inputs, weights)
        return made if self._biases is None else made.add_(self._biases[rows])

    def step(self, rows: slice, samples: Tensor, slopes: Tensor, step: float) -> None:
        self._weights[rows].baddbmm_(self._inputs.transpose(1, 2), slopes, alpha=-step)
        if self._biases is not None:
            self._biases[rows].sub_(slopes.sum(1, keepdim=True), alpha=step)

    def write(self, flat: Tensor) -> None:
        self._place.write(flat, self._weights, self._biases)


@final
class _BySamples:
    """Its outputs for all samples of a client follow from what the steps so far have added for each sample."""

    def __init__(
        self, place: _Place, data: Shares, products: Tensor, clients: Sequence[int], flat: Tensor, linear: Linear
    ) -> None:
        made, taken = place.shape
        self._place, self._span, self._linear = place, products.shape[1], linear
        self._shares = [data.padded_inputs[data.starts[one] : data.starts[one + 1], :taken] for one in clients]
        for client, share in zip(clients, self._shares, strict=True):
            if not products[client, 0, 0]:
                products[client, : len(share), : len(share)] = linear(share, share)
                products[client, : len(share), : len(share)] += 1.0 if place.bias else 0.0
        self._products = products[list(clients)].view(-1, self._span)
        self._outputs = flat.new_zeros((len(clients), self._span, padded_width(made, flat.dtype)))
        self._added = torch.zeros_like(self._outputs)
        for row, share in enumerate(self._shares):
            self._outputs[row, : len(share), :made] = linear(share, *place.view(flat[row]))
        self._firsts = torch.arange(0, len(self._products), self._span, device=flat.device)[:, None]

    def forward(self, rows: slice, samples: Tensor) -> Tensor:
        chosen = (samples + self._firsts[rows]).reshape(-1)
        first, products = (
            kept.index_select(0, chosen).view(*samples.shape, -1)
            for kept in (self._outputs.flatten(0, 1), self._products)
        )
        return torch.baddbmm(first, products, self._added[rows])

    def step(self, rows: slice, samples: Tensor, slopes: Tensor, step: float) -> None:
        chosen = (samples + self._firsts[rows]).reshape(-1)
        self._added.flatten(0, 1).index_add_(0, chosen, slopes.flatten(0, 1), alpha=-step)

    def write(self, flat: Tensor) -> None:
        made, _ = self._place.shape
        if self._place.bias:
            flat[:, self._place.bias] += self._added.sum(1)[:, :made]
        for model, added, share in zip(flat, self._added, self._shares, strict=True):
            self._place.view(model)[0].add_(self._linear(added[: len(share), :made].T, share.T))


@final
class DenseStack:
    """Trains the models of one network.

    Args:
        layers: Linear layers whose parameters are views of a flat model, at most one rectifier between two of them.
        classes: C.
        linear: What computes the products of one training or model alone.

    Attributes:
        tried: Shapes of steps that `layers.repeats` has tried, with what it found.
    """

    def __init__(self, layers: Sequence[nn.Module], classes: int, linear: Linear = linear_of_torch) -> None:
        followed = zip(layers, [*layers[1:], None], strict=True)
        self._places = [_place(one, next_) for one, next_ in followed if isinstance(one, nn.Linear)]
        self._classes, self._linear = classes, linear
        self.tried: dict[tuple[int, bool, int], bool] = {}

    def train(self, config: ModelConfig, data: Shares, trainings: Sequence[LocalTraining]) -> list[Model]:
        """Run E epochs of minibatch steps for each; return the models (P,) in order."""
        by_size = sorted(range(len(trainings)), key=lambda index: -trainings[index].orders.shape[1])
        models: dict[int, Model] = {}
        for start in range(0, len(trainings), ROWS):
            chosen = by_size[start : start + ROWS]
            trained = self._train_rows(config, data, [trainings[index] for index in chosen])
            models.update(zip(chosen, trained, strict=True))
        return [models[index] for index in range(len(trainings))]

    def score(self, models: Sequence[Model], inputs: Tensor, at_once: int) -> list[Tensor]:
        """Scores of inputs (D, F) by each model, (D, C); pieces of inputs stay in the cache for a few models.

        A model's bits do not depend on the others, for its products are its own.
        """
        scored = []
        for start in range(0, len(models), ROWS):
            flat = _stack_models(models[start : start + ROWS], inputs.device)
            layers = [[place.view(model) for place in self._places] for model in flat]
            pieces = [[self._score(own, piece) for own in layers] for piece in torch.split(inputs, at_once)]
            scored += [torch.cat(own) for own in zip(*pieces, strict=True)]
        return scored

    def _score(self, layers: list[tuple[Tensor, Tensor | None]], made: Tensor) -> Tensor:
        for place, (weight, bias) in zip(self._places, layers, strict=True):
            made = self._linear(made, weight, bias, place.rectified)
        return made

    def _train_rows(self, config: ModelConfig, data: Shares, trainings: Sequence[LocalTraining]) -> list[Model]:
        device = data.labels.device
        flat = _stack_models([training.model for training in trainings], device)
        clients = [training.client for training in trainings]
        sizes = [training.orders.shape[1] for training in trainings]
        orders = np.zeros((len(trainings), config.epochs, sizes[0]), dtype=np.int64)
        for row, (training, size) in enumerate(zip(trainings, sizes, strict=True)):
            orders[row, :, :size] = training.orders
        chosen = torch.tensor(orders, device=device)
        starts = torch.tensor([data.starts[client] for client in clients], device=device)[:, None]
        ones = torch.eye(self._classes, padded_width(self._classes, flat.dtype), dtype=flat.dtype, device=device)
        place, *above = self._places
        products = data.products
        first: _First = (
            _ByWeights(place, data, clients, flat)
            if products is None
            else _BySamples(place, data, products, clients, flat, self._linear)
        )
        weights = [place.read_weights(flat) for place in above]
        biases = [place.read_biases(flat) for place in above]
        for epoch in range(config.epochs):
            for rows, columns in batches(sizes, config.batch):
                samples = chosen[rows, epoch, columns]
                labels = data.labels.index_select(0, (samples + starts[rows]).reshape(-1))
                wanted = ones.index_select(0, labels).view(*samples.shape, -1)
                layers = zip(weights, biases, strict=True)
                own = [(weight[rows], None if bias is None else bias[rows]) for weight, bias in layers]
                slopes = self._step(first.forward(rows, samples), own, wanted, config.step)
                first.step(rows, samples, slopes, config.step)
        first.write(flat)
        for place, weight, bias in zip(above, weights, biases, strict=True):
            place.write(flat, weight, bias)
        return list(flat[:, : len(trainings[0].model)].cpu().numpy())

    def _step(self, made: Tensor, above: list[tuple[Tensor, Tensor | None]], wanted: Tensor, step: float) -> Tensor:
        """Take a step of each row above the first layer, in place; I, O and C are padded here.

        Args:
            made: (n, B, O) outputs of the first layer, which are overwritten.
            above: Weights (n, I, O) and biases (n, 1, O) of the other layers.
            wanted: (n, B, C) ones at the labels.
            step: Step size.

        Returns:
            (n, B, O) slopes of the mean loss for the first layer's outputs.
        """
        kept = []
        for place, (weight, bias) in zip(self._places, above, strict=False):
            kept.append(made.relu_() if place.rectified else made)
            made = torch.bmm(made, weight)
            if bias is not None:
                made += bias
        made[..., self._classes :] = -torch.inf  # torch's kernel is ten times as fast where the width is padded
        slopes = torch.softmax(made, 2).sub_(wanted).mul_(1 / made.shape[1])
        for place, taken, (weight, bias) in reversed(list(zip(self._places, kept, above, strict=False))):
            below = torch.bmm(slopes, weight.transpose(1, 2))  # before the weights change
            weight.baddbmm_(taken.transpose(1, 2), slopes, alpha=-step)
            if bias is not None:
                bias.sub_(slopes.sum(1, keepdim=True), alpha=step)
            slopes = torch.ops.aten.threshold_backward(below, taken, 0) if place.rectified else below
        return slopes


def _stack_models(models: Sequence[Model], device: torch.device) -> Tensor:
    """(n, P padded) copies."""
    count = len(models[0])
    dtype = torch.from_numpy(np.empty(0, models[0].dtype)).dtype
    flat = torch.zeros((len(models), padded_width(count, dtype)), dtype=dtype)
    for row, model in zip(flat.numpy(), models, strict=True):
        row[:count] = model
    return flat.to(device)


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
