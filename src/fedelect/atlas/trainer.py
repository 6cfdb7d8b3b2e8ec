"""Train the cohorts of an atlas, here or in a worker process."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.analytics import load_opinion
from fedelect.atlas.table import AtlasPlan
from fedelect.errors import ConfigurationError
from fedelect.federation import Engine, Job, MeasuresLosses, Model, make_engine
from fedelect.measurement import opinions_on
from fedelect.scenario import Dataset, Scenario, build_scenario
from fedelect.vocabulary import Cohort, Floats


@dataclass(frozen=True, eq=False)
class Trained:
    """The clients' opinions and losses of the models of n cohorts.

    Attributes:
        opinions: (n, N)
        losses: (2, n, N) mean, and root of the mean square, of each client's losses; None unless asked for.
    """

    opinions: Floats
    losses: Floats | None


class Trainer:
    """Train chunks of cohorts; each process builds the scenario itself."""

    def __init__(self, plan: AtlasPlan, dataset: Dataset, engine: str) -> None:
        self._plan, self._engine_name = plan, engine
        self._dataset: Dataset | None = dataset
        self._made: tuple[Scenario, Engine] | None = None

    def train(self, training_seed: int, cohorts: Sequence[Cohort], losses: bool = False) -> Trained:
        """Train each cohort and return the clients' opinions of the models."""
        with threadpool_limits(limits=1, user_api="blas"):  # the same numbers on any number of cores
            return self._train(training_seed, cohorts, losses)

    def _train(self, training_seed: int, cohorts: Sequence[Cohort], losses: bool) -> Trained:
        config = self._plan.config
        if self._made is None:
            assert self._dataset is not None
            self._made = build_scenario(config, self._dataset), make_engine(self._engine_name, config)
            self._dataset = None  # the clients have their shares
        world, engine = self._made
        jobs = [Job(cohort=cohort, seed=self._plan.seed, trial=training_seed, slot=1) for cohort in cohorts]
        models = [training.model for training in engine.train(world, jobs)]
        opinions = np.array(list(opinions_on(world, models, engine=engine, opinion=load_opinion(config.opinion))))
        return Trained(opinions, losses_on(world, models, engine) if losses else None)


def losses_on(scenario: Scenario, models: Sequence[Model], engine: Engine) -> Floats:
    """(2, n, N) mean, and root of the mean square, of each client's losses of each model."""
    if not isinstance(engine, MeasuresLosses):
        raise ConfigurationError(f"losses are to be kept, which the engine {engine.name!r} does not measure")
    found = [engine.losses(scenario, model) for model in models]
    return np.stack([[one.mean for one in found], [one.rms for one in found]])
