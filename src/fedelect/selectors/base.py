"""The selector contract: ask who trains, tell what came of it.

A selector is a pure state machine: no clock, no files, no randomness but the streams named by its seed and the
slot. `ask`, `tell`, `abandon`, `state` and `restore` live here and are the same for all; a selector supplies
`_choose` and whatever of `_learn`, `_abandoned`, `_memory` and `_recall` it needs. Whatever raises, changes nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedelect.errors import (
    AvailabilityError,
    ConfigurationError,
    FedelectError,
    FeedbackError,
    MissingSignalError,
    NoElection,
    SelectorError,
    StaleSelectionError,
    StateError,
)
from fedelect.vocabulary import Cohort, Feedback, Selection, Signal, as_cohort, check_budget, whole

Available = NDArray[np.bool_] | None
"""(N,) mask of the clients that are there; None means all of them."""

Choice = tuple[Cohort, tuple[float, ...]]
"""A sorted cohort and the indices that won (see `Ask.indices`)."""


class AbstractSelector(ABC):
    """Decides which `budget` of the `clients` train in each slot.

    Subclasses declare, as class attributes:

    - `needs`: the signals `tell` must get ("reward", "opinions", "beliefs", or one of
      `fedelect.vocabulary.EXTRA_SIGNALS`). Only FL&FA has a server that sees "reward" and the extra signals; only
      FL&DA has "beliefs". A selector that needs what a framework lacks is refused there.
    - `advice`: one line on when to choose it.
    - `version`: raised when the meaning of the saved state changes.
    - `symmetric`: whether renaming the clients changes nothing but the names (in distribution).
    """

    needs: ClassVar[frozenset[Signal]] = frozenset()
    advice: ClassVar[str] = ""
    version: ClassVar[int] = 1
    symmetric: bool = True

    def __init__(self, *, clients: int, budget: int, parameters: Mapping[str, Any]) -> None:
        """Store what all selectors share; `parameters` are the constructor's arguments as JSON-able values."""
        self.clients = whole("clients", clients)
        self.budget = whole("budget", budget)
        check_budget(self.clients, self.budget)
        self.parameters = dict(parameters)
        self._slot = 0
        self._open: Selection | None = None

    def ask(self, available: Iterable[int] | None = None) -> Selection:
        """Whom to train in the next slot; the open ask again if there is one.

        Args:
            available: Numbers of the clients that are there, at least `budget` of them; None means all.
        """
        if self._open is not None:
            return self._open
        mask = self._mask(available)
        slot = self._slot + 1
        try:
            cohort, indices = self._choose(slot, mask)
        except NoElection:
            self._slot = slot  # the clients held the election; its slot is gone
            raise
        self._check_cohort(cohort, mask)
        self._slot = slot
        self._open = Selection(slot, cohort, indices)
        return self._open

    def tell(self, selection: Selection, feedback: Feedback) -> None:
        """Close the open `ask` with what came of it, and learn from it."""
        self._check_open(selection)
        if not isinstance(feedback, Feedback):
            raise FeedbackError(f"tell() takes a Feedback, got {type(feedback).__name__}")
        for name, values in feedback.per_client().items():
            if values.size != self.clients:
                raise FeedbackError(f"{name} has {values.size} values but there are {self.clients} clients")
        missing = [signal for signal in self.needs if getattr(feedback, signal) is None]
        if missing:
            raise MissingSignalError(
                f"{type(self).__name__} needs {' and '.join(map(repr, sorted(missing)))}, which this feedback lacks; "
                f"give it, or close the slot with abandon()"
            )
        self._learn(selection, feedback)
        self._open = None

    def abandon(self, selection: Selection) -> None:
        """Close the open `ask`, from which nothing is learnt. Its slot number is not used again."""
        self._check_open(selection)
        self._abandoned(selection)
        self._open = None

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as JSON-able values; long arrays are packed (see `packing`)."""
        selection = self._open
        return {
            "selector": type(self).__name__,
            "version": self.version,
            "parameters": dict(self.parameters),
            "slot": self._slot,
            "open": None
            if selection is None
            else {"cohort": list(selection.cohort), "indices": list(selection.indices)},
            "memory": self._memory(),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """The selector that `state` was taken from, going on exactly as it would have."""
        if not isinstance(state, Mapping):
            raise StateError(f"a state is a mapping as given by state(), got {type(state).__name__}")
        name, version = state.get("selector"), state.get("version")
        if name != cls.__name__ or version != cls.version:
            raise StateError(
                f"this is a state of {name!r}, version {version!r}; {cls.__name__} restores its own, "
                f"version {cls.version}"
            )
        try:
            selector = cls(**state["parameters"])
            selector._slot = whole("slot", state["slot"])
            if selector._slot < (state["open"] is not None):
                raise ValueError(f"slot {selector._slot}")
            if state["open"] is not None:
                cohort = as_cohort(state["open"]["cohort"], clients=selector.clients)
                selector._check_cohort(cohort, None)
                selector._open = Selection(selector._slot, cohort, tuple(map(float, state["open"]["indices"])))
            selector._recall(state["memory"])
        except StateError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, FedelectError) as error:
            raise StateError(f"the saved state of {cls.__name__} is damaged: {error!r}") from error
        return selector

    @abstractmethod
    def _choose(self, slot: int, available: Available) -> Choice:
        """The cohort for `slot` out of the available clients; must not change what is saved."""

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        """Take in checked feedback, all of it or (raising) none."""

    def _abandoned(self, selection: Selection) -> None:
        """Note that the slot came to nothing."""

    def _memory(self) -> dict[str, Any]:
        """What was learnt, as JSON-able values."""
        return {}

    def _recall(self, memory: dict[str, Any]) -> None:
        """Take back what `_memory` gave."""

    def _check_cohort(self, cohort: Cohort, available: Available) -> None:
        """SelectorError unless `cohort` is `budget` distinct available clients, as a sorted tuple of plain ints."""
        plain = type(cohort) is tuple and len(cohort) == self.budget and set(map(type, cohort)) == {int}
        sound = plain and list(cohort) == sorted(set(cohort)) and cohort[0] >= 0 and cohort[-1] < self.clients
        if not sound or (available is not None and not available[list(cohort)].all()):
            raise SelectorError(
                f"{type(self).__name__} elected {cohort!r}; a cohort is a sorted tuple of {self.budget} distinct "
                f"clients (plain ints) out of those available in 0..{self.clients - 1}"
            )

    def _check_open(self, selection: Selection) -> None:
        if not isinstance(selection, Selection):
            raise StaleSelectionError(f"hand back the Selection that ask() gave, got {type(selection).__name__}")
        if self._open is None:
            raise StaleSelectionError(f"slot {selection.slot} is closed and no ask is open; call ask() first")
        if selection != self._open:
            raise StaleSelectionError(
                f"slot {selection.slot} with cohort {list(selection.cohort)} is not the open one (slot "
                f"{self._open.slot}, cohort {list(self._open.cohort)}); answer that one"
            )

    def _mask(self, available: Iterable[int] | None) -> Available:
        if available is None:
            return None
        if not isinstance(available, Iterable):
            raise ConfigurationError(
                f"available must be client numbers, got {available!r}; leave it out for all clients"
            )
        numbers = np.asarray(available if isinstance(available, np.ndarray) else list(available))
        if numbers.size and (not np.issubdtype(numbers.dtype, np.integer) or numbers.ndim != 1):
            raise ConfigurationError("available must be client numbers (integers), one for each client that is there")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.clients:
            raise ConfigurationError(f"available names a client outside 0..{self.clients - 1}")
        mask = np.zeros(self.clients, dtype=np.bool_)
        mask[numbers.astype(np.int64)] = True
        there = int(np.count_nonzero(mask))
        if there < self.budget:
            raise AvailabilityError(
                f"{there} of {self.clients} clients are available but a cohort takes {self.budget}; "
                f"wait for more, or lower the budget"
            )
        return mask


class AbstractUcb(AbstractSelector):
    """What the three UCB selectors share: K of N clients, an exploration mu and a seed."""

    def __init__(self, *, clients: int, budget: int, exploration: float, seed: int) -> None:
        try:
            self._exploration = float(exploration)
        except (TypeError, ValueError):
            self._exploration = float("nan")
        if not 0.0 <= self._exploration < float("inf"):
            raise ConfigurationError(f"exploration must be a finite number >= 0, got {exploration!r}")
        self._seed = whole("seed", seed)
        parameters = {
            "clients": whole("clients", clients),
            "budget": whole("budget", budget),
            "exploration": self._exploration,
            "seed": self._seed,
        }
        super().__init__(clients=clients, budget=budget, parameters=parameters)
