"""Loss GP: Set GP that also listens to every client's loss."""

from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import LossSurrogate, SetPrior, loss_surrogate
from fedelect.rules.packing import pack, unpack
from fedelect.seeds import Draws
from fedelect.selectors.gaussian_process.base import AbstractSetProcess
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal

JUDGES = 128
"""Most clients whose losses are listened to; where there are more, that many of them, drawn once."""


@final
class LossGp(AbstractSetProcess):
    """As `SetGp`, with a hunch of what a set is worth from the losses that the clients report.

    All clients judge the trained model anyway. The loss of each on its own training samples tells more than the average
    opinion: which clients a cohort serves, and so who is like whom. Fitted over the cohorts played, the losses give the
    sum of their squares to be expected for every other set (`fedelect.rules.surrogate`); the process takes
    it as one more feature, and corrects it by the rewards. A loss that is missing counts as usual for that client.

    Args:
        clients: N.
        budget: K.
        exploration: How much to hope for, as in `SetGp`.
        forgetting: What is left of a reward's weight after each slot; below 1 where rewards drift (warm start).
        memory: Most cohorts remembered.
        hunch: Prior variance of the hunch's part in a value, where that of the members' worth is 0.7.
        seed: Fixes opening, random starts and ties.
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
        hunch: float = 0.5,
        seed: int,
    ) -> None:
        super().__init__(
            clients=clients,
            budget=budget,
            exploration=exploration,
            forgetting=forgetting,
            memory=memory,
            prior=SetPrior(hunch=hunch),
            seed=seed,
        )
        self._judges = np.array(Draws(self.seed, "judges").sample(self.clients, min(self.clients, JUDGES)))
        self._losses: dict[Cohort, Floats] = {}  # (2, J) weighted sum and weight of the losses after each cohort

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None and feedback.loss is not None  # declared in `needs`
        self._note(selection.cohort, feedback.reward, feedback.reward_noise**2)
        heard = feedback.loss[self._judges]
        there = ~np.isnan(heard)
        fade = self._ledger.forgetting
        kept = self._losses.get(selection.cohort, np.zeros((2, self._judges.size)))
        self._losses[selection.cohort] = fade * kept + np.stack([np.where(there, heard, 0.0), there])
        self._losses = {cohort: self._losses[cohort] for cohort in self._ledger.cohorts()}

    def _hunch(self) -> LossSurrogate | None:
        cohorts, _, weights, _, _ = self._ledger.evidence()
        sums = np.array(list(self._losses.values()))
        losses = np.where(sums[:, 1] > 0.0, sums[:, 0] / np.maximum(sums[:, 1], 1e-300), np.nan)
        return loss_surrogate(cohorts, weights, losses, clients=self.clients, judges=self._judges, seed=self.seed)

    def _memory(self) -> dict[str, Any]:
        return super()._memory() | {"losses": pack(np.array(list(self._losses.values())), "<f8")}

    def _recall(self, memory: dict[str, Any]) -> None:
        super()._recall(memory)
        cohorts, judges = self._ledger.cohorts(), self._judges.size
        sums = unpack(memory["losses"], "<f8", size=len(cohorts) * 2 * judges, what="losses").astype(np.float64)
        self._losses = dict(zip(cohorts, sums.reshape(len(cohorts), 2, judges), strict=True))
