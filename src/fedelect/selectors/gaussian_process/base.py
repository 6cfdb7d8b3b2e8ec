"""What the selectors by set value share: an opening, a ledger, the election."""

from typing import Any

from fedelect.errors import ConfigurationError
from fedelect.rules import COLD_START_LIMIT, LossSurrogate, SetPrior, elect_set
from fedelect.rules.cold_start import ColdStart
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.gaussian_process.ledger import SetLedger, eligible
from fedelect.selectors.parameters import as_exploration
from fedelect.vocabulary import Cohort, as_int


class AbstractSetProcess(AbstractSelector):
    """Elects the cohort whose value, a Gaussian process over sets, may be highest."""

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
        self._ledger = SetLedger(self.budget, forgetting=float(forgetting), memory=memory)

    def _choose(self, slot: int, available: Available) -> Choice:
        if len(self._ledger) < COLD_START_LIMIT:
            cohort = self._cold.next_cohort(slot, available)
            if cohort is not None:
                return cohort, ()
        cohorts, means, weights, scatter, noise = self._ledger.evidence()
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
            eligible=eligible(available),
            hunch=self._hunch(),
        )
        return election.cohort, election.indices

    def _hunch(self) -> LossSurrogate | None:
        """What side signals say of sets; None for a selector that hears none."""
        return None

    def _note(self, cohort: Cohort, value: float, noise_variance: float = 0.0) -> None:
        self._ledger.note(cohort, value, noise_variance)
        self._try(cohort)

    def _try(self, cohort: Cohort) -> None:
        self._cold.mark_tried(cohort)
        self._tried.update(cohort)

    def _memory(self) -> dict[str, Any]:
        return {"tried": sorted(self._tried), "ledger": self._ledger.memory()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._try(tuple(map(int, memory["tried"])))
        self._ledger.recall(memory["ledger"])
