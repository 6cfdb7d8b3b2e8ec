"""A world with too many cohorts to train them all: each is trained when it is first elected, once, and kept.

So a cohort is worth the same whenever it is elected, as in an atlas of one training seed, which this is a part of:
what is kept of cohort c is what `Job(cohort=c, seed=1, trial=0, slot=1)` trains. "Models" are rows of what is kept.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedelect.analytics import judge
from fedelect.atlas.table import COUNTS, encode_losses, encode_opinions, opinions_from
from fedelect.errors import ConfigurationError
from fedelect.federation import ClientLosses, Engine, Job, MeasuresLosses, Model, Scores, Training
from fedelect.records.files import replace_file
from fedelect.scenario import Scenario
from fedelect.vocabulary import Cohort, Floats, Ints

SEED = 1
SAVE_EVERY = 500
"""Trainings after which all that is known is written down."""


class OnDemand:
    """An engine that trains a cohort when it is first asked for, cold, with an engine of its own.

    Args:
        world: The scenario, with its data.
        engine: What trains.
        path: The file in which what was trained is kept.
    """

    name = "on-demand"

    def __init__(self, world: Scenario, engine: Engine, path: Path) -> None:
        self._world, self._engine, self._path = world, engine, path
        self._test_sizes: Ints = np.array([len(labels) for labels in world.test_labels], dtype=np.int64)
        self._rows: dict[Cohort, int] = {}
        self._counts: list[NDArray[Any]] = []
        self._losses: dict[int, NDArray[Any]] = {}
        self._recent: dict[int, Model] = {}  # of the last batch, whose losses are asked for next if ever
        self._unsaved = 0
        if path.exists():
            self._load()

    @property
    def known(self) -> list[Cohort]:
        """The cohorts that were trained."""
        return list(self._rows)

    def worth(self, cohorts: Sequence[Cohort]) -> Floats:
        """(n,) mean opinion of each cohort's model; those not known are trained."""
        self._learn(cohorts)
        return np.array([np.nanmean(self._opinions(self._rows[cohort])) for cohort in cohorts])

    def initial_model(self, scenario: Scenario) -> Model:
        """Nobody asks for it in a cold start."""
        raise ConfigurationError("what is trained on demand has no untrained model")

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> list[Training]:
        """The row of each job's cohort; all uploads arrive."""
        self._learn([job.cohort for job in jobs])
        arrivals = np.ones((self._world.config.rounds_per_slot, self._world.budget), dtype=np.bool_)
        return [Training(model=np.array([self._rows[job.cohort]], dtype=np.float64), arrivals=arrivals) for job in jobs]

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> Sequence[Sequence[Scores]]:
        """None are kept."""
        raise ConfigurationError("what is trained on demand knows opinions, not scores")

    def opinions(self, scenario: Scenario, models: Sequence[Model]) -> list[Floats]:
        """For each model the (N,) opinions that are kept."""
        return [self._opinions(int(model[0])) for model in models]

    def losses(self, scenario: Scenario, model: Model, *, clients: Ints | None = None) -> ClientLosses:
        """Each client's loss of `model`; it is trained again if they are not kept."""
        row = int(model[0])
        if row not in self._losses:
            assert isinstance(self._engine, MeasuresLosses)
            if row not in self._recent:
                self._recent |= zip([row], self._models([list(self._rows)[row]]), strict=True)
            found = self._engine.losses(self._world, self._recent[row])
            self._losses[row] = encode_losses(np.stack([found.mean, found.rms]))
            self._unsaved += 1
        mean, rms = self._losses[row].astype(np.float64)
        return ClientLosses(mean, rms).among(clients)

    def model_bits(self, scenario: Scenario) -> int:
        """Size of a model, bits."""
        precision = np.dtype(self._world.config.model.precision)
        return 8 * precision.itemsize * (self._world.features + 1) * self._world.classes

    def save(self) -> None:
        """Write down all that is known."""
        content = io.BytesIO()
        clients = self._world.clients
        np.savez_compressed(
            content,
            cohorts=np.array(self.known, dtype=np.uint8).reshape(-1, self._world.budget),
            counts=np.array(self._counts, dtype=COUNTS).reshape(-1, clients),
            loss_rows=np.array(list(self._losses), dtype=np.int64),
            losses=np.array(list(self._losses.values()), dtype=np.float16).reshape(-1, 2, clients),
        )
        replace_file(self._path, content.getvalue())
        self._unsaved = 0

    def _opinions(self, row: int) -> Floats:
        return opinions_from(self._counts[row], self._test_sizes)

    def _learn(self, cohorts: Sequence[Cohort]) -> None:
        missing = sorted({cohort for cohort in cohorts if cohort not in self._rows})
        self._recent = {}
        for start in range(0, len(missing), 100):
            part = missing[start : start + 100]
            models = self._models(part)
            for cohort, model, of_cohort in zip(part, models, self._engine.scores(self._world, models), strict=True):
                self._recent[len(self._counts)] = model
                self._rows[cohort] = len(self._counts)
                self._counts.append(encode_opinions(judge(self._world, of_cohort), self._test_sizes, COUNTS))
        self._unsaved += len(missing)
        if self._unsaved >= SAVE_EVERY:
            self.save()

    def _models(self, cohorts: Sequence[Cohort]) -> list[Model]:
        jobs = [Job(cohort=cohort, seed=SEED, trial=0, slot=1) for cohort in cohorts]
        with threadpool_limits(limits=1, user_api="blas"):
            return [training.model for training in self._engine.train(self._world, jobs)]

    def _load(self) -> None:
        with np.load(self._path, allow_pickle=False) as file:
            self._rows = {tuple(cohort): row for row, cohort in enumerate(file["cohorts"].tolist())}
            self._counts = list(file["counts"])
            self._losses = dict(zip(file["loss_rows"].tolist(), file["losses"], strict=True))
