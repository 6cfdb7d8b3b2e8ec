"""BP-GP, the democratized counterpart of Set GP: the same election, from gossiped beliefs only."""

from typing import ClassVar, final

from fedelect.errors import MissingSignalError
from fedelect.rules import SetPrior, belief_value
from fedelect.selectors.gaussian_process.base import AbstractGaussianProcess
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class BpGp(AbstractGaussianProcess):
    """As `SetGp`, with the mean root of the gossiped beliefs instead of the average opinion.

    What BP-UCB gossips is enough. From the beliefs agreed on in each slot, every peer computes the same value of the
    set that trained (`belief_value`); from the cohorts and these values it computes the same next cohort (`elect_set`,
    exactly rounded). Clients reveal no more than under BP-UCB, and the server learns nothing of it.

    Args:
        clients: N.
        budget: K.
        exploration: Exploration weight of the acquisition value.
        forgetting: Factor on a value's weight after each slot; below 1 where values drift (warm start).
        memory: Most cohorts kept.
        seed: Fixes cold start, random starts and ties.
    """

    version: ClassVar[int] = 2
    needs: ClassVar[frozenset[Signal]] = frozenset({"beliefs"})
    advice: ClassVar[str] = "Opinions must not reach the server (FL&DA): set-gp from gossiped beliefs alone."

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        exploration: float = 2.0,
        forgetting: float = 1.0,
        memory: int = 96,
        seed: int,
    ) -> None:
        super().__init__(
            clients=clients,
            budget=budget,
            exploration=exploration,
            forgetting=forgetting,
            memory=memory,
            prior=SetPrior(),
            seed=seed,
        )

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.beliefs is not None  # declared in `needs`
        value = belief_value(feedback.beliefs)
        if value is None:
            raise MissingSignalError("BpGp needs at least one client's belief, this feedback holds none; use abandon()")
        self._add_reward(selection.cohort, value)
