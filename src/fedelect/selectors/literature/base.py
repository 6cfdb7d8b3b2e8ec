"""What the rivals share: a seed, the clients to choose from, and the books of a client-by-client rule."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedelect.equations.top_k import top_k
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available
from fedelect.selectors.packing import pack, unpack
from fedelect.vocabulary import Cohort, Floats, Ints, whole


class AbstractRival(AbstractSelector):
    """A selector with a seed and books of one row for each client.

    A subclass lists its books, `name -> value before anything is known`; they are saved and restored here.
    """

    def __init__(
        self, *, clients: int, budget: int, seed: int, parameters: Mapping[str, Any], books: Mapping[str, float]
    ) -> None:
        self._seed = whole("seed", seed)
        shared = {"clients": whole("clients", clients), "budget": whole("budget", budget), "seed": self._seed}
        super().__init__(clients=clients, budget=budget, parameters=shared | dict(parameters))
        self._books: dict[str, Floats] = {name: np.full(self.clients, first) for name, first in books.items()}

    def _memory(self) -> dict[str, Any]:
        return {name: pack(values, "<f8") for name, values in self._books.items()}

    def _recall(self, memory: dict[str, Any]) -> None:
        for name in self._books:
            self._books[name] = unpack(memory[name], "<f8", size=self.clients, what=name)

    def _candidates(self, available: Available) -> Ints:
        """Sorted numbers of the clients that are there."""
        return np.arange(self.clients) if available is None else np.flatnonzero(available)

    def _random(self, slot: int, pool: Ints, count: int, what: str = "random") -> list[int]:
        """`count` clients of `pool`, uniformly, from the selector's own stream."""
        drawn: list[int] = stream(self._seed, what, slot).choice(pool, count, replace=False).tolist()
        return drawn

    def _best(self, values: Floats, slot: int, among: Ints, count: int | None = None) -> Cohort:
        """The clients of the highest value, K of them or `count`; ties by hash."""
        size = self.budget if count is None else count
        return top_k(values, size, among=among, tie_seed=self._seed, slot=slot) if size else ()

    def _keep(self, name: str, values: Floats) -> None:
        """Enter the values that are there (not nan) into a book."""
        self._books[name] = np.where(np.isnan(values), self._books[name], values)


def filled(values: Floats) -> Floats:
    """(N,) with the mean of the others in the place of nan, or 0 if all are nan."""
    known = values[~np.isnan(values)]
    return np.where(np.isnan(values), known.mean() if known.size else 0.0, values)


def number(name: str, value: object, *, low: float, high: float) -> float:
    """`value` as a float; ConfigurationError unless it is a number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigurationError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def optional_seconds(name: str, value: object) -> float | None:
    """`value` as seconds > 0, or None."""
    return None if value is None else number(name, value, low=1e-9, high=1e9)
