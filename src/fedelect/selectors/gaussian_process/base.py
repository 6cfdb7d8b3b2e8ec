"""Base of the selectors by a Gaussian process over sets: cold start, statistics, election."""

from typing import Any

from fedelect.errors import ConfigurationError
from fedelect.rules import COLD_START_LIMIT, CohortStatistics, ColdStart, LossSurrogate, SetPrior, elect_set
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_exploration
from fedelect.vocabulary import Cohort, as_int


class AbstractGaussianProcess(AbstractSelector):
    """Elects the cohort with the highest acquisition value under a Gaussian process over sets."""

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        exploration: float,
        forgetting: float,
        memory: int,
        prior: SetPrior,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._exploration = as_exploration(exploration)
        if not 0.0 < forgetting <= 1.0:
            raise ConfigurationError(f"forgetting must be a number > 0 and <= 1 (1 keeps all), got {forgetting!r}")
        if as_int("memory", memory) < 2:
            raise ConfigurationError(f"memory must be at least 2 cohorts, got {memory}")
        self._prior = prior
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        self._tried: set[int] = set()
        self._statistics = CohortStatistics(self.budget, forgetting=float(forgetting), memory=memory)

    def _choose(self, slot: int, available: Available) -> Choice:
        if len(self._statistics) < COLD_START_LIMIT:
            cohort = self._cold.next_cohort(slot, available)
            if cohort is not None:
                return cohort, ()
        cohorts, means, weights, scatter, noise = self._statistics.evidence()
        election = elect_set(
            cohorts,
            means,
            weights,
            scatter,
            clients=self.clients,
            slot=slot,
            exploration=self._exploration,
            seed=self.seed,
            prior=self._prior,
            added_noise=noise,
            eligible=None if available is None else self._candidates(available),
            surrogate=self._surrogate(),
        )
        return election.cohort, election.indices

    def _surrogate(self) -> LossSurrogate | None:
        """Score of sets from side signals; None for a selector without them."""
        return None

    def _add_reward(self, cohort: Cohort, value: float, noise_variance: float = 0.0) -> None:
        self._statistics.add_reward(cohort, value, noise_variance)
        self._mark_tried(cohort)

    def _mark_tried(self, cohort: Cohort) -> None:
        self._cold.mark_tried(cohort)
        self._tried.update(cohort)

    def _memory(self) -> dict[str, Any]:
        return {"tried": sorted(self._tried), "ledger": self._statistics.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._mark_tried(tuple(map(int, memory["tried"])))
        self._statistics.restore(memory["ledger"])
