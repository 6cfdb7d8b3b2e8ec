"""What the simulator remembers of one replica from slot to slot, beside its selector and model.

Who is there, who failed lately, the clients' levels in surveys of a sample, and the forecast of a warm run's opinions.
All but who is there, which follows from the seed, is saved with the trial.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET

from fedelect.analytics import OpinionGain, SurveyAverage
from fedelect.backoff import FailureBackoff
from fedelect.errors import StateError
from fedelect.scenario import Availability, Mask, ScenarioConfig
from fedelect.vocabulary import Cohort, Floats, Ints, mean_present


class Presence(NamedTuple):
    """The clients of a slot.

    Attributes:
        there: (N,) who is there; None means all.
        usable: Those that can be elected, sorted; None means all.
        left_out: Those that are there but left out after failures, sorted.
    """

    there: Mask | None
    usable: Ints | None
    left_out: tuple[int, ...]


class SlotMemory:
    """Memory of one replica.

    Args:
        config: The scenario.
        trial: Number of the trial.
    """

    def __init__(self, config: ScenarioConfig, *, trial: int) -> None:
        self._config, self._clients, self._trial = config, config.clients, trial
        self._availability: Availability | None = None  # made in the first slot
        self._backoff = FailureBackoff()
        some_silent = config.survey is not UNSET or config.availability is not UNSET
        self._average = SurveyAverage(config.clients) if some_silent else None
        self._gain = OpinionGain()

    def find_present(self, slot: int, *, seed: int) -> Presence:
        """Return who is there in `slot` of a run with this seed, and can be elected."""
        if self._availability is None:
            self._availability = Availability(self._config.availability, self._clients, seed=seed, trial=self._trial)
        there = self._availability.at(slot)
        failing = [client for client in self._backoff.list_left_out(slot) if there is None or there[client]]
        if not failing:
            return Presence(there, None if there is None else np.flatnonzero(there), ())
        usable = np.ones(self._clients, dtype=np.bool_) if there is None else there.copy()
        usable[failing] = False
        missing = self._config.budget - int(np.count_nonzero(usable))
        usable[self._backoff.filter(failing, slot, needed=missing)] = True
        return Presence(there, np.flatnonzero(usable), tuple(client for client in failing if not usable[client]))

    def record_training(self, slot: int, cohort: Cohort, failed: Mask) -> None:
        """Record whose training failed, (K,) in cohort order."""
        members = list(zip(cohort, failed.tolist(), strict=True))
        self._backoff.record(
            slot,
            failed=[client for client, has_failed in members if has_failed],
            succeeded=[client for client, has_failed in members if not has_failed],
        )

    def average_opinion(self, opinions: Floats, counted: Ints | None) -> float | None:
        """Return the average opinion, corrected for who was asked; None if there is none. Learns the clients' levels.

        Args:
            opinions: (N,) of all who answered; nan for the others.
            counted: The clients whose opinions enter the average; None for all.
        """
        if self._average is None:
            return mean_present(opinions)
        sampled = opinions
        if counted is not None:
            sampled = np.full(self._clients, np.nan)
            sampled[counted] = opinions[counted]
        average = self._average.average(sampled)
        self._average.learn(sampled)
        return average

    def find_reward(self, mean_opinion: float | None) -> float | None:
        """Return the reward to tell: the average opinion or, in a warm start, 0.5 + what it gained."""
        if mean_opinion is None or self._config.start == "cold":
            return mean_opinion
        return self._gain.reward(mean_opinion)

    def state(self) -> dict[str, Any]:
        """Return what is remembered, as JSON-able values."""
        return {
            "backoff": self._backoff.state(),
            "average": None if self._average is None else self._average.state(),
            "gain": self._gain.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            StateError: It is damaged, or of another scenario.
        """
        try:
            self._backoff.restore(state["backoff"])
            self._gain.restore(state["gain"])
            if self._average is not None:
                self._average.restore(state["average"])
        except (KeyError, TypeError) as error:
            raise StateError(f"the saved memory of a replica is damaged: {error!r}") from error
