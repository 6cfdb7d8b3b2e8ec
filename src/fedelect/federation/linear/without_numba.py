"""Local training of many jobs at one client in NumPy alone, for when numba is not installed.

Each job is trained by itself, with matrix products whose shapes follow from the client's data only, so a job's result
does not depend on the others. Orders that stay for all epochs are gathered once.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.scores import linear_scores
from fedelect.federation.linear.layout import Numbers
from fedelect.federation.linear.model import Scores
from fedelect.federation.linear.shares import Share, Shares
from fedelect.federation.train import train_locally
from fedelect.vocabulary import Ints

SUFFIX = "-numpy"


def train_by_gram(share: Share, models: Numbers, orders: NDArray[np.int32], follows: Ints) -> Numbers:
    """Train in score space; arguments and result as in `compiled.train_by_gram`."""
    return np.stack(
        [_train_one_by_gram(share, model, orders[index]) for model, index in zip(models, follows, strict=True)]
    )


def _train_one_by_gram(share: Share, model: Numbers, orders: NDArray[np.int32]) -> Numbers:
    settings, batches = share.settings, range(0, share.samples, share.settings.batch)
    targets = share.loss.targets(share.labels, share.classes, model.dtype)
    scores = linear_scores(model, share.inputs)
    gains = np.zeros_like(scores)
    rows: list[Numbers] = []
    for epoch in range(settings.epochs):
        order = orders[epoch % len(orders)]
        if epoch < len(orders):
            rows = [share.gram[order[start : start + settings.batch]] for start in batches]
        for start, rate, own in zip(batches, share.rates, rows, strict=True):
            chosen = order[start : start + settings.batch]
            change = -rate * share.loss.slopes(scores[chosen], targets[chosen])
            gains[chosen] += change
            scores += own.T @ change
    gained: Numbers = np.concatenate([share.inputs.T @ gains, gains.sum(axis=0, keepdims=True)])
    return model + gained


def train_by_primal(share: Share, models: Numbers, orders: NDArray[np.int32], follows: Ints) -> Numbers:
    """Train the models themselves, which is the plain loop; arguments and result as in `compiled.train_by_gram`."""
    settings = share.settings
    every = np.broadcast_to(orders, (len(orders), settings.epochs, share.samples))
    return np.stack(
        [
            train_locally(
                share.loss,
                model,
                share.inputs,
                share.labels,
                every[index].astype(np.int64),
                step=settings.step,
                batch=settings.batch,
            )
            for model, index in zip(models, follows, strict=True)
        ]
    )


def score_tests(shares: Shares, models: Sequence[Numbers]) -> Iterator[Scores]:
    """Yield for each model the (all test samples, C) scores of all clients' test shares, client after client."""
    for model in models:
        yield np.concatenate([linear_scores(model, inputs) for inputs in shares.tests])


def score_global_tests(shares: Shares, models: Sequence[Numbers]) -> Iterator[Scores]:
    """Yield for each model the (M, C) scores of the clean test set of all clients."""
    for model in models:
        yield linear_scores(model, shares.global_tests)


def score_clients(shares: Shares, model: Numbers, clients: Ints) -> list[Scores]:
    """Return for each of the clients the (D, C) scores of its test share."""
    return [linear_scores(model, shares.tests[client]) for client in clients.tolist()]
