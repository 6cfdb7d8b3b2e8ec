"""Every client's opinion of a trained model, and averages of opinions.

With m opinions of which fewer than half are false, the median stays within the range of the honest ones; the trimmed
mean does as long as the share of false ones is at most the share that is cut off at each end. The mean does not.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedelect._imports import import_callable
from fedelect.equations.scores import accuracy_of, linear_scores
from fedelect.errors import ConfigurationError, FeedbackError
from fedelect.scenario import Scenario
from fedelect.vocabulary import Floats, Ints

OpinionFunction = Callable[[NDArray[np.floating[Any]], Ints], float]
"""(scores (D, C), labels (D,)) -> opinion in [0, 1], or nan for none."""

Average = Literal["mean", "median", "trimmed"]
"""Kind of average; "trimmed" is the mean without the lowest and the highest opinions."""


def accuracy(scores: NDArray[np.floating[Any]], labels: Ints) -> float:
    """Share of the samples whose highest score is at their own class; nan if there are no samples.

    Args:
        scores: (D, C).
        labels: (D,).
    """
    return accuracy_of(scores, labels)


def load_opinion(name: str) -> OpinionFunction:
    """Return the function by which clients score a model: "accuracy", or your own as "module:function"."""
    return accuracy if name == "accuracy" else import_callable(name, what="opinion")


def survey(scenario: Scenario, model: NDArray[np.floating[Any]], opinion: OpinionFunction = accuracy) -> Floats:
    """Every client's opinion r of a linear `model`; see `judge`.

    Args:
        scenario: The clients and their test shares.
        model: (F+1, C).
        opinion: How a client scores the model.
    """
    return judge(scenario, [linear_scores(model, inputs) for inputs in scenario.test_inputs], opinion)


def judge(
    scenario: Scenario,
    scores: Sequence[NDArray[np.floating[Any]]],
    opinion: OpinionFunction = accuracy,
    *,
    clients: Ints | None = None,
) -> Floats:
    """Every client's opinion of a model, from the model's scores of its own test share.

    Args:
        scenario: The clients and their test shares.
        scores: For each client asked (D, C), the model's scores of its test share.
        opinion: How a client scores the model; it sees the model's scores of its own test share, and the labels.
        clients: The clients whose scores these are; None for all.

    Returns:
        (N,) opinions in [0, 1]; nan where a client has none or was not asked.

    Raises:
        FeedbackError: The opinion function fails, or returns something else than a number in [0, 1] or nan; the
            message names the client.
    """
    opinions = np.full(scenario.clients, np.nan)
    asked = range(scenario.clients) if clients is None else clients.tolist()
    for client, own in zip(asked, scores, strict=True):
        try:
            given: object = opinion(own, scenario.test_labels[client])
        except Exception as error:
            raise FeedbackError(f"the opinion function failed for client {client}: {error!r}") from error
        opinions[client] = _as_opinion(given, client)
    return opinions


def _as_opinion(given: object, client: int) -> float:
    if not isinstance(given, (int, float, np.integer, np.floating)) or not (0 <= given <= 1 or given != given):
        raise FeedbackError(
            f"an opinion must be a number in [0, 1], or nan for none; the function gave {given!r} for client {client}"
        )
    return float(given)


def average_opinion(opinions: Floats, kind: Average = "mean", *, trim: float = 0.2) -> float | None:
    """The average of the opinions present, (N,) with nan where there is none; None if there are none at all.

    Args:
        opinions: (N,); they may carry noise and so leave [0, 1].
        kind: Which average.
        trim: Share of the opinions that "trimmed" cuts off at each end, at least 0 and below 0.5; of m opinions it
            is ceil(trim * m), but at least one is left.
    """
    check_average(kind, trim)
    present = sorted(opinion for opinion in opinions.tolist() if not math.isnan(opinion))
    if not present:
        return None
    most = (len(present) - 1) // 2
    cut = {"mean": 0, "median": most, "trimmed": min(most, math.ceil(trim * len(present)))}[kind]
    kept = present[cut : len(present) - cut]
    return math.fsum(kept) / len(kept)


def check_average(kind: str, trim: float) -> None:
    """Raise ConfigurationError unless `average_opinion` takes these."""
    if kind not in ("mean", "median", "trimmed"):
        raise ConfigurationError(f'average: got {kind!r}; allowed: "mean", "median" or "trimmed"')
    if not 0.0 <= trim < 0.5:
        raise ConfigurationError(f"trim: got {trim!r}; allowed: a share from 0 to below 0.5, cut off at each end")
