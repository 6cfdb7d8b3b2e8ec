"""Proportional-fair scheduling: the clients whose channel is best beside what it usually is."""

from typing import ClassVar, final

import numpy as np

from fedelect.selectors.base import Available, Choice
from fedelect.selectors.literature.base import AbstractRival, filled
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class ProportionalFair(AbstractRival):
    """Proportional fair (Yang, Liu, Quek, Poor, IEEE Trans. Commun. 2020, arXiv 1908.06287), Sec. II-C.

    Elects the K clients with the highest ratio of the SNR reported for the coming slot to the mean of all SNRs that
    the client has reported. A client that reported none counts as being at its mean; before the first slot the cohort
    is random.

    Args:
        clients: N.
        budget: K.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"channel_db"})
    advice: ClassVar[str] = "Uploads fail for bad channels and all clients should have their turn; data do not differ."

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        books = {"snr": np.nan, "total": 0.0, "reports": 0.0}
        super().__init__(clients=clients, budget=budget, seed=seed, parameters={}, books=books)

    def _choose(self, slot: int, available: Available) -> Choice:
        mean = self._books["total"] / np.maximum(self._books["reports"], 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(mean > 0.0, self._books["snr"] / mean, np.nan)
        relative = np.where(np.isnan(ratio), 1.0, filled(ratio))
        return self._best(relative, slot, self._candidates(available)), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.channel_db is not None  # declared in `needs`
        snr = 10.0 ** (np.clip(feedback.channel_db, -300.0, 300.0) / 10.0)
        present = ~np.isnan(snr)
        self._books["snr"] = snr
        self._books["total"] = self._books["total"] + np.where(present, snr, 0.0)
        self._books["reports"] = self._books["reports"] + present
