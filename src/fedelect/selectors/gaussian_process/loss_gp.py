"""Loss GP: Set GP with a surrogate fitted to the clients' losses."""

from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import LossSurrogate, SetPrior, fit_loss_surrogate, pack, unpack
from fedelect.seeds import Draws
from fedelect.selectors.gaussian_process.base import AbstractGaussianProcess
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal

MOST_REPORTERS = 128
"""Most clients whose losses are used; of more clients, this many are drawn once."""


@final
class LossGp(AbstractGaussianProcess):
    """As `SetGp`, with a surrogate of a set's value from the losses that the clients report.

    A client's loss on its own training samples shows which cohorts serve it, and so which clients are alike: more than
    the average opinion does. Fitted to the cohorts played, the losses give the expected sum of their squares for every
    other set (`fedelect.rules.surrogate`). The process takes this score as a linear feature, which the rewards correct.
    A missing loss counts as that client's mean.

    Args:
        clients: N.
        budget: K.
        exploration: Exploration weight of the acquisition value.
        forgetting: Factor on a reward's weight after each slot; below 1 where rewards drift (warm start).
        memory: Most cohorts kept.
        surrogate: Prior variance of the surrogate's coefficient; that of the sum over members is 0.7.
        seed: Fixes cold start, random starts and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward", "loss"})
    advice: ClassVar[str] = "As set-gp, where the server may also see every client's loss: it learns in fewer slots."

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        exploration: float = 2.0,
        forgetting: float = 1.0,
        memory: int = 96,
        surrogate: float = 0.5,
        seed: int,
    ) -> None:
        super().__init__(
            clients=clients,
            budget=budget,
            exploration=exploration,
            forgetting=forgetting,
            memory=memory,
            prior=SetPrior(surrogate=surrogate),
            seed=seed,
        )
        self._reporters = np.array(Draws(self.seed, "judges").sample(self.clients, min(self.clients, MOST_REPORTERS)))
        self._losses: dict[Cohort, Floats] = {}  # (2, J) weighted sum and weight of the losses after each cohort

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None and feedback.loss is not None  # declared in `needs`
        self._add_reward(selection.cohort, feedback.reward, feedback.reward_noise**2)
        losses = feedback.loss[self._reporters]
        present = ~np.isnan(losses)
        fade = self._statistics.forgetting
        kept = self._losses.get(selection.cohort, np.zeros((2, self._reporters.size)))
        self._losses[selection.cohort] = fade * kept + np.stack([np.where(present, losses, 0.0), present])
        self._losses = {cohort: self._losses[cohort] for cohort in self._statistics.cohorts()}

    def _surrogate(self) -> LossSurrogate | None:
        cohorts, _, weights, _, _ = self._statistics.evidence()
        sums = np.array(list(self._losses.values()))
        losses = np.where(sums[:, 1] > 0.0, sums[:, 0] / np.maximum(sums[:, 1], 1e-300), np.nan)
        return fit_loss_surrogate(
            cohorts, weights, losses, clients=self.clients, reporters=self._reporters, seed=self.seed
        )

    def _memory(self) -> dict[str, Any]:
        return super()._memory() | {"losses": pack(np.array(list(self._losses.values())), "<f8")}

    def _recall(self, memory: dict[str, Any]) -> None:
        super()._recall(memory)
        cohorts, reporters = self._statistics.cohorts(), self._reporters.size
        sums = unpack(memory["losses"], "<f8", size=len(cohorts) * 2 * reporters, what="losses").astype(np.float64)
        self._losses = dict(zip(cohorts, sums.reshape(len(cohorts), 2, reporters), strict=True))
