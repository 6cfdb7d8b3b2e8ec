"""Power-of-Choice: of d clients drawn by data size, the K with the highest loss."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection, Signal, as_int


@final
class PowerOfChoice(AbstractSelector):
    """Power-of-Choice (Cho, Wang, Joshi 2020, arXiv 2010.01243), Sec. 3.

    1. Draw a candidate set of d clients without replacement, client k with probability proportional to its data size.
    2. Let the candidates report the loss of the current global model on their own data.
    3. Elect the K candidates with the highest loss.

    Step 2 is done by drivers that ask `candidates`. Elsewhere the losses are those of the model trained in the last
    slot, which is the same model, told by all clients.

    Differs from the original: sizes are learnt with the first feedback, so the first candidates are drawn uniformly; a
    candidate that does not answer comes last.

    Args:
        clients: N.
        budget: K.
        candidates: d, from K to N; 2 K (at most N) if left out. d = K is sampling by data size, d = N is greedy.
        seed: Fixes candidate sets and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"loss", "sizes"})
    asks: ClassVar[frozenset[Signal]] = frozenset({"loss"})
    advice: ClassVar[str] = "Clients may report their loss, and those with the highest should train."

    initial_arrays: ClassVar[Mapping[str, float]] = {"loss": math.nan, "sizes": math.nan}

    def __init__(self, *, clients: int, budget: int, candidates: int | None = None, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._draw = min(2 * self.budget, self.clients) if candidates is None else as_int("candidates", candidates)
        if not self.budget <= self._draw <= self.clients:
            raise ConfigurationError(f"candidates must be from {self.budget} to {self.clients}, got {candidates}")

    def _propose(self, slot: int, available: Available) -> Cohort:
        pool = self._candidates(available)
        sizes = np.maximum(fill_missing(self.arrays["sizes"])[pool], 1e-9)  # all equal before the first slot
        rng = stream(self.seed, "candidates", slot)
        drawn = rng.choice(pool, min(self._draw, pool.size), replace=False, p=sizes / sizes.sum())
        return tuple(sorted(drawn.tolist()))

    def _choose(self, slot: int, available: Available) -> Choice:
        return self._highest(fill_missing(self.arrays["loss"]), slot, available), ()

    def _choose_reported(self, slot: int, available: Available, reports: Feedback) -> Choice:
        if reports.loss is None:
            return self._choose(slot, available)
        return self._highest(np.where(np.isnan(reports.loss), -1.0, reports.loss), slot, available), ()

    def _highest(self, losses: Floats, slot: int, available: Available) -> Cohort:
        return self._pick_best(losses, slot, np.array(self._propose(slot, available)))

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.sizes is not None  # declared in `needs`
        self._update_known("sizes", feedback.sizes)
        if feedback.loss is not None:
            self._update_known("loss", feedback.loss)
