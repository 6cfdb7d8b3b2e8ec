"""Local training: what one client does in one round, one client after the other; and its optimisers.

A result depends on the `LocalTraining` alone, bit for bit: the module is loaded afresh, what it draws comes from a
stream of its own, and all tensors are torch's own, aligned alike (kernels may sum differently where they are not).

The optimisers work on rows of flat weights, with the formulas and defaults of `torch.optim`; one row is one client's
training. As in FedAvg, their momenta start from zero in each round at each client and are never sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fedelect.errors import ConfigurationError
from fedelect.federation.linear.model import Model
from fedelect.federation.torch.network import Network, seed_generator
from fedelect.federation.torch.shares import DataTensors
from fedelect.federation.train import Job, batch_orders
from fedelect.scenario import ModelConfig, Scenario
from fedelect.seeds import derive
from fedelect.vocabulary import Ints

FIRST_DECAY, SECOND_DECAY, FLOOR = 0.9, 0.999, 1e-8  # Adam's betas and epsilon


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalTraining:
    """What one client is to do in one round.

    Attributes:
        client: The client.
        model: (P,) the round's global model.
        orders: (E, D) its order of samples in each epoch.
        seed: Seed of whatever the module draws.
    """

    client: int
    model: Model
    orders: Ints
    seed: int


def plan_local_training(scenario: Scenario, job: Job, client: int, round_: int, model: Model) -> LocalTraining:
    """Plan the training of (trial, slot, round, client), with the batch orders that every engine uses."""
    name = (job.trial, job.slot, round_, client)
    orders = batch_orders(
        int(scenario.sizes[client]),
        scenario.config.model.epochs,
        seed=job.seed,
        trial=job.trial,
        slot=job.slot,
        round_=round_,
        client=client,
        shuffle=scenario.config.model.shuffle,
    )
    return LocalTraining(client=client, model=model, orders=orders, seed=derive(job.seed, "module chance", *name))


def train_one_by_one(
    network: Network, config: ModelConfig, data: DataTensors, trainings: Sequence[LocalTraining]
) -> list[Model]:
    """Run E epochs of minibatch steps by a fresh optimiser for each; return the models (P,)."""
    models = []
    for training in trainings:
        network.load(training.model)
        seed_generator(network.flat.device, training.seed)
        network.module.train()
        optimiser = make_optimiser(config, network.weights[None])
        for order in torch.tensor(training.orders + data.starts[training.client], device=network.flat.device):
            for chosen in order.split(config.batch):
                put_gradient(network, data.inputs.index_select(0, chosen), data.labels.index_select(0, chosen))
                optimiser.step(network.weights[None], network.gradient[None], slice(None))
        models.append(network.read())
    return models


def put_gradient(network: Network, inputs: Tensor, labels: Tensor) -> None:
    """Put the gradient of the batch's loss into `network.gradient`; zero for a parameter that the loss does not reach.

    Raises:
        ConfigurationError: The module or the loss fails.
    """
    network.gradient.zero_()
    try:
        loss = network.loss(network.body(inputs), labels)
        loss.backward()  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ConfigurationError(
            f"model: training fails on a batch of {len(labels)} inputs: {error!r}; allowed: a module, a loss that "
            f"gives one number, and a batch size that can do this (a share's last batch may be a single input)"
        ) from error


class Optimiser(Protocol):
    """Takes steps on rows of weights; rows may be at different numbers of steps."""

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
    """Make an optimiser of the kind `model.optimiser`, for weights of the shape (rows, T) of `like`."""
    return Adam(config, like) if config.optimiser == "adam" else Sgd(config, like)
