"""What one client does in one round: E epochs of minibatch SGD from the round's global model."""

from typing import Literal

import numpy as np

from fedelect.federation.linear.model import LinearLoss, Model, Scores, gradient
from fedelect.seeds import stream
from fedelect.vocabulary import Ints

Shuffle = Literal["epoch", "round", "slot"]
"""How often a client shuffles its samples: `model.shuffle`."""


def batch_orders(
    samples: int, epochs: int, *, seed: int, trial: int, slot: int, round_: int, client: int, shuffle: Shuffle = "epoch"
) -> Ints:
    """The order in which a client visits its samples in each epoch of a round.

    It depends on these numbers only, never on who else trains, so selectors compared in a trial share it. The
    stream is ("training", trial, slot, round, client), without the round where one order serves the whole slot.

    Returns:
        (E, D) each row a permutation of 0 .. D-1; read only and all rows the same unless shuffled every epoch.
    """
    if shuffle == "slot":
        rng = stream(seed, "training", trial, slot, client)
    else:
        rng = stream(seed, "training", trial, slot, round_, client)
    if shuffle == "epoch":
        return np.stack([rng.permutation(samples) for _ in range(epochs)])
    return np.broadcast_to(rng.permutation(samples), (epochs, samples))


def train_locally(
    loss: LinearLoss, model: Model, inputs: Scores, labels: Ints, orders: Ints, *, step: float, batch: int
) -> Model:
    """Minibatch SGD through the samples in the given orders; the last batch of an epoch may be shorter.

    Args:
        loss: Which loss.
        model: (F+1, C) to start from; not changed.
        inputs: (D, F).
        labels: (D,).
        orders: (E, D) from `batch_orders`.
        step: Step size.
        batch: B; a gradient is the mean over its batch, whatever the batch's length.

    Returns:
        (F+1, C).
    """
    targets = loss.targets(labels, model.shape[1], model.dtype)
    for order in orders:
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            model = model - step * gradient(loss, model, inputs[chosen], targets[chosen])
    return model
