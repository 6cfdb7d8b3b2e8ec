"""The training seam: what the loop asks of whatever trains.

An engine trains batches of jobs, all replicas of one world together, and knows what its models are: arrays of one
shape, which the loop passes on, saves and never looks into.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, final

from fedelect.equations.scores import linear_scores
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.losses import ClientLosses, linear_losses
from fedelect.federation.train import Job, Training, initial_model, train
from fedelect.scenario import Scenario


class Engine(Protocol):
    """Trains models of one kind."""

    @property
    def name(self) -> str:
        """What the records call it; engines whose results may differ in the last bit have different names."""

    def initial_model(self, scenario: Scenario) -> Model:
        """The model that every cold start begins with."""

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        """Train every job; the results come in the same order, and none depends on which others are there."""

    def scores(self, scenario: Scenario, models: Sequence[Model]) -> Iterable[Sequence[Scores]]:
        """For each model, and in it for each client, the (D, C) scores of that client's own test share.

        The highest score of a row is the predicted class. May be lazy: one model's scores are used before the next's.
        """


@final
class PlainEngine:
    """Linear models by the plain loop of `train`: the reference that faster engines are compared with."""

    name = "plain"

    def initial_model(self, scenario: Scenario) -> Model:
        """(F+1, C) zeros."""
        return initial_model(scenario)

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        """One job after the other; equal ones once."""
        return train(scenario, jobs)

    def scores(self, scenario: Scenario, models: Sequence[Model]) -> Iterator[list[Scores]]:
        """Inputs times weights plus bias."""
        for model in models:
            yield [linear_scores(model, inputs) for inputs in scenario.test_inputs]

    def losses(self, scenario: Scenario, model: Model) -> ClientLosses:
        """Each client's loss of `model` on its own training samples."""
        return linear_losses(scenario, model)
