"""PyramidFL's ranking: more clients than needed by Oort's utility, of whom the fastest train."""

from typing import ClassVar, final

import numpy as np

from fedelect.selectors.base import Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.literature.oort import AbstractOort
from fedelect.selectors.parameters import as_float


@final
class PyramidFl(AbstractOort):
    """The ranking of PyramidFL (Li, Zeng, Zhang, Cao, MobiCom 2022), as in its public code.

    Clients are ranked by Oort's utility (`Oort`), with the settings of PyramidFL. Rewards are clipped at the 98th
    percentile, and all clients above 70 % of the utility of the first one left out are in the draw. Exploration falls
    by 0.95 in each slot; the preferred duration starts at the 10th percentile and moves by 10. `overcommit` times K
    clients are drawn; of these the K that are expected to finish first are elected. Expected durations are the last
    ones or, before a client's first training, its forecast; a client without either counts as the mean of the others.
    The first cohort is random.

    Differs from the original: PyramidFL's other half is not for a selector to say, and is left out: fast members train
    more epochs, and members whose updates are small, by their rank, upload a part of the model. Clients that were drawn
    and left out as too slow keep their utility, where the original gives them the average of the slot. What is said of
    differences in `Oort` holds, too.

    A selection's indices are those of `Oort`.

    Args:
        clients: N.
        budget: K.
        penalty: alpha, exponent of the penalty for slow clients.
        window: Slots in a window of the pacer.
        most_elections: A client that trained more often is left out, at most 30 % of all; None: never.
        overcommit: Clients that are drawn for each place, from 1.
        seed: Fixes all draws.
    """

    shares: ClassVar[tuple[float, float, float]] = (0.9, 0.95, 0.2)
    cut_off: ClassVar[float] = 0.7
    clip: ClassVar[float] = 0.98
    percents: ClassVar[tuple[float, float]] = (10.0, 10.0)
    advice: ClassVar[str] = "As `oort`, with shorter rounds: more clients are drawn than needed, and the fastest train."

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        penalty: float = 2.0,
        window: int = 20,
        most_elections: int | None = None,
        overcommit: float = 1.3,
        seed: int,
    ) -> None:
        super().__init__(
            clients=clients, budget=budget, penalty=penalty, window=window, most_elections=most_elections, seed=seed
        )
        self._overcommit = as_float("overcommit", overcommit, low=1.0, high=1e3)

    def _choose(self, slot: int, available: Available) -> Choice:
        if np.isnan(self.arrays["seconds"]).all():
            return self._rank(slot, available, self.budget)
        count = min(int(self.budget * self._overcommit), self._fit(slot, available).size)
        drawn, indices = self._rank(slot, available, count)
        seconds = fill_missing(self.arrays["seconds"])
        cohort = self._pick_best(-seconds, slot, np.array(drawn))
        kept = dict(zip(drawn, indices, strict=True)) if indices else {}
        return cohort, tuple(kept[member] for member in cohort if member in kept)
