"""The average opinion from a survey of some of the clients, corrected for which clients were asked.

Clients differ: some score every model high, some every model low. The plain mean of a sample therefore moves with the
draw. The *difference estimator* of survey sampling takes each client's own level out before the mean is taken and adds
the mean level of all clients afterwards:

    average = mean over the sample of (r_n - a_n)  +  mean over all clients of a_n

For levels a_n that were known before the sample was drawn, it is unbiased under random sampling, whatever they are. The
better they predict the opinions, the less it varies. A drift that all clients share cancels out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedelect.errors import FeedbackError, StateError
from fedelect.vocabulary import Floats

MEMORY = 20.0
"""A client's level is a mean over its opinions, in which older ones than this many count less and less."""

DOUBT = 1.0
"""A level estimated from m opinions is shrunk towards the average level by the factor m / (m + this)."""


class SurveyAverage:
    """Averages sampled opinions, and learns the clients' levels from them.

    Args:
        clients: N.
    """

    def __init__(self, clients: int) -> None:
        self._sums = np.zeros(clients)  # weighted sum of (opinion - average) of each client
        self._weights = np.zeros(clients)

    @property
    def levels(self) -> Floats:
        """(N,) how far above the average each client's opinions are; 0 where nothing is known."""
        levels: Floats = self._sums / (self._weights + DOUBT)
        return levels

    def average(self, opinions: Floats) -> float | None:
        """Return the corrected average of the opinions, (N,) with nan for clients not asked or silent.

        Returns:
            The average; None if there is no opinion. It may leave [0, 1] by a little.
        """
        if opinions.shape != self._sums.shape:
            raise FeedbackError(f"opinions has {opinions.size} values but there are {self._sums.size} clients")
        given = ~np.isnan(opinions)
        if not given.any():
            return None
        levels = self.levels
        return float(np.mean(opinions[given] - levels[given]) + levels.mean())

    def learn(self, opinions: Floats) -> None:
        """Learn the clients' levels from the opinions of a slot's sample, (N,); call after `average`."""
        average = self.average(opinions)
        if average is None:
            return
        given = ~np.isnan(opinions)
        keep = 1.0 - 1.0 / MEMORY
        self._sums[given] = keep * self._sums[given] + opinions[given] - average
        self._weights[given] = keep * self._weights[given] + 1.0

    def state(self) -> dict[str, list[float]]:
        """Return what was learnt, as JSON-able values."""
        return {"sums": self._sums.tolist(), "weights": self._weights.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            StateError: It is of another number of clients, or damaged.
        """
        try:
            sums, weights = (np.array(state[name], dtype=np.float64) for name in ("sums", "weights"))
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved survey levels are damaged: {error!r}") from error
        if sums.shape != self._sums.shape or weights.shape != sums.shape or not np.isfinite([sums, weights]).all():
            raise StateError(f"the saved survey levels are damaged or not of {self._sums.size} clients")
        self._sums, self._weights = sums, weights
