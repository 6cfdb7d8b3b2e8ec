"""Best channel: the clients that hear the server best."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class BestChannel(AbstractSelector):
    """The K clients that report the highest SNR for the coming slot, after Perazzone et al. (INFOCOM 2022).

    Perazzone, Wang, Ji and Chan choose chances and transmit powers of the clients in every round by stochastic
    optimisation, under a limit on the mean energy. Clients with better channels take part more often. With a fixed
    power and exactly K clients a slot, what remains is the choice of the K best channels. A client that reports none
    counts as the average of the others; before the first report the cohort is random.

    Differs from the original: no powers, no energy and no long-term share for clients with bad channels.

    Args:
        clients: N.
        budget: K.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"channel_db"})
    advice: ClassVar[str] = "Uploads fail for bad channels, and nothing else counts."

    initial_arrays: ClassVar[Mapping[str, float]] = {"channel_db": math.nan}

    def _choose(self, slot: int, available: Available) -> Choice:
        return self._pick_best(fill_missing(self.arrays["channel_db"]), slot, self._candidates(available)), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.channel_db is not None  # declared in `needs`
        self.arrays["channel_db"] = np.array(feedback.channel_db)
