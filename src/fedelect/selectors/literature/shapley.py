"""Selection by contributions: S-FedAvg draws by the softmax of relevance, GreedyFed takes the highest values."""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class SFedAvg(AbstractSelector):
    """S-FedAvg (Nagalapatti, Narayanam, AAAI 2021, arXiv 2106.02563), Algorithm 1.

    Every client has a relevance, 1 / N at first. K clients are drawn without replacement, with chances proportional to
    exp(relevance). After the slot the relevance of a member becomes keep * relevance + gain * contribution. The
    contribution is the member's estimated Shapley value in the slot, measured on a validation share at the server.

    Differs from the original: the driver estimates Shapley values (truncated GTG-Shapley) where the original draws
    permutations.

    Args:
        clients: N.
        budget: K.
        keep: alpha, what a relevance keeps; from 0 to 1.
        gain: beta, the weight of a new contribution.
        seed: Fixes all draws.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"contributions"})
    advice: ClassVar[str] = "The server has validation data, and some clients are irrelevant or harmful."

    initial_arrays: ClassVar[Mapping[str, float]] = {"relevance": 0.0}

    def __init__(self, *, clients: int, budget: int, keep: float = 0.75, gain: float = 0.25, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._keep = as_float("keep", keep, low=0.0, high=1.0)
        self._gain = as_float("gain", gain, low=0.0, high=1e6)
        self.arrays["relevance"] += 1.0 / self.clients

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        relevance = self.arrays["relevance"][pool]
        chances = np.maximum(np.exp(relevance - relevance.max()), 1e-300)
        rng = stream(self.seed, "members", slot)
        drawn = rng.choice(pool, self.budget, replace=False, p=chances / chances.sum())
        return tuple(sorted(drawn.tolist())), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.contributions is not None  # declared in `needs`
        members = np.array(selection.cohort)
        told = members[~np.isnan(feedback.contributions[members])]
        kept = self._keep * self.arrays["relevance"][told]
        self.arrays["relevance"][told] = kept + self._gain * feedback.contributions[told]


@final
class GreedyFed(AbstractSelector):
    """GreedyFed (Singhal, Pandey, Popovski, IEEE Netw. Lett. 2024, arXiv 2312.09108), Algorithm 1.

    First every client trains once. Then the K clients with the highest mean contribution are elected; the contribution
    is the truncated GTG-Shapley value (Liu et al., ACM Trans. Intell. Syst. Technol. 2022) of a member in a slot, which
    the driver estimates on a validation share at the server. The mean is over all slots in which the client trained
    or, with `memory`, memory * old + (1 - memory) * new, from 0 on, as in the public code.

    Differs from the original: groups of the first slots are drawn, and exact ties are broken, by a hash of the seed;
    models are scored by what the scenario's [validation] says, accuracy unless it is "loss", where the original takes
    the loss.

    Args:
        clients: N.
        budget: K.
        memory: alpha of the exponential mean, from 0 to 1; None: the mean of all.
        seed: Fixes cold-start groups and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"contributions"})
    advice: ClassVar[str] = "The server has validation data, and the most useful clients should train most."

    initial_arrays: ClassVar[Mapping[str, float]] = {"value": 0.0, "count": 0.0, "tried": 0.0}

    def __init__(self, *, clients: int, budget: int, memory: float | None = None, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._keep = None if memory is None else as_float("memory", memory, low=0.0, high=1.0)
        self._cold = ColdStart(self.clients, self.budget, self.seed)

    def _choose(self, slot: int, available: Available) -> Choice:
        group = self._cold.next_cohort(slot, available)
        if group is not None:
            return group, ()
        return self._pick_best(self.arrays["value"], slot, self._candidates(available)), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.contributions is not None  # declared in `needs`
        members = np.array(selection.cohort)
        told = members[~np.isnan(feedback.contributions[members])]
        self.arrays["count"][told] += 1.0
        counts, old, new = self.arrays["count"][told], self.arrays["value"][told], feedback.contributions[told]
        step = 1.0 / counts if self._keep is None else np.full(told.size, 1.0 - self._keep)
        self.arrays["value"][told] = old + step * (new - old)
        self._mark_tried(selection)

    def _abandon(self, selection: Selection) -> None:
        self._mark_tried(selection)

    def _mark_tried(self, selection: Selection) -> None:
        self.arrays["tried"][list(selection.cohort)] = 1.0
        self._cold.mark_tried(selection.cohort)

    def _recall(self, memory: dict[str, Any]) -> None:
        self._cold.mark_tried(tuple(np.flatnonzero(self.arrays["tried"]).tolist()))
