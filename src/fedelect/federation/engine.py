"""The interface of training engines, and engines by name.

An engine trains batches of jobs, all replicas of one scenario together. Its models are arrays of one shape, which the
loop passes on and saves but never looks into.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol, final, runtime_checkable

from fedelect.equations.scores import accuracy_of, linear_scores
from fedelect.errors import ConfigurationError
from fedelect.federation.linear.engine import StackedEngine
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.train import (
    ClientLosses,
    Job,
    Training,
    initial_model,
    linear_client_accuracies,
    linear_losses,
    train,
)
from fedelect.records import library_versions
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.vocabulary import Floats, Ints

DEFAULT_ENGINE = "auto"
"""Engine that is taken if none is named: `torch-layers` for PyTorch modules, else the faster of `gram` and `primal`."""

_LINEAR: dict[str, Literal["auto", "gram", "primal"]] = {"auto": "auto", "gram": "gram", "primal": "primal"}
_TORCH: dict[str, Literal["loop", "layers"]] = {
    "auto": "layers",
    "torch": "layers",
    "torch-layers": "layers",
    "torch-loop": "loop",
}


class Engine(Protocol):
    """Trains models of one kind."""

    @property
    def name(self) -> str:
        """Name in the records; engines whose results may differ in the last bit have different names."""

    def initial_model(self, scenario: Scenario) -> Model:
        """Model that every cold start begins with."""

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        """Train every job; the results come in the same order, and none depends on which others are there."""

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> Iterable[Sequence[Scores]]:
        """For each model, and in it for each client, the (D, C) scores of that client's own test share.

        The highest score of a row is the predicted class. May be lazy: one model's scores are used before the next's.

        Args:
            scenario: The world.
            models: The models.
            clients: For each model the clients to score, sorted; only their shares cost anything. None for all.
        """


@runtime_checkable
class MeasuresLosses(Protocol):
    """An engine that can compute the losses of its models."""

    def losses(self, scenario: Scenario, model: Model, *, clients: Ints | None = None) -> ClientLosses:
        """Each client's loss of `model` on its own training samples; nan for those not in `clients` (None: all)."""


@runtime_checkable
class MeasuresAccuracy(Protocol):
    """An engine that can measure its models on clean test data."""

    def accuracies(self, scenario: Scenario, models: Sequence[Model]) -> Sequence[float]:
        """Accuracy of each model on the clean test set of all clients."""

    def client_accuracies(self, scenario: Scenario, model: Model) -> Floats:
        """(N,) accuracy of the model on each client's own clean test share; nan where that is empty."""


@final
class PlainEngine:
    """Linear models by the reference loop of `train`."""

    name = "plain"

    def initial_model(self, scenario: Scenario) -> Model:
        """(F+1, C) zeros."""
        return initial_model(scenario)

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        """One job after the other; equal ones once."""
        return train(scenario, jobs)

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> Iterator[list[Scores]]:
        """Inputs times weights plus bias."""
        for index, model in enumerate(models):
            asked = range(scenario.clients) if clients is None else clients[index].tolist()
            yield [linear_scores(model, scenario.test_inputs[client]) for client in asked]

    def losses(self, scenario: Scenario, model: Model, *, clients: Ints | None = None) -> ClientLosses:
        """Each client's loss of `model` on its own training samples."""
        return linear_losses(scenario, model, clients)

    def accuracies(self, scenario: Scenario, models: Sequence[Model]) -> list[float]:
        """Accuracy of each model on the clean test set of all clients."""
        inputs, labels = scenario.global_test_inputs, scenario.global_test_labels
        return [accuracy_of(linear_scores(model, inputs), labels) for model in models]

    def client_accuracies(self, scenario: Scenario, model: Model) -> Floats:
        """(N,) accuracy of the model on each client's own clean test share."""
        return linear_client_accuracies(scenario, model)


def engine_names(config: ScenarioConfig) -> tuple[str, ...]:
    """Names of the engines that can train the models of `config`.

    >>> engine_names(ScenarioConfig())
    ('auto', 'plain', 'gram', 'primal')
    """
    return ("auto", "plain", "gram", "primal") if config.model.linear else tuple(_TORCH)


def make_engine(name: str, config: ScenarioConfig) -> Engine:
    """Make an engine by its name, for the models of `config`.

    "auto" suits any scenario. For linear models there are "plain", the reference loop, and "gram" and "primal", the
    two paths of `StackedEngine`; for PyTorch modules "torch-layers" (also called "torch") and "torch-loop", the
    two paths of `TorchEngine`.

    Raises:
        ConfigurationError: There is no such engine for these models.
        MissingExtraError: The models need PyTorch, which is not installed.
    """
    if name not in engine_names(config):
        names = ", ".join(engine_names(config))
        raise ConfigurationError(f'engine: got {name!r}; allowed with model.kind = "{config.model.kind}": {names}')
    if not config.model.linear:
        from fedelect.federation.torch.engine import TorchEngine  # PyTorch takes seconds to load

        return TorchEngine(_TORCH[name])
    return PlainEngine() if name == PlainEngine.name else StackedEngine(_LINEAR[name])


def versions_of(engine: str) -> dict[str, str]:
    """Versions of all that can change the last bit of a run's numbers, by the engine's name in the records."""
    if engine.startswith("torch"):
        return library_versions("torch", *(["numba"] if engine.startswith("torch-layers") else []))
    return library_versions(*(["numba"] if engine.startswith("stacked") else []))
