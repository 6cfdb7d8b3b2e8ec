"""What a client does with its own data: the simulator's training and score, by the simulator's named streams."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.analytics import accuracy
from fedelect.equations.scores import linear_scores
from fedelect.federation.linear.model import LOSSES, Model
from fedelect.federation.train import batch_orders, train_locally

Array = NDArray[Any]


def train(
    model: Array,
    inputs: Array,
    labels: Array,
    *,
    loss: str,
    step: float,
    epochs: int,
    batch: int,
    seed: int,
    slot: int,
    round_: int,
    client: int,
) -> Model:
    """The model, (F+1, C), after a round of local training as client `client` does it in trial 0 of a simulation."""
    orders = batch_orders(len(labels), epochs, seed=seed, trial=0, slot=slot, round_=round_, client=client)
    return np.asarray(train_locally(LOSSES[loss], model, inputs, labels, orders, step=step, batch=batch))


def judge(model: Array, inputs: Array, labels: Array) -> float:
    """The share of these samples that the model gets right."""
    return accuracy(linear_scores(model, inputs), labels)
