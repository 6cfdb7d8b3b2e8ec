"""A visit is one client's training in one round; here visits are made one after the other.

What a visit gives depends on the visit alone, bit for bit: the module is loaded afresh, what it draws comes from a
stream of the visit, and all tensors are torch's own, aligned alike (kernels may sum differently where they are not).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedelect.errors import ConfigurationError
from fedelect.federation.linear.model import Model
from fedelect.federation.local_training import batch_orders
from fedelect.federation.torch.network import Network, seed_generator
from fedelect.federation.torch.optimisers import make_optimiser
from fedelect.federation.train import Job
from fedelect.scenario import ModelConfig, Scenario
from fedelect.seeds import derive
from fedelect.vocabulary import Ints


class Shares:
    """The data of all clients of a world as tensors on a device.

    Attributes:
        inputs: (sum of D, F) training inputs, client after client.
        labels: (sum of D,).
        starts: Where each client's share starts; one more than clients.
        test_inputs: (sum of test shares, F).
        test_sizes: Length of each client's test share.
    """

    def __init__(self, scenario: Scenario, device: torch.device) -> None:
        self.inputs = torch.tensor(np.concatenate(scenario.train_inputs), device=device)
        self.labels = torch.tensor(np.concatenate(scenario.train_labels), device=device)
        self.starts = [0, *np.cumsum(scenario.sizes).tolist()]
        self.test_inputs = torch.tensor(np.concatenate(scenario.test_inputs), device=device)
        self.test_sizes = [len(labels) for labels in scenario.test_labels]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visit:
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


def plan_visit(scenario: Scenario, job: Job, client: int, round_: int, model: Model) -> Visit:
    """The visit of (trial, slot, round, client), with the batch orders that every engine uses."""
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
    return Visit(client=client, model=model, orders=orders, seed=derive(job.seed, "module chance", *name))


def visit_one_by_one(network: Network, config: ModelConfig, shares: Shares, visits: Sequence[Visit]) -> list[Model]:
    """The model (P,) that each visit ends with: E epochs of minibatch steps by a fresh optimiser."""
    models = []
    for visit in visits:
        network.load(visit.model)
        seed_generator(network.flat.device, visit.seed)
        network.module.train()
        optimiser = make_optimiser(config, network.weights[None])
        for order in torch.tensor(visit.orders + shares.starts[visit.client], device=network.flat.device):
            for chosen in order.split(config.batch):
                put_gradient(network, shares.inputs[chosen], shares.labels[chosen])
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
        loss = network.loss(network.module(inputs), labels)
        loss.backward()  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ConfigurationError(
            f"model: training fails on a batch of {len(labels)} inputs: {error!r}; allowed: a module, a loss that "
            f"gives one number, and a batch size that can do this (a share's last batch may be a single input)"
        ) from error
