"""Each client's loss of a trained model on its own training samples, for the selectors that need it."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from fedelect.equations.scores import linear_scores
from fedelect.federation.linear.model import LOSSES, Model
from fedelect.scenario import Scenario
from fedelect.vocabulary import Floats


class ClientLosses(NamedTuple):
    """Losses of one model.

    Attributes:
        mean: (N,) mean over each client's own training samples.
        rms: (N,) root of the mean of their squares.
    """

    mean: Floats
    rms: Floats


@runtime_checkable
class MeasuresLosses(Protocol):
    """An engine that can tell the losses of its models."""

    def losses(self, scenario: Scenario, model: Model) -> ClientLosses:
        """Each client's loss of `model` on its own training samples."""


def losses_of(sample_losses: list[Floats]) -> ClientLosses:
    """The two figures from the losses (D_n,) of each client's samples."""
    mean = np.array([own.mean() for own in sample_losses])
    rms = np.array([np.sqrt(np.mean(own**2)) for own in sample_losses])
    return ClientLosses(mean, rms)


def linear_losses(scenario: Scenario, model: Model) -> ClientLosses:
    """The losses of a linear model (F+1, C), the hinge or softmax loss that it is trained with."""
    loss = LOSSES[scenario.config.model.kind]
    samples = []
    for inputs, labels in zip(scenario.train_inputs, scenario.train_labels, strict=True):
        targets = loss.targets(labels, model.shape[1], model.dtype)
        samples.append(loss.values(linear_scores(model, inputs), targets).astype(np.float64))
    return losses_of(samples)
