"""Set GP, fedelect's own: a Gaussian process over the sets, the next cohort by what may be hoped for of it."""

from typing import ClassVar, final

from fedelect.rules import SetPrior
from fedelect.selectors.gaussian_process.base import AbstractSetProcess
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class SetGp(AbstractSetProcess):
    """The cohort S with the highest posterior mean of its value f(S) + exploration * what one more reward may move it.

    Quick-Init UCB learns of an arm by playing that very arm. Here every reward tells of all cohorts that share members
    with the one that trained: f is a sum over members, pairs and triples of members and of a deviation of the set's
    own, a Gaussian process whose covariance depends on the overlap alone (`fedelect.rules`). After an
    opening in which every client trains once (at most 16 slots) the maximum of the bound is sought by exchange of
    members from several starts; where more than 40 clients are there, only the 40 (or 2 K) of the highest own bounds
    are looked at. Scale and noise of the rewards are learnt; noise that was added to them (`Feedback.reward_noise`) is
    taken into account.

    Args:
        clients: N.
        budget: K.
        exploration: How much to hope for.
        forgetting: What is left of a reward's weight after each slot; below 1 where rewards drift (warm start).
        memory: Most cohorts remembered; a decision takes memory^2 time for each set looked at.
        additive: Prior variance of the sum of the members' worth; of these four only the proportions count.
        pairs: Prior variance of what pairs add to it.
        triples: Prior variance of what triples add to it.
        own: Prior variance of what only this set has.
        seed: Fixes opening, random starts and ties.
    """

    version: ClassVar[int] = 2
    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = "The server may see the average opinion (FL&FA): every cohort tells of all like it."

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        exploration: float = 2.0,
        forgetting: float = 1.0,
        memory: int = 96,
        additive: float = 0.7,
        pairs: float = 0.5,
        triples: float = 0.08,
        own: float = 0.03,
        seed: int,
    ) -> None:
        super().__init__(
            clients=clients,
            budget=budget,
            exploration=exploration,
            forgetting=forgetting,
            memory=memory,
            prior=SetPrior(additive=additive, pairs=pairs, triples=triples, own=own),
            seed=seed,
        )

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None  # declared in `needs`
        self._note(selection.cohort, feedback.reward, feedback.reward_noise**2)
