"""The work that every contender does: slots of FedAvg and all clients' opinions of what came out.

Linear models on MNIST for `engine.py`; PyTorch modules on made-up images for `modules.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fedelect.analytics import survey
from fedelect.datasets import load_dataset
from fedelect.scenario import DataConfig, Dataset, ModelConfig, ScenarioConfig, build_scenario
from fedelect.scenario import Scenario as Scenario
from fedelect.seeds import stream

SEED = 1

Shuffle = Literal["epoch", "round", "slot"]

PIXELS, CLASSES, TESTS = 784, 10, 10_000
MODULES = {"mlp": "mlp", "cnn": "cnn", "residual": "benchmarks.contenders.plain_module:residual"}
"""Modules by the names that the benchmarks give them, as `model.kind` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a slot is; all else is the paper's scenario (L = 15, E = 10, B = 100, step 1e-7, raw pixels).

    Attributes:
        clients: N.
        budget: K.
        samples: D, the same for every client.
        skew: "iid", or "labels" for the paper's five i.i.d. clients among others that hold two classes each.
        module: One of MODULES, then it is `build_module_world`; empty for the linear model.
    """

    clients: int = 20
    budget: int = 5
    samples: int = 600
    skew: Literal["iid", "labels"] = "iid"
    module: str = ""

    def config(self, shuffle: Shuffle = "epoch") -> ScenarioConfig:
        """The scenario, with what contenders cannot choose: how often a client shuffles."""
        return ScenarioConfig(
            name="engine benchmark",
            seed=SEED,
            clients=self.clients,
            budget=self.budget,
            data=DataConfig(source="mnist", skew=self.skew, samples=(self.samples, self.samples)),
            model=ModelConfig(shuffle=shuffle),
        )

    @property
    def flop(self) -> float:
        """Floating point operations of one slot's SGD in primal form: scores and gradient of every sample visit."""
        config = self.config()
        visits = self.budget * self.samples * config.rounds_per_slot * config.model.epochs
        return visits * 4.0 * 785 * 10


class Visit(NamedTuple):
    """One slot of one replica; each replica is a trial of its own."""

    trial: int
    slot: int
    cohort: tuple[int, ...]


class Contender(Protocol):
    """Something that can do the work."""

    versions: str

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """The mean opinion of the model that each visit ends with."""


def visit(work: Work, trial: int, slot: int = 1) -> Visit:
    """The visit of this trial and slot, with a random cohort of K out of N."""
    drawn = stream(SEED, "benchmark cohort", trial, slot).choice(work.clients, size=work.budget, replace=False)
    return Visit(trial, slot, tuple(sorted(int(client) for client in drawn)))


def covering_visits(work: Work) -> list[Visit]:
    """Visits that between them train every client; for warming up."""
    starts = range(0, work.clients, work.budget)
    cohorts = [sorted({(start + i) % work.clients for i in range(work.budget)}) for start in starts]
    return [Visit(1_000_000 + number, 1, tuple(cohort)) for number, cohort in enumerate(cohorts)]


@cache
def build_world(work: Work, shuffle: Shuffle = "epoch") -> Scenario:
    """The clients and their data."""
    if work.module:
        return build_module_world(work)
    return build_scenario(work.config(shuffle), load_dataset("mnist"))


def build_module_world(work: Work) -> Scenario:
    """N clients with samples of made-up images: ten patterns under noise. One round of 2 epochs, batches of 20."""
    rng = stream(SEED, "images")
    patterns = rng.uniform(0, 255, (CLASSES, PIXELS))

    def draw(count: int) -> tuple[Any, Any]:
        labels = np.arange(count) % CLASSES
        return (patterns[labels] + rng.normal(0, 200, (count, PIXELS))).astype(np.float32), labels

    inputs, labels = draw(3 * work.clients * work.samples)
    tests, test_labels = draw(TESTS)
    config = ScenarioConfig(
        name="modules",
        seed=SEED,
        clients=work.clients,
        budget=work.budget,
        rounds_per_slot=1,
        start="warm",
        data=DataConfig(source="digits", skew="iid", samples=(work.samples, work.samples)),
        model=ModelConfig(kind=MODULES[work.module], step=0.02, epochs=2, batch=20),
    )
    return build_scenario(config, Dataset(inputs, labels, tests, test_labels))


def with_ones(inputs: NDArray[Any]) -> NDArray[np.float32]:
    """(D, 784) -> (D, 785): a last column of ones, whose weights are the bias."""
    return np.hstack([inputs, np.ones((len(inputs), 1))]).astype(np.float32)


def signs(labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """(D,) -> (D, 10): +1 at the sample's class, -1 elsewhere."""
    return (2 * np.eye(10)[labels] - 1).astype(np.float32)


def mean_opinion(world: Scenario, model: NDArray[Any]) -> float:
    """Mean accuracy of a model (785, 10) over all clients' test shares; the cheapest way, which contenders use."""
    return float(survey(world, np.asarray(model, dtype=np.float32)).mean())
