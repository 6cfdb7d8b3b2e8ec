"""Active federated learning: clients drawn by the softmax of a value that grows with their loss."""

import math
from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Selection, Signal


@final
class ActiveFl(AbstractSelector):
    """Active federated learning (Goetz, Malik, Bui, Moon, Liu, Kumar 2019, arXiv 1909.12641), Algorithm 1.

    A client's value is the sum of its samples' losses over the root of their number, as of the last slot in which it
    trained. The share `left_out` of the clients with the lowest values is left out; of the others int((1 - random) K)
    are drawn with chances proportional to exp(sharpness * value), and the remaining places go to clients drawn
    uniformly from all that are not yet chosen.

    Differs from the original: first values come with the first feedback, so the first cohort is random; shares are of
    the clients available in the slot, and enough clients are kept for the draw.

    Args:
        clients: N.
        budget: K.
        left_out: alpha_1, share of the clients without a chance in the first draw; from 0 to 1.
        sharpness: alpha_2, factor on the value in the exponent.
        random: alpha_3, share of the places drawn uniformly; from 0 to 1.
        seed: Fixes draws and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"loss", "sizes"})
    advice: ClassVar[str] = "Clients with a high total loss should train more, with randomness and at little cost."

    initial_arrays: ClassVar[Mapping[str, float]] = {"value": math.nan}

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        left_out: float = 0.75,
        sharpness: float = 0.01,
        random: float = 0.1,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._left_out = as_float("left_out", left_out, low=0.0, high=1.0)
        self._sharpness = as_float("sharpness", sharpness, low=0.0, high=1e6)
        self._random = as_float("random", random, low=0.0, high=1.0)

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        values = self.arrays["value"]
        if np.isnan(values[pool]).all():
            return tuple(sorted(self._pick_random(slot, pool, self.budget, "first"))), ()
        values = np.where(np.isnan(values), np.nanmax(values[pool]), values)  # a client without one is worth a try
        by_value = int((1.0 - self._random) * self.budget)
        kept = max(pool.size - int(self._left_out * pool.size), by_value)
        best = np.array(self._pick_best(values, slot, pool, kept))
        chances = np.exp(self._sharpness * (values[best] - values[best].max()))
        chances = np.maximum(chances, 1e-300)
        rng = stream(self.seed, "by-value", slot)
        chosen: list[int] = rng.choice(best, by_value, replace=False, p=chances / chances.sum()).tolist()
        others = np.setdiff1d(pool, chosen)
        return tuple(sorted(chosen + self._pick_random(slot, others, self.budget - by_value, "uniform"))), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.loss is not None and feedback.sizes is not None  # declared in `needs`
        told = np.sqrt(feedback.sizes) * feedback.loss
        fresh = np.isnan(self.arrays["value"])
        fresh[list(selection.cohort)] = True
        self._update_known("value", np.where(fresh, told, np.nan))
