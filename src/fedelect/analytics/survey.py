"""Every client's opinion of the trained model, on its own held-out data."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect._imports import import_callable
from fedelect.equations.scores import linear_scores, predicted_classes
from fedelect.errors import FeedbackError
from fedelect.scenario import Scenario
from fedelect.vocabulary import Floats, Ints

Opinion = Callable[[NDArray[np.floating[Any]], Ints], float]
"""(scores (D, C), labels (D,)) -> opinion in [0, 1], or nan for none."""


def accuracy(scores: NDArray[np.floating[Any]], labels: Ints) -> float:
    """Share of the samples whose highest score is at their own class; nan if there are no samples.

    Args:
        scores: (D, C).
        labels: (D,).
    """
    if not len(labels):
        return float("nan")
    return float((predicted_classes(scores) == labels).mean())


def load_opinion(name: str) -> Opinion:
    """The function by which clients score a model: "accuracy", or your own as "module:function"."""
    return accuracy if name == "accuracy" else import_callable(name, what="opinion")


def survey(scenario: Scenario, model: NDArray[np.floating[Any]], opinion: Opinion = accuracy) -> Floats:
    """Ask every client what it thinks of a linear `model`, r; see `judge`.

    Args:
        scenario: The world.
        model: (F+1, C).
        opinion: How a client scores the model.
    """
    return judge(scenario, [linear_scores(model, inputs) for inputs in scenario.test_inputs], opinion)


def judge(scenario: Scenario, scores: Sequence[NDArray[np.floating[Any]]], opinion: Opinion = accuracy) -> Floats:
    """Every client's opinion of a model, from what the model made of its own test share.

    Args:
        scenario: The world.
        scores: For each client (D, C), the model's scores of its test share.
        opinion: How a client scores the model; it sees the model's scores of its own test share, and the labels.

    Returns:
        (N,) opinions in [0, 1]; nan where a client has none.

    Raises:
        FeedbackError: The opinion function fails, or returns something else than a number in [0, 1] or nan; the
            message names the client.
    """
    opinions = np.empty(scenario.clients)
    for client, (own, labels) in enumerate(zip(scores, scenario.test_labels, strict=True)):
        try:
            given: object = opinion(own, labels)
        except Exception as error:
            raise FeedbackError(f"the opinion function failed for client {client}: {error!r}") from error
        opinions[client] = _checked(given, client)
    return opinions


def _checked(given: object, client: int) -> float:
    if not isinstance(given, (int, float, np.integer, np.floating)) or not (0 <= given <= 1 or given != given):
        raise FeedbackError(
            f"an opinion must be a number in [0, 1], or nan for none; the function gave {given!r} for client {client}"
        )
    return float(given)
