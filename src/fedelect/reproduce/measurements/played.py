"""Many trials of one selector on an atlas, as arrays: no records, no files, no training."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedelect.atlas import Atlas, AtlasEngine
from fedelect.loop import FrameworkName, Replica, play_slot
from fedelect.records import mean_opinion
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import Floats, Ints

Make = Callable[[int, int, int], AbstractSelector]
"""(clients, budget, seed) -> selector."""


@dataclass(frozen=True, eq=False)
class Played:
    """What a selector did.

    Attributes:
        cohorts: (trials, T, K) who was elected.
        opinions: (trials, T) mean opinion.
    """

    cohorts: Ints
    opinions: Floats


def play_on(atlas: Atlas, make: Make, *, framework: FrameworkName, trials: int, slots: int, seed: int) -> Played:
    """Play `slots` slots of `trials` trials; seeds of selectors and slots are those of `fedelect run` on the atlas."""
    engine = AtlasEngine(atlas)
    clients, budget = atlas.config.clients, atlas.config.budget
    replicas = [
        Replica("", trial, atlas.world, make(clients, budget, derive(seed, "selection", trial)))
        for trial in range(trials)
    ]
    cohorts = np.empty((trials, slots, budget), dtype=np.int64)
    opinions = np.full((trials, slots), np.nan)
    for slot in range(1, slots + 1):
        records = play_slot(replicas, slot=slot, framework=framework, seed=seed, engine=engine)
        for trial, record in enumerate(records):
            cohorts[trial, slot - 1] = record.cohort
            mean = mean_opinion(record)
            opinions[trial, slot - 1] = np.nan if mean is None else mean
    return Played(cohorts, opinions)
