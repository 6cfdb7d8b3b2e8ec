"""Algorithm 2 as it is printed: no cold-start groups; every client starts with an assumed mean and one pull."""

from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.rules import elect
from fedelect.selectors import AbstractSelector
from fedelect.selectors.base import Available, Choice
from fedelect.selectors.parameters import as_exploration, as_float
from fedelect.vocabulary import Feedback, Floats, Selection, Signal


@final
class OptimisticBpUcb(AbstractSelector):
    """BP-UCB from the first slot on, with r_1 = `initial` and Pi_1 = 1 for every client.

    Algorithm 2 names r_1 and sets Pi_1 = 1, and has no groups. A client's mean is (r_1 + the sum of its own opinions
    while elected) / Pi, and Pi = 1 + its elections. So with r_1 = 1 clients that were elected less look better.

    Args:
        clients: N.
        budget: K.
        exploration: mu; the paper's 0.01.
        initial: r_1, from 0 to 1; the paper does not state it.
        seed: Fixes ties, also those of the first slot.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions", "beliefs"})
    initial_arrays: ClassVar[Mapping[str, float]] = {"elections": 0.0, "total": 0.0, "beliefs": np.nan}

    def __init__(
        self, *, clients: int, budget: int, exploration: float = 0.01, initial: float = 1.0, seed: int
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        self._initial = as_float("initial", initial, low=0.0, high=1.0)

    @property
    def means(self) -> Floats:
        """(N,) mean of each client's own opinions while elected, r_1 counted as one of them."""
        return (self._initial + self.arrays["total"]) / (1.0 + self.arrays["elections"])

    def _choose(self, slot: int, available: Available) -> Choice:
        election = elect(
            self.means,
            1.0 + self.arrays["elections"],
            self.arrays["beliefs"],
            slot=slot,
            budget=self.budget,
            exploration=self._exploration,
            tie_seed=self.seed,
            eligible=None if available is None else np.flatnonzero(available),
        )
        return election.cohort, election.indices

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None and feedback.beliefs is not None  # declared in `needs`
        members = np.array(selection.cohort)
        present = members[~np.isnan(feedback.opinions[members])]
        self.arrays["elections"][present] += 1.0
        self.arrays["total"][present] += feedback.opinions[present]
        self.arrays["beliefs"][:] = feedback.beliefs
