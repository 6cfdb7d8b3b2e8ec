"""Rewards of a warm run: what a slot gained against what was to be expected.

In a warm run the model improves from slot to slot with any cohort. A selector that is told the bare average opinion
takes late cohorts for good ones. It is told 0.5 + gain instead, in units of opinion, where

    gain = average opinion of the slot - forecast from the slots before it

The model: the average opinion follows a line that bends slowly, plus the effect of the slot's own cohort and chance.
The line is fitted to the first slots by least squares, and from then on level and trend are smoothed exponentially
(Holt 1957). The forecast knows nothing of cohorts, so it is what any cohort would be expected to reach. It carries
little of a bad cohort's effect over to the next one's reward, where the bare difference of two slots would carry all of
it. Where opinions level off, it is a little too high, so no cohort looks good for having been tried early. In the first
slots opinions rise so steeply, and so few are known, that a gain would say when a cohort was tried and not how good it
is: all of these get the neutral reward.
"""

from collections.abc import Mapping
from typing import Any

from fedelect.errors import StateError
from fedelect.vocabulary import as_int

NEUTRAL = 0.5
"""Reward of a slot that gained just what was to be expected."""

SETTLING_SLOTS = 10
"""First slots, in which every cohort gets the neutral reward."""

LEVEL, TREND = 0.3, 0.1
"""Least weight of a new slot's gain in the level and in the trend."""


class OpinionGain:
    """Turn the average opinions of a warm run into rewards. Saved with a run."""

    def __init__(self) -> None:
        self._slots = 0
        self._level = self._trend = 0.0

    def reward(self, mean_opinion: float) -> float:
        """Return 0.5 + the gain of the next slot, and learn from it.

        Args:
            mean_opinion: Average opinion of the slot's model.
        """
        self._slots = n = self._slots + 1
        if n == 1:
            self._level = mean_opinion
            return NEUTRAL
        forecast = self._level + self._trend
        gain = mean_opinion - forecast
        # A line fitted to n slots by least squares moves by these shares of its error at the newest one.
        self._level = forecast + max(LEVEL, (4 * n - 2) / (n * (n + 1))) * gain
        self._trend += max(TREND, 6 / (n * (n + 1))) * gain
        return NEUTRAL if n <= SETTLING_SLOTS else NEUTRAL + gain

    def state(self) -> dict[str, float]:
        """Return what was learnt, as JSON-able values."""
        return {"slots": self._slots, "level": self._level, "trend": self._trend}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            StateError: It is damaged.
        """
        try:
            slots, level, trend = as_int("slots", state["slots"]), float(state["level"]), float(state["trend"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved forecast of opinions is damaged: {error!r}") from error
        self._slots, self._level, self._trend = slots, level, trend
