"""RBCS-F: the fastest cohort by a contextual bandit, under a long-term share for every client."""

import math
from bisect import insort
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import ClientRidges, divide_by_mean, known_then
from fedelect.selectors.parameters import as_exploration, as_float
from fedelect.vocabulary import Cohort, Feedback, Floats, Ints, Selection, Signal

_FEATURES = 3  # training, whether the client trained in the last slot, upload


@final
class RbcsF(AbstractSelector):
    """RBCS-F (Huang et al., IEEE Trans. Parallel Distrib. Syst. 2021, arXiv 2011.01783), Algorithms 1 and 2.

    A round lasts as long as its slowest client. A client's time is estimated from its context by a ridge regression of
    its own (C2UCB), and taken at its lower confidence bound tau, at least 0. The context is the forecast of training,
    whether the client trained in the last slot (it need not start cold), and the forecast of upload. Every client has
    a queue Z that grows by the share `fairness` each slot and shrinks by 1 when it is elected. The cohort minimises

        V max(tau over members) - sum of Z over members,

    exactly: for each client as the slowest, the K - 1 longest queues among those faster. Before the first feedback the
    cohort is random. A time belongs to the forecasts that were known when the cohort was elected; in the first slot,
    to those told after it.

    Differs from the original: forecasts stand for the share of the processor that is free and for the bandwidth, from
    which the original's context is made; they are divided by their means, and the bounds by theirs, so that V has a
    scale.

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

    version: ClassVar[int] = 2  # 1 had one regression for all clients
    initial_arrays: ClassVar[Mapping[str, float]] = {
        "training_s": math.nan,
        "upload_s": math.nan,
        "trained": 0.0,
        "queue": 0.0,
    }

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
        self._ridges = ClientRidges(self.clients, _FEATURES)

    def _contexts(self, training: Floats, upload: Floats) -> Floats:
        columns = [divide_by_mean(training), self.arrays["trained"], divide_by_mean(upload)]
        contexts: Floats = np.stack(columns, axis=1)
        return contexts

    def bounds(self) -> Floats:
        """(N,) lower confidence bound of each client's seconds, at least 0."""
        means, widths = self._ridges.estimate(self._contexts(self.arrays["training_s"], self.arrays["upload_s"]))
        return np.maximum(means - self._exploration * widths, 0.0)

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        bounds = self.bounds()
        typical = bounds[pool].mean()
        times = bounds / typical if typical > 0.0 else np.ones(self.clients)
        ties = np.array(self._pick_random(slot, pool, pool.size, "ties"))
        return self._cheapest(times, ties), ()

    def _cheapest(self, times: Floats, pool: Ints) -> Cohort:
        """The cohort of the least V max(tau) - sum(Z); `pool` is in the order in which ties are broken."""
        queue = self.arrays["queue"]
        order = pool[np.argsort(times[pool], kind="stable")]
        best, cohort = np.inf, order[: self.budget]
        longest = list[tuple[float, int]]()  # -Z and place of the K - 1 longest queues among those faster
        for last, slowest in enumerate(order.tolist()):
            if len(longest) == self.budget - 1:
                members = np.append(order[[place for _, place in longest]].astype(np.int64), slowest)
                cost = self._patience * times[slowest] - queue[members].sum()
                if cost < best:
                    best, cohort = cost, members
            insort(longest, (-float(queue[slowest]), last))
            del longest[self.budget - 1 :]
        return tuple(sorted(cohort.tolist()))

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        seconds, training, upload = feedback.seconds, feedback.training_s, feedback.upload_s
        assert seconds is not None and training is not None and upload is not None  # declared in `needs`
        members = np.array(selection.cohort)
        reported = members[~np.isnan(seconds[members])]
        contexts = self._contexts(
            known_then(self.arrays["training_s"], training), known_then(self.arrays["upload_s"], upload)
        )
        self._ridges.add(reported, contexts[reported], seconds[reported])
        self._update_known("training_s", training)
        self._update_known("upload_s", upload)
        self._count(selection.cohort)

    def _abandon(self, selection: Selection) -> None:
        self._count(selection.cohort)

    def _count(self, cohort: Cohort) -> None:
        served = np.zeros(self.clients)
        served[list(cohort)] = 1.0
        self.arrays["trained"] = served
        self.arrays["queue"] = np.maximum(self.arrays["queue"] + self._share - served, 0.0)

    def _memory(self) -> dict[str, Any]:
        return {"ridges": self._ridges.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._ridges.restore(memory["ridges"])
