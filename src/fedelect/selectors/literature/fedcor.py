"""FedCor: a Gaussian process over the clients' loss changes; the cohort expected to lower all losses most."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import pack, unpack
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Cohort, Feedback, Floats, Ints, Selection, Signal, as_int

_DIMENSION = 15  # of a client's embedding
_NOISE = 0.01  # sigma_n, which keeps the covariance regular
_FIRST_STEPS, _STEPS, _RATE = 1000, 100, 0.01  # of Adam, at the end of the warm-up and later


@final
class FedCor(AbstractSelector):
    """FedCor (Tang, Ning, Wang, Sun, Wang, Li, Chen, CVPR 2022, arXiv 2103.13822), Algorithm 1, as in its public code.

    The changes of all clients' losses in a slot are jointly normal. Their covariance is the inner product of learnt
    embeddings (15 numbers a client) plus sigma_n^2 on the diagonal. In the warm-up cohorts are random. Then the
    embeddings are fitted to the changes seen, weighted by `forgetting` to the power of their age, by Adam on the
    likelihood. A cohort is chosen client by client: the next is the one with the highest

        alpha_k sum over clients i not yet chosen of p_i Sigma_ik / sqrt(Sigma_kk),

    p the shares of data, and Sigma is conditioned on it. alpha is 1, times `discount` for each election since the
    last fit. Every `interval` slots the cohort is random and the embeddings are fitted again.

    Differs from the original: in a slot of a new fit the random cohort's training counts, where the original trains
    one and throws it away; a client that reports no loss is left out of that slot's likelihood. Loss changes mean
    little where training starts anew in each slot.

    Args:
        clients: N.
        budget: K.
        warm_up: Slots with random cohorts.
        interval: Slots between two fits.
        history: Slots whose loss changes are kept.
        forgetting: gamma, weight of a change that is one slot older; from 0 to 1.
        discount: beta, factor on a client's value for each election since the last fit; from 0 to 1.
        seed: Fixes embeddings, random cohorts and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"loss"})
    uses: ClassVar[frozenset[Signal]] = frozenset({"sizes"})
    advice: ClassVar[str] = "Clients' losses fall together: train those that lower the losses of all. Warm start."

    initial_arrays: ClassVar[Mapping[str, float]] = {"loss": math.nan, "sizes": math.nan, "discount": 1.0}

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        warm_up: int = 15,
        interval: int = 10,
        history: int = 100,
        forgetting: float = 0.95,
        discount: float = 0.95,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        for name, value, low in (("warm_up", warm_up, 2), ("interval", interval, 1), ("history", history, 2)):
            as_float(name, as_int(name, value), low=low, high=1e9)
        self._warm_up, self._interval, self._history = warm_up, interval, history
        self._forgetting = as_float("forgetting", forgetting, low=0.0, high=1.0)
        self._discount = as_float("discount", discount, low=0.0, high=1.0)
        first = stream(self.seed, "embeddings").standard_normal((_DIMENSION, self.clients))
        self._embeddings: Floats = first / math.sqrt(_DIMENSION)
        self._changes: dict[int, Floats] = {}  # slot -> (N,) loss changes, nan where unknown
        self._fitted = False

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        if not self._fitted or self._fits_in(slot):
            return tuple(sorted(self._pick_random(slot, pool, self.budget, "warm-up"))), ()
        return self._greedy(slot, pool), ()

    def _fits_in(self, slot: int) -> bool:
        """Whether the embeddings are fitted after `slot`."""
        return slot == self._warm_up or (slot > self._warm_up and slot % self._interval == 0)

    def _greedy(self, slot: int, pool: Ints) -> Cohort:
        """Choose K of the pool one by one, the covariance conditioned on those chosen."""
        embeddings, sizes = self._embeddings, np.maximum(fill_missing(self.arrays["sizes"]), 1e-9)
        shares = sizes / sizes.sum()
        variance = (embeddings**2).sum(axis=0) + _NOISE**2
        pull = embeddings.T @ (embeddings @ shares) + _NOISE**2 * shares  # sum over i of p_i Sigma_ik
        columns, chosen, left = np.empty((self.budget, self.clients)), list[int](), pool
        for place in range(self.budget):
            values = self.arrays["discount"] * pull / np.sqrt(np.maximum(variance, 1e-300))
            (best,) = self._pick_best(values, slot, left, 1)
            column = embeddings.T @ embeddings[:, best] - columns[:place].T @ columns[:place, best]
            column[best] += _NOISE**2
            columns[place] = column / math.sqrt(max(column[best], 1e-300))
            shares = np.where(np.arange(self.clients) == best, 0.0, shares)
            chosen.append(best)
            left = left[left != best]
            # With one client less in the sum, and the covariance reduced by the new column's outer square:
            pull = embeddings.T @ (embeddings @ shares) + _NOISE**2 * shares
            pull -= columns[: place + 1].T @ (columns[: place + 1] @ shares)
            variance = variance - columns[place] ** 2
        return tuple(sorted(chosen))

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.loss is not None  # declared in `needs`
        change = feedback.loss - self.arrays["loss"]
        self.arrays["loss"] = feedback.loss.copy()
        if feedback.sizes is not None:
            self._update_known("sizes", feedback.sizes)
        changes = self._changes
        if (selection.slot <= self._warm_up or self._fits_in(selection.slot)) and not np.isnan(change).all():
            recent = {slot: one for slot, one in changes.items() if slot + self._history >= selection.slot}
            changes = recent | {selection.slot: change}
        if self._fits_in(selection.slot) and changes:
            steps = _STEPS if self._fitted else _FIRST_STEPS
            self._embeddings = fit_embeddings(self._embeddings, *self._evidence(changes), steps=steps)
            self._fitted = True
            self.arrays["discount"] = np.ones(self.clients)
        else:
            self.arrays["discount"][list(selection.cohort)] *= self._discount if self._fitted else 1.0
        self._changes = changes

    def _evidence(self, changes: Mapping[int, Floats]) -> tuple[Floats, Floats]:
        """(T, N) changes less the weighted mean of each client, nan where unknown, and (T,) weights of the slots."""
        latest = max(changes)
        rows = np.stack(list(changes.values()))
        weights = self._forgetting ** (latest - np.array(list(changes), dtype=np.float64))
        known = ~np.isnan(rows)
        total = np.maximum(weights @ known, 1e-300)
        return rows - (weights @ np.where(known, rows, 0.0)) / total, weights

    def _memory(self) -> dict[str, Any]:
        return {
            "embeddings": pack(self._embeddings.ravel(), "<f8"),
            "changes": {str(slot): pack(change, "<f8") for slot, change in self._changes.items()},
            "fitted": self._fitted,
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        size = _DIMENSION * self.clients
        flat = unpack(memory["embeddings"], "<f8", size=size, what="embeddings")
        self._embeddings = flat.reshape(_DIMENSION, self.clients)
        self._changes = {
            int(slot): unpack(change, "<f8", size=self.clients, what="changes")
            for slot, change in memory["changes"].items()
        }
        self._fitted = bool(memory["fitted"])


def fit_embeddings(embeddings: Floats, changes: Floats, weights: Floats, *, steps: int) -> Floats:
    """Return embeddings after `steps` of Adam on the weighted negative log-likelihood of the changes.

    Args:
        embeddings: (D, N) to start from.
        changes: (T, N) centred loss changes; nan where unknown.
        weights: (T,) of the slots.
        steps: Number of steps.
    """
    fitted, first, second = embeddings.copy(), np.zeros_like(embeddings), np.zeros_like(embeddings)
    for step in range(1, steps + 1):
        slope = _slope(fitted, changes, weights)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        mean, spread = first / (1.0 - 0.9**step), np.sqrt(second / (1.0 - 0.999**step))
        fitted = fitted - _RATE * mean / (spread + 1e-8)
    return fitted


def _slope(embeddings: Floats, changes: Floats, weights: Floats) -> Floats:
    """(D, N) slope of sum over slots of w (y^T Sigma^-1 y + ln |Sigma|) / 2, with Sigma = X^T X + sigma_n^2 I.

    With M = X X^T + sigma_n^2 I and b = M^-1 X y it is M^-1 X - b a^T, where a = Sigma^-1 y = (y - X^T b) / sigma_n^2.
    """
    known = ~np.isnan(changes)
    if known.all():
        return _slope_of_group(embeddings, changes, weights)
    slope = np.zeros_like(embeddings)
    for row, seen, weight in zip(changes, known, weights, strict=True):
        slope[:, seen] += _slope_of_group(embeddings[:, seen], row[None, seen], np.array([weight]))
    return slope


def _slope_of_group(embeddings: Floats, changes: Floats, weights: Floats) -> Floats:
    gram = embeddings @ embeddings.T + _NOISE**2 * np.eye(len(embeddings))
    inverse = np.linalg.inv(gram)
    solved = inverse @ embeddings
    towards = solved @ changes.T  # b, one column for each slot
    away = (changes.T - embeddings.T @ towards) / _NOISE**2  # a
    slope: Floats = weights.sum() * solved - (towards * weights) @ away.T
    return slope
