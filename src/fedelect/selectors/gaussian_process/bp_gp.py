"""BP-GP, the democratized counterpart of Set GP: the same election from gossiped beliefs alone."""

from typing import ClassVar, final

from fedelect.errors import MissingSignalError
from fedelect.rules import SetPrior, belief_value
from fedelect.selectors.gaussian_process.base import AbstractSetProcess
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class BpGp(AbstractSetProcess):
    """As `SetGp`, with the mean root of the gossiped beliefs in the place of the average opinion.

    What BP-UCB gossips is enough: from the map of beliefs that the peers agree on in each slot everybody computes the
    same value of the set that trained (`belief_value`), and from the cohorts agreed on and these values the same next
    cohort (`elect_set`, exactly rounded). No client tells more than under BP-UCB, and no server hears of it.

    Args:
        clients: N.
        budget: K.
        exploration: How much to hope for, as in `SetGp`.
        forgetting: What is left of a value's weight after each slot; below 1 where values drift (warm start).
        memory: Most cohorts remembered.
        seed: Fixes opening, random starts and ties.
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
        self._note(selection.cohort, value)
