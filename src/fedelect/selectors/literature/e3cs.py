"""E3CS: an adversarial bandit over clients that may drop out, with a guaranteed chance for each."""

from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Floats, Selection, Signal


@final
class E3cs(AbstractSelector):
    """E3CS (Huang, Lin, Shen, Li, Zomaya, IEEE Internet Things J. 2022, arXiv 2011.08756), Algorithms 1 and 2.

    For volatile clients, the setting of VFedCS (Shi et al., IEEE Internet Things J. 2022). Exp3 with several plays:
    client i is drawn with chance p_i = sigma + (K - N sigma) w_i / sum of w, with w capped so that no chance exceeds 1;
    sigma = fairness * K / N is the chance that everyone has. K clients are drawn without replacement by these chances,
    which are the selection's indices. Then the weight of a member that finished is multiplied by
    exp((K - N sigma) eta / (N p_i)); a capped weight stays. A member finished if its update arrived or, where `updates`
    are not told, if its seconds are known.

    Differs from the original: chances are those among the clients available in the slot; weights are divided by the
    largest, which changes no chance, and none falls below 1e-12 of it.

    Args:
        clients: N.
        budget: K.
        fairness: Share of K / N that is guaranteed to each client; from 0 to 1.
        rate: eta, the learning rate.
        seed: Fixes all draws.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"seconds"})
    uses: ClassVar[frozenset[Signal]] = frozenset({"updates"})
    advice: ClassVar[str] = "Clients often fail, some more than others, and every client must keep a chance."

    initial_arrays: ClassVar[Mapping[str, float]] = {"weight": 1.0}

    def __init__(self, *, clients: int, budget: int, fairness: float = 0.5, rate: float = 0.5, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._fairness = as_float("fairness", fairness, low=0.0, high=1.0)
        self._rate = as_float("rate", rate, low=0.0, high=1e3)

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        chances, capped = allocate_chances(self.arrays["weight"][pool], self.budget, self._fairness)
        weights = np.maximum(chances, 1e-12)
        rng = stream(self.seed, "members", slot)
        cohort = np.sort(rng.choice(pool, self.budget, replace=False, p=weights / weights.sum()))
        drawn = np.where(capped, 1.0, weights)[np.searchsorted(pool, cohort)]
        return tuple(cohort.tolist()), tuple(drawn.tolist())

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.seconds is not None  # declared in `needs`
        members = np.array(selection.cohort)
        told = feedback.seconds if feedback.updates is None else feedback.updates[:, 0]
        chances = np.array(selection.indices)
        rewarded = ~np.isnan(told[members]) & (chances < 1.0)  # a capped weight stays
        factor = (1.0 - self._fairness) * self.budget * self._rate / self.clients  # (K - N sigma) eta / N
        logs = np.log(self.arrays["weight"])
        logs[members] += np.where(rewarded, factor / chances, 0.0)
        self.arrays["weight"] = np.maximum(np.exp(logs - logs.max()), 1e-12)


def allocate_chances(weights: Floats, budget: int, fairness: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Chances (n,) that sum to `budget`, each at most 1, and whether each weight was capped (n,) bool.

    Args:
        weights: (n,) above 0.
        budget: K, at most n.
        fairness: Share of K / n that every client gets.
    """
    sigma = fairness * budget / weights.size
    free = budget - weights.size * sigma
    if free <= 0.0 or weights.size == budget:
        return np.full(weights.size, budget / weights.size), np.zeros(weights.size, dtype=np.bool_)
    limit = (1.0 - sigma) / free  # largest share of the sum of weights
    ordered = np.sort(weights)[::-1]
    rest = ordered.sum() - np.cumsum(ordered)  # of those below the first, the first two, ...
    count = 0
    if ordered[0] / ordered.sum() > limit:
        # With `count` weights cut to c each, c / (count c + rest) = limit; take the first that cuts enough.
        for count in range(1, weights.size):
            spare = 1.0 - count * limit
            if spare <= 0.0 or ordered[count] <= limit * rest[count - 1] / spare:
                break
    if not count:
        return sigma + free * weights / weights.sum(), np.zeros(weights.size, dtype=np.bool_)
    spare = 1.0 - count * limit
    level = limit * rest[count - 1] / spare if spare > 1e-12 else ordered[count - 1]
    cut = np.minimum(weights, level)
    return sigma + free * cut / cut.sum(), weights > level
