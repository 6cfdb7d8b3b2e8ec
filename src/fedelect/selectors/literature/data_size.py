"""Selection by data size: the clients with most samples among those that can finish."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.parameters import as_seconds
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class DataSize(AbstractSelector):
    """In the spirit of FedMCCS (AbdulRahman et al., IEEE Internet Things J. 2021): able clients, most data first.

    FedMCCS predicts by regression from processor, memory and energy whether a client can finish, and takes as many of
    the able ones as it can. Here a client is able if its forecast of training and upload is within the deadline; of
    the able ones the K with most samples are elected, then, if they are too few, others by their forecast. Before the
    first feedback the cohort is random.

    Differs from the original: no regression, for clients forecast their times; neither memory nor energy; and most data
    first, where the original has no such order (a public replication takes able clients at random).

    Args:
        clients: N.
        budget: K.
        deadline_s: Seconds that a round may take; None: all clients are able.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"sizes", "training_s", "upload_s"})
    advice: ClassVar[str] = "More data is better: the largest clients that meet the deadline."

    initial_arrays: ClassVar[Mapping[str, float]] = {"sizes": math.nan, "seconds": math.nan}

    def __init__(self, *, clients: int, budget: int, deadline_s: float | None = None, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._deadline = as_seconds("deadline_s", deadline_s)

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        seconds, sizes = fill_missing(self.arrays["seconds"]), fill_missing(self.arrays["sizes"])
        able = pool if self._deadline is None else pool[seconds[pool] <= self._deadline]
        largest = self._pick_best(sizes, slot, able, min(able.size, self.budget))
        others = np.setdiff1d(pool, largest)
        quickest = self._pick_best(-seconds, slot, others, self.budget - len(largest))
        return tuple(sorted([*largest, *quickest])), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        sizes, training, upload = feedback.sizes, feedback.training_s, feedback.upload_s
        assert sizes is not None and training is not None and upload is not None  # declared in `needs`
        self._update_known("sizes", sizes)
        self._update_known("seconds", training + upload)
