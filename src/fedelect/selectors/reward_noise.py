"""What noise on the rewards (added for privacy, say) does to exploration."""

from typing import Any

from fedelect.equations.indices import noise_adjusted


class RewardNoise:
    """The average variance of the noise on the rewards told so far."""

    def __init__(self) -> None:
        self._total = 0.0
        self._rewards = 0

    def note(self, standard_deviation: float) -> None:
        """Take in the noise of one more reward."""
        self._total += standard_deviation**2
        self._rewards += 1

    def widen(self, exploration: float) -> float:
        """The exploration that this noise calls for; see `fedelect.equations.indices.widened`."""
        return noise_adjusted(exploration, self._total / max(self._rewards, 1))

    def memory(self) -> dict[str, Any]:
        """The ledger as JSON-able values."""
        return {"total": self._total, "rewards": self._rewards}

    def recall(self, memory: dict[str, Any]) -> None:
        """Take back what `memory` gave."""
        self._total = float(memory["total"])
        self._rewards = int(memory["rewards"])
