"""Rewards of a warm run: what a slot gained against what was to be expected.

In a warm run the model improves from slot to slot with any cohort. A selector that is told the bare average opinion
takes late cohorts for good ones. It is told 0.5 + gain instead, in units of opinion, where

    gain = average opinion of the slot - forecast from the slots before it

The forecast is the level of the average opinion so far plus its damped trend, both exponentially smoothed (Holt 1957,
Gardner and McKenzie 1985). It knows nothing of cohorts, so it is what any cohort would be expected to reach.
"""

from collections.abc import Mapping
from typing import Any

from fedelect.errors import StateError

NEUTRAL = 0.5
"""Reward of a slot that gained just what was to be expected."""

LEVEL, TREND, DAMPING = 0.3, 0.1, 0.9
"""Weight of a new slot in the level and in the trend, and the share of the trend that is expected to go on."""


class OpinionGain:
    """Turn the average opinions of a warm run into rewards. Saved with a run."""

    def __init__(self) -> None:
        self._level: float | None = None
        self._trend = 0.0

    def reward(self, mean_opinion: float) -> float:
        """Return 0.5 + the gain of the next slot, and learn from it.

        Args:
            mean_opinion: Average opinion of the slot's model.
        """
        if self._level is None:
            self._level = mean_opinion
            return NEUTRAL
        forecast = self._level + DAMPING * self._trend
        gain = mean_opinion - forecast
        level = forecast + LEVEL * gain
        self._trend = DAMPING * self._trend + TREND * gain
        self._level = level
        return NEUTRAL + gain

    def state(self) -> dict[str, float | None]:
        """Return what was learnt, as JSON-able values."""
        return {"level": self._level, "trend": self._trend}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            StateError: It is damaged.
        """
        try:
            level, trend = state["level"], float(state["trend"])
            self._level, self._trend = None if level is None else float(level), trend
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved forecast of opinions is damaged: {error!r}") from error
