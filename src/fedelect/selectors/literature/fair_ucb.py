"""Fair UCB: the fastest clients by an upper confidence bound, with queues that guarantee each a share of the slots."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_exploration, as_float
from fedelect.vocabulary import Feedback, Floats, Selection, Signal


@final
class FairUcb(AbstractSelector):
    """UCB with virtual queues, after Zhu, Zhou, Qian, Shi, Chen, Yang (IEEE Trans. Wireless Commun. 2022).

    A member's outcome is its speed, 1 - t / longest time seen so far. Every client has a queue Z that grows by the
    share `fairness` in each slot and shrinks by 1 when it is elected. The K clients with the highest

        V (mean outcome + exploration * sqrt(2 ln t / elections)) + Z

    are elected: the drift-plus-penalty rule for short rounds under a guaranteed share of slots. Clients never elected
    come first.

    Differs from the original: there training is asynchronous and one client is chosen at a time; here it is the K best
    of a synchronous slot. The scale of outcomes is ours. CS-UCB-Q (Xia et al., IEEE Trans. Wireless Commun. 2020) is
    synchronous and has the same sum of an index and a queue, with the index cut at 1; here it is not cut.

    Args:
        clients: N.
        budget: K.
        fairness: Guaranteed share of slots for every client; from 0 to K / N. 0.5 K / N if left out.
        patience: V, weight of speed against fairness.
        exploration: Exploration weight, a factor on the confidence width.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"seconds"})
    advice: ClassVar[str] = "Rounds should be short, speeds are not known beforehand, and all must have their share."

    initial_arrays: ClassVar[Mapping[str, float]] = {
        "total_s": 0.0,
        "reports": 0.0,
        "elections": 0.0,
        "queue": 0.0,
        "longest_s": 0.0,
    }

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        fairness: float | None = None,
        patience: float = 5.0,
        exploration: float = 0.3,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._patience = as_float("patience", patience, low=0.0, high=1e9)
        self._exploration = as_exploration(exploration)
        most = self.budget / self.clients
        self._share = 0.5 * most if fairness is None else as_float("fairness", fairness, low=0.0, high=1.0)
        if self._share > most:
            raise ConfigurationError(f"fairness must be at most K / N = {most:g}, got {fairness}")

    def indices(self, slot: int) -> Floats:
        """(N,) the clients' indices in `slot`; infinite where a client was never elected."""
        reports, elections = self.arrays["reports"], self.arrays["elections"]
        longest = max(float(self.arrays["longest_s"].max()), 1e-9)
        # A client that was elected but never reported its time counts as the slowest.
        speeds = np.where(reports > 0.0, 1.0 - self.arrays["total_s"] / np.maximum(reports, 1.0) / longest, 0.0)
        widths = np.sqrt(2.0 * math.log(slot) / np.maximum(elections, 1.0))
        indices = self._patience * (speeds + self._exploration * widths) + self.arrays["queue"]
        return np.where(elections > 0.0, indices, np.inf)

    def _choose(self, slot: int, available: Available) -> Choice:
        indices = self.indices(slot)
        cohort = self._pick_best(indices, slot, self._candidates(available))
        known = np.isfinite(indices[list(cohort)]).all()
        return cohort, tuple(indices[list(cohort)].tolist()) if known else ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.seconds is not None  # declared in `needs`
        members = np.array(selection.cohort)
        reported = members[~np.isnan(feedback.seconds[members])]
        seconds = feedback.seconds[reported]
        self.arrays["total_s"][reported] += seconds
        self.arrays["reports"][reported] += 1.0
        self.arrays["longest_s"][reported] = np.maximum(self.arrays["longest_s"][reported], seconds)
        self._count(selection)

    def _abandon(self, selection: Selection) -> None:
        self._count(selection)

    def _count(self, selection: Selection) -> None:
        served = np.zeros(self.clients)
        served[list(selection.cohort)] = 1.0
        self.arrays["elections"] += served
        self.arrays["queue"] = np.maximum(self.arrays["queue"] + self._share - served, 0.0)
