"""An engine that looks results up in an atlas: each slot draws one of its training seeds.

The seed of a slot comes from the stream (run's seed, "atlas", trial, slot). It is the same for all selectors of a
trial, so they are compared in pairs as in training. A "model" is an index into the table: number of the cohort, seed.
"""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from fedelect.atlas.table import Atlas
from fedelect.errors import ConfigurationError, UnmeasuredError
from fedelect.federation import ClientLosses, Job, Model, Scores, Training
from fedelect.scenario import Scenario, draw_arrivals
from fedelect.seeds import Draws
from fedelect.vocabulary import Floats, Ints

NAME = "atlas"

_UNTRAINED = -1


def draw_training_seed(atlas: Atlas, *, seed: int, trial: int, slot: int) -> int:
    """Return the training seed, 0 .. S-1, that a slot of a run draws."""
    return Draws(seed, NAME, trial, slot).below(atlas.seeds)


@final
class AtlasEngine:
    """An atlas as an engine; it has opinions but no scores (`fedelect.measurement.KnowsOpinions`)."""

    name = NAME

    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas
        self._uploads: dict[int, NDArray[np.bool_]] = {}

    def initial_model(self, scenario: Scenario) -> Model:
        """Return the index of the untrained model."""
        return np.array([_UNTRAINED, 0], dtype=np.float64)

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> list[Training]:
        """Return the index of each job's model, and whose uploads arrived in its training."""
        if not jobs:
            return []
        ranks = self._atlas.rank([job.cohort for job in jobs])
        drawn: dict[tuple[int, int, int], int] = {}
        trainings = []
        for job, rank in zip(jobs, ranks.tolist(), strict=True):
            slot = (job.seed, job.trial, job.slot)
            if slot not in drawn:
                drawn[slot] = draw_training_seed(self._atlas, seed=job.seed, trial=job.trial, slot=job.slot)
            arrivals = self._arrivals(drawn[slot])[:, list(job.cohort)]
            trainings.append(Training(model=np.array([rank, drawn[slot]], dtype=np.float64), arrivals=arrivals))
        return trainings

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> Sequence[Sequence[Scores]]:
        """Refuse: an atlas has no scores.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("an atlas knows opinions, not scores; ask it for `opinions`")

    def opinions(self, scenario: Scenario, models: Sequence[Model]) -> list[Floats]:
        """Return the (N,) opinions of each model, from the table."""
        atlas = self._atlas
        return [
            atlas.untrained if model[0] == _UNTRAINED else atlas.opinions(int(model[0]), int(model[1]))
            for model in models
        ]

    def losses(self, scenario: Scenario, model: Model, *, clients: Ints | None = None) -> ClientLosses:
        """Each client's loss of `model`, if the atlas keeps them (`Atlas.client_losses`).

        Raises:
            UnmeasuredError: It keeps none, or `model` is the untrained one, of which it knows opinions only.
        """
        if model[0] == _UNTRAINED:
            raise UnmeasuredError(
                "an atlas does not know the clients' losses of the untrained model; ask for those of a trained one"
            )
        mean, rms = self._atlas.client_losses(int(model[0]), int(model[1]))
        return ClientLosses(mean, rms).among(clients)

    def model_bits(self, scenario: Scenario) -> int:
        """The size of the models that were trained, bits; known of linear ones.

        Raises:
            UnmeasuredError: It is the atlas of another kind of model.
        """
        model = self._atlas.config.model
        if not model.linear:
            raise UnmeasuredError(
                f"how long an upload takes depends on the size of the model, which the atlas of a {model.kind!r} does "
                f"not know; choose a selector that does not look at times"
            )
        parameters = (self._atlas.world.features + 1) * self._atlas.world.classes
        return 8 * np.dtype(model.precision).itemsize * parameters

    def _arrivals(self, training_seed: int) -> NDArray[np.bool_]:
        """Return (L, N) whose upload would arrive: the draws of the atlas' build, which follow from its seed."""
        if training_seed not in self._uploads:
            world = self._atlas.world
            everybody = tuple(range(world.clients))
            self._uploads[training_seed] = draw_arrivals(
                world, everybody, seed=self._atlas.seed, trial=training_seed, slot=1
            )
        return self._uploads[training_seed]
