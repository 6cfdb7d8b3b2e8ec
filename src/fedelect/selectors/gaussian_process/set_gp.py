"""Set GP, fedelect's own: a Gaussian process over sets; the next cohort maximises its acquisition value."""

from typing import ClassVar, final

from fedelect.rules import SetPrior
from fedelect.selectors.gaussian_process.base import AbstractGaussianProcess
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class SetGp(AbstractGaussianProcess):
    """Elects the cohort S with the highest posterior mean of f(S) + exploration * deviation of its next update.

    Quick-Init UCB learns about an arm by playing that arm. Here every reward informs about all cohorts that share
    members: f is a sum over members, pairs, triples and a deviation of the set itself, a Gaussian process whose
    covariance depends on the overlap only (`fedelect.rules`). After a cold start in which every client trains once (at
    most 16 slots), the maximum is searched by swaps of members from several starts; of more than 40 clients, only the
    40 (or 2 K) with the highest indices are considered. Scale and noise of the rewards are learnt; noise added to them
    (`Feedback.reward_noise`) is taken into account.

    Args:
        clients: N.
        budget: K.
        exploration: Exploration weight of the acquisition value.
        forgetting: Factor on a reward's weight after each slot; below 1 where rewards drift (warm start).
        memory: Most cohorts kept; a decision takes memory^2 time for each set considered.
        additive: Prior variance of the sum over members; of these four only the proportions count.
        pairs: Prior variance of the interactions of two members.
        triples: Prior variance of the interactions of three members.
        own: Prior variance of the deviation of the set itself.
        seed: Fixes cold start, random starts and ties.
    """

    version: ClassVar[int] = 2
    needs: ClassVar[frozenset[Signal]] = frozenset({"reward"})
    advice: ClassVar[str] = (
        "The server may see the average opinion (FL&FA): every reward informs about all similar cohorts."
    )

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
        self._add_reward(selection.cohort, feedback.reward, feedback.reward_noise**2)
