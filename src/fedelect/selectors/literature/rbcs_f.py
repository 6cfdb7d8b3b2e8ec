"""RBCS-F: the fastest cohort by a contextual bandit, under a long-term share for every client."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import Ridge, divide_by_mean
from fedelect.selectors.parameters import as_exploration, as_float
from fedelect.vocabulary import Cohort, Feedback, Floats, Ints, Selection, Signal

_FEATURES = ("training_s", "upload_s")


@final
class RbcsF(AbstractSelector):
    """RBCS-F (Huang et al., IEEE Trans. Parallel Distrib. Syst. 2021, arXiv 2011.01783), Algorithms 1 and 2.

    A round lasts as long as its slowest client. A client's time is estimated from its context, here its forecasts of
    training and upload, by ridge regression (C2UCB), and taken at its lower confidence bound tau. Every client has a
    queue Z that grows by the share `fairness` each slot and shrinks by 1 when it is elected. The cohort minimises

        V max(tau over members) - sum of Z over members,

    exactly: for each client as the slowest, the K - 1 longest queues among those faster. Before the first feedback the
    cohort is random.

    Args:
        clients: N.
        budget: K.
        fairness: beta, guaranteed share of slots for every client; from 0 to K / N. 0.5 K / N if left out.
        patience: V, weight of speed against fairness, in units of a typical round.
        exploration: alpha, the exploration weight.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"seconds", "training_s", "upload_s"})
    advice: ClassVar[str] = "Rounds should be short and yet every client must have a guaranteed share of them."

    initial_arrays: ClassVar[Mapping[str, float]] = {"training_s": math.nan, "upload_s": math.nan, "queue": 0.0}

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        fairness: float | None = None,
        patience: float = 20.0,
        exploration: float = 0.1,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._patience = as_float("patience", patience, low=0.0, high=1e9)
        self._exploration = as_exploration(exploration)
        most = self.budget / self.clients
        self._share = 0.5 * most if fairness is None else as_float("fairness", fairness, low=0.0, high=1.0)
        if self._share > most:
            raise ConfigurationError(f"fairness must be at most K / N = {most:g}, got {fairness}")
        self._ridge = Ridge(len(_FEATURES) + 1)

    def _contexts(self) -> Floats:
        columns = [divide_by_mean(self.arrays[name]) for name in _FEATURES]
        contexts: Floats = np.stack([*columns, np.ones(self.clients)], axis=1)
        return contexts

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        means, widths = self._ridge.estimate(self._contexts())
        bounds = np.maximum(means - self._exploration * widths, 0.0)
        typical = bounds[pool].mean()
        times = bounds / typical if typical > 0.0 else np.ones(self.clients)
        ties = np.array(self._pick_random(slot, pool, pool.size, "ties"))
        return self._cheapest(times, ties), ()

    def _cheapest(self, times: Floats, pool: Ints) -> Cohort:
        """The cohort of the least V max(tau) - sum(Z); `pool` is in the order in which ties are broken."""
        queue = self.arrays["queue"]
        order = pool[np.argsort(times[pool], kind="stable")]
        best, cohort = np.inf, order[: self.budget]
        for last in range(self.budget - 1, order.size):
            faster = order[:last]
            longest = faster[np.argsort(-queue[faster], kind="stable")[: self.budget - 1]]
            members = np.append(longest, order[last])
            cost = self._patience * times[order[last]] - queue[members].sum()
            if cost < best:
                best, cohort = cost, members
        return tuple(sorted(cohort.tolist()))

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        seconds, training, upload = feedback.seconds, feedback.training_s, feedback.upload_s
        assert seconds is not None and training is not None and upload is not None  # declared in `needs`
        self._update_known("training_s", training)
        self._update_known("upload_s", upload)
        members = np.array(selection.cohort)
        reported = members[~np.isnan(seconds[members])]
        self._ridge.add(self._contexts()[reported], seconds[reported])
        self._update_queues(selection.cohort)

    def _abandon(self, selection: Selection) -> None:
        self._update_queues(selection.cohort)

    def _update_queues(self, cohort: Cohort) -> None:
        served = np.zeros(self.clients)
        served[list(cohort)] = 1.0
        self.arrays["queue"] = np.maximum(self.arrays["queue"] + self._share - served, 0.0)

    def _memory(self) -> dict[str, Any]:
        return {"ridge": self._ridge.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._ridge.restore(memory["ridge"])
