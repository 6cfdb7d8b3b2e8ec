"""Local trainings side by side: models are the rows of a matrix, and `torch.func` takes all rows' steps at once.

Rows are sorted by the size of the client's share, so that those with a full minibatch left are always the first rows;
the short batch at the end of an epoch is taken by the rows of equal size together. Nothing is padded or masked, so any
loss will do. The kernels for many rows may sum in another order than those for one: results agree with
`train_one_by_one` to rounding, and may depend in the last bits on which rows are there.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from fedelect.federation.linear.model import Model
from fedelect.federation.torch.local_training import DataTensors, LocalTraining, make_optimiser, put_gradient
from fedelect.federation.torch.network import Network, Part, seed_generator
from fedelect.scenario import ModelConfig

STACK_NUMBERS = 2**20
"""How many weights and inputs may be in a stack. What a module makes of them, such as the maps of a convolution, can be
a hundred times as much; larger stacks gained little on small modules and cost gigabytes on large ones."""

AGREEMENT = 1e-3
"""How far, relative to the largest entry, a stacked gradient may be from a looped one on the trial batch."""

Gradients = Callable[[dict[str, Tensor], dict[str, Tensor], Tensor, Tensor], dict[str, Tensor]]
"""(trained (n, ...), untrained (n, ...), inputs (n, B, F), labels (n, B)) -> gradients (n, ...), all by name."""


def train_stacked(
    network: Network, config: ModelConfig, data: DataTensors, trainings: Sequence[LocalTraining]
) -> list[Model]:
    """Train all in stacks of bounded size; return the models (P,) in order."""
    per_row = 3 * len(network.flat) + config.batch * data.inputs.shape[1]
    most = max(1, STACK_NUMBERS // per_row)
    by_size = sorted(range(len(trainings)), key=lambda index: -trainings[index].orders.shape[1])
    models: dict[int, Model] = {}
    for start in range(0, len(trainings), most):
        chosen = by_size[start : start + most]
        trained = _train_rows(network, config, data, [trainings[index] for index in chosen])
        models.update(zip(chosen, trained, strict=True))
    return [models[index] for index in range(len(trainings))]


def _train_rows(
    network: Network, config: ModelConfig, data: DataTensors, trainings: Sequence[LocalTraining]
) -> list[Model]:
    device = network.flat.device
    flat = torch.tensor(np.stack([training.model for training in trainings]), device=device)
    sizes = [training.orders.shape[1] for training in trainings]
    orders = np.zeros((len(trainings), config.epochs, sizes[0]), dtype=np.int64)
    for row, (training, size) in enumerate(zip(trainings, sizes, strict=True)):
        orders[row, :, :size] = training.orders + data.starts[training.client]
    chosen = torch.tensor(orders, device=device)
    weights = flat[:, : len(network.weights)]
    optimiser = make_optimiser(config, weights)
    gradients = stacked_gradients(network)
    network.module.train()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        for epoch in range(config.epochs):
            for rows, samples in batches(sizes, config.batch):
                batch = chosen[rows, epoch, samples]
                gradient = gradients(
                    _views(flat[rows], network.trained),
                    _views(flat[rows], network.untrained),
                    data.inputs[batch],
                    data.labels[batch],
                )
                joined = torch.cat([gradient[part.name].flatten(1) for part in network.trained], dim=1)
                optimiser.step(weights[rows], joined, rows)
    return list(flat.cpu().numpy())


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


def stacked_gradients(network: Network) -> Gradients:
    """Return the function that computes gradients of many models, each on its own batch."""

    def loss(trained: dict[str, Tensor], untrained: dict[str, Tensor], inputs: Tensor, labels: Tensor) -> Tensor:
        return network.loss(functional_call(network.module, trained | untrained, (inputs,)), labels)

    return vmap(grad(loss), randomness="error")


def can_stack(network: Network, data: DataTensors, model: Model) -> bool:
    """Whether the module can be trained in a stack; found out by trying, on a few samples.

    It cannot if its forward pass in training mode draws (dropout) or changes a buffer (BatchNorm), if torch cannot
    vectorise it, or if what comes out is not the gradient that the loop gets.
    """
    inputs, labels = data.inputs[:4], data.labels[:4]
    network.load(model)
    seed_generator(network.flat.device, 0)
    network.module.train()
    before = network.buffers()
    put_gradient(network, inputs, labels)
    if any(not torch.equal(before[name], buffer) for name, buffer in network.buffers().items()):
        return False
    flat = network.flat.expand(2, -1).clone()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradient = stacked_gradients(network)(
                _views(flat, network.trained),
                _views(flat, network.untrained),
                inputs.expand(2, *inputs.shape),
                labels.expand(2, *labels.shape),
            )
    except Exception:  # whatever it is that torch cannot do with this module
        return False
    joined = torch.cat([gradient[part.name].flatten(1) for part in network.trained], dim=1)
    return bool((joined - network.gradient).abs().max() <= AGREEMENT * network.gradient.abs().max())


def _views(flat: Tensor, parts: Sequence[Part]) -> dict[str, Tensor]:
    return {part.name: flat[:, part.start : part.end].reshape(-1, *part.shape) for part in parts}
