"""FedCS: as many clients as finish before the deadline, the quickest addition first."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.parameters import as_seconds
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal, as_int


@final
class FedCs(AbstractSelector):
    """FedCS (Nishio, Yonetani, ICC 2019, arXiv 1804.08333), Algorithm 3, with at most K clients in a round.

    The model is sent to all at once, which takes as long as its slowest receiver, T_d; a client receives as fast as it
    sends, as in the paper, so T_d is the largest upload time of the members. Clients then train at the same time and
    upload one after the other, so a client whose training ends while others upload costs its upload only. With Theta
    seconds passed since the distribution, client k adds what T_d grows by, and T_ul,k + max(0, T_ud,k - Theta). From
    candidates drawn at random (the resource request) the one that adds least is taken as long as T_d + Theta stays
    below the deadline.

    Forecasts come with the last feedback; before the first the cohort is random.

    Differs from the original: the contract asks for exactly K clients. The search ends with K, and where the deadline
    admits fewer, the places left go to those that add least beyond it. The times of the request itself and of the
    aggregation count as 0.

    Args:
        clients: N.
        budget: K.
        candidates: Clients asked for their resources, from K to N; half of all (at least K) if left out.
        deadline_s: Seconds within which a round, distribution included, must end; None: no limit.
        seed: Fixes candidates and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"training_s", "upload_s"})
    advice: ClassVar[str] = "A round must end by a deadline and clients forecast their times; quality does not count."

    initial_arrays: ClassVar[Mapping[str, float]] = {"training_s": math.nan, "upload_s": math.nan}

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        candidates: int | None = None,
        deadline_s: float | None = None,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._deadline = as_seconds("deadline_s", deadline_s)
        half = max(self.budget, (self.clients + 1) // 2)
        self._asked = half if candidates is None else as_int("candidates", candidates)
        if not self.budget <= self._asked <= self.clients:
            raise ConfigurationError(f"candidates must be from {self.budget} to {self.clients}, got {candidates}")

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        drawn = np.sort(self._pick_random(slot, pool, min(self._asked, pool.size), "resource-request"))
        training, upload = fill_missing(self.arrays["training_s"]), fill_missing(self.arrays["upload_s"])
        return self._greedy(slot, drawn.tolist(), training, upload), ()

    def _greedy(self, slot: int, left: list[int], training: Floats, upload: Floats) -> Cohort:
        sent, passed, chosen, beyond = 0.0, 0.0, list[int](), list[int]()  # T_d and Theta
        while left and len(chosen) < self.budget:
            adds = upload + np.maximum(0.0, training - passed)
            longer = np.maximum(upload - sent, 0.0)
            (quickest,) = self._pick_best(-(adds + longer), slot, np.array(left), 1)
            left.remove(quickest)
            ends = sent + float(longer[quickest]) + passed + float(adds[quickest])
            if self._deadline is None or ends < self._deadline:
                chosen.append(quickest)
                sent, passed = sent + float(longer[quickest]), passed + float(adds[quickest])
            else:
                beyond.append(quickest)
        return tuple(sorted(chosen + beyond[: self.budget - len(chosen)]))

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.training_s is not None and feedback.upload_s is not None  # declared in `needs`
        self._update_known("training_s", feedback.training_s)
        self._update_known("upload_s", feedback.upload_s)
