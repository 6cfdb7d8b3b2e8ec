"""Proportional-fair scheduling: the clients whose channel is best relative to its own mean."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class ProportionalFair(AbstractSelector):
    """Proportional fair (Yang, Liu, Quek, Poor, IEEE Trans. Commun. 2020, arXiv 1908.06287), Sec. II-C.

    Elects the K clients with the highest ratio of the SNR reported for the coming slot to the mean of all SNRs that
    the client has reported, that one included. A client that reported none counts as being at its mean; before the
    first slot the cohort is random.

    Differs from the original: there the mean is known; here it is that of the reports so far.

    Args:
        clients: N.
        budget: K.
        seed: Fixes ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"channel_db"})
    advice: ClassVar[str] = "Uploads fail for bad channels and all clients should have their turn; data do not differ."

    initial_arrays: ClassVar[Mapping[str, float]] = {"snr": math.nan, "total": 0.0, "reports": 0.0}

    def _choose(self, slot: int, available: Available) -> Choice:
        mean = self.arrays["total"] / np.maximum(self.arrays["reports"], 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(mean > 0.0, self.arrays["snr"] / mean, np.nan)
        relative = np.where(np.isnan(ratio), 1.0, fill_missing(ratio))
        return self._pick_best(relative, slot, self._candidates(available)), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.channel_db is not None  # declared in `needs`
        snr = 10.0 ** (np.clip(feedback.channel_db, -300.0, 300.0) / 10.0)
        present = ~np.isnan(snr)
        self.arrays["snr"] = snr
        self.arrays["total"] += np.where(present, snr, 0.0)
        self.arrays["reports"] += present
