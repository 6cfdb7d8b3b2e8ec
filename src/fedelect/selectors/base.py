"""The selector contract: `ask` for a cohort, `tell` the feedback.

A selector is a pure state machine: no clock, no files, no randomness but the streams named by its seed and the slot.
`ask`, `tell`, `abandon`, `skip`, `state` and `restore` are the same for all selectors. A selector supplies `_choose`,
what it needs of `_learn`, `_abandon`, `_memory` and `_recall`, and the names of its per-client arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.indices import top_k
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
from fedelect.rules import pack, unpack
from fedelect.seeds import stream
from fedelect.selectors.parameters import record_arguments, records_arguments
from fedelect.vocabulary import (
    EXTRA_SIGNALS,
    SIGNALS,
    Cohort,
    Feedback,
    Floats,
    Ints,
    Selection,
    Signal,
    as_cohort,
    as_int,
    check_budget,
)

Available = NDArray[np.bool_] | None
"""(N,) mask of the available clients; None means all of them."""

Choice = tuple[Cohort, tuple[float, ...]]
"""A sorted cohort and its winning indices (see `Selection.indices`); `()` where no index was used."""

_HOOKS = {
    "candidates": "_propose",
    "ask": "_choose",
    "tell": "_learn",
    "abandon": "_abandon",
    "state": "_memory",
    "restore": "_recall",
}


def _check_signals(kind: "type[AbstractSelector]") -> None:
    """Raise SelectorError if a class names a signal that does not exist, or one as needed and as optional."""
    unknown = sorted((kind.needs | kind.uses | kind.asks) - set(SIGNALS))
    if unknown:
        raise SelectorError(f"{kind.__name__} names the signal {unknown[0]!r}; there are {', '.join(SIGNALS)}")
    unfit = sorted(kind.asks - EXTRA_SIGNALS.keys())
    if unfit:
        raise SelectorError(f"{kind.__name__} asks candidates for {unfit[0]!r}; they report extra signals only")
    if kind.resizes and kind.asks:
        raise SelectorError(f"{kind.__name__} `resizes` and `asks`; its candidates would be for the wrong size")
    both = sorted(kind.needs & kind.uses)
    if both:
        raise SelectorError(
            f"{kind.__name__} has {both[0]!r} in `needs` and in `uses`; a signal is needed or optional, name it once"
        )


class AbstractSelector(ABC):
    """Chooses which `budget` of the `clients` train in each slot.

    A subclass implements `_choose(slot, available) -> (cohort, indices)` and, to learn, `_learn(selection, feedback)`.
    What it learns about each client goes into `self.arrays`, one (N,) array of floats for each name in
    `initial_arrays`; these are saved and restored, and put back if `_learn` raises. Constructor arguments, keywords
    only, are recorded in `self.parameters`, from which `restore` builds the selector again.

    >>> from fedelect.selectors import AbstractSelector
    >>> class Greedy(AbstractSelector):
    ...     "The K clients with the highest mean reward; untried clients first."
    ...     needs = frozenset({"reward"})
    ...     initial_arrays = {"pulls": 0.0, "total": 0.0}
    ...
    ...     def _choose(self, slot, available):
    ...         pulls = self.arrays["pulls"]
    ...         means = np.where(pulls > 0, self.arrays["total"] / np.maximum(pulls, 1), np.inf)
    ...         return self._pick_best(means, slot, self._candidates(available)), ()
    ...
    ...     def _learn(self, selection, feedback):
    ...         members = list(selection.cohort)
    ...         self.arrays["pulls"][members] += 1
    ...         self.arrays["total"][members] += feedback.reward
    >>> greedy = Greedy(clients=4, budget=2, seed=1)
    >>> greedy.tell(greedy.ask(), Feedback(reward=0.5))
    >>> Greedy.restore(greedy.state()).arrays["pulls"].sum()
    np.float64(2.0)

    Class attributes that a subclass may set:

    - `needs`: the signals `tell` must get ("reward", "opinions", "beliefs", or one of
      `fedelect.vocabulary.EXTRA_SIGNALS`). Only FL&FA has a server that sees "reward" and the extra signals; only
      FL&DA has "beliefs". A selector that needs what a framework lacks is refused there.
    - `uses`: optional signals. A driver gives those it has; `_learn` finds None in place of the others.
    - `asks`: extra signals that candidates report before `ask` (see `candidates`).
    - `initial_arrays`: name -> initial value of each per-client array.
    - `advice`: one line on when to choose it.
    - `version`: raised when the meaning of the saved state changes.
    - `resizes`: whether `ask` takes a `size` other than the budget; `_choose` then elects `self.size` clients.
    - `symmetric`: whether renaming the clients changes nothing but the names (in distribution).

    Args:
        clients: N, the number of clients.
        budget: K, the size of a cohort.
        seed: Names the selector's random streams.

    Attributes:
        clients: N.
        budget: K.
        size: Size of the cohort that is or was last asked for: K, unless `ask` was given another.
        seed: As given.
        parameters: The constructor's arguments as JSON-able values.
        arrays: name -> (N,) float64.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset()
    uses: ClassVar[frozenset[Signal]] = frozenset()
    asks: ClassVar[frozenset[Signal]] = frozenset()
    initial_arrays: ClassVar[Mapping[str, float]] = {}
    advice: ClassVar[str] = ""
    version: ClassVar[int] = 1
    resizes: bool = False
    symmetric: bool = True

    parameters: dict[str, Any]

    def __init_subclass__(cls, *, overrides: Collection[str] = (), **kwargs: Any) -> None:
        """Check the class and record its constructor's arguments.

        Args:
            overrides: Methods of the contract that the class overrides on purpose; test doubles do.
            kwargs: Passed on.
        """
        super().__init_subclass__(**kwargs)
        for name, hook in _HOOKS.items():
            if name in vars(cls) and name not in overrides:
                raise SelectorError(f"{cls.__name__} overrides `{name}`, which checks its input; override `{hook}`")
        _check_signals(cls)
        if not records_arguments(cls.__init__):  # its own, or that of a class beside this one
            cls.__init__ = record_arguments(cls.__init__)  # type: ignore[method-assign]

    @record_arguments
    def __init__(self, *, clients: int, budget: int, seed: int = 0) -> None:
        self.clients = as_int("clients", clients)
        self.budget = as_int("budget", budget)
        self.seed = as_int("seed", seed)
        check_budget(self.clients, self.budget)
        self.size = self.budget
        self.arrays: dict[str, Floats] = {
            name: np.full(self.clients, first, dtype=np.float64) for name, first in self.initial_arrays.items()
        }
        self._slot = 0
        self._open: Selection | None = None
        self._reported: frozenset[Signal] = frozenset()  # signals reported before the open selection was made

    def candidates(self, available: Iterable[int] | None = None) -> Cohort | None:
        """Clients that should report the signals in `asks` before the next `ask`, sorted; None if there are none.

        A driver that can asks them about the current global model and passes the answers to `ask`, with the same
        `available`. Nothing changes: called again, it names the same clients. With a selection open it is None.

        Args:
            available: As in `ask`.
        """
        if self._open is not None or not self.asks:
            return None
        mask = self._mask(available, self.budget)
        proposed = self._propose(self._slot + 1, mask)
        if proposed is not None:
            self._check_cohort(proposed, mask, proposed=True)
        return proposed

    def ask(
        self,
        available: Iterable[int] | None = None,
        *,
        reports: Feedback | None = None,
        size: int | None = None,
    ) -> Selection:
        """Choose the cohort of the next slot; return the open selection again if there is one.

        Args:
            available: Numbers of the available clients, at least as many as are elected; None means all.
            reports: What the `candidates` reported; nan for all others and for those that did not answer. A signal
                in `needs` that was reported need not be told after the slot. None: nobody was asked.
            size: How many to elect; None means `budget`. Another number is refused unless the selector `resizes`.
        """
        if self._open is not None:
            return self._open
        size = self._read_size(size)
        mask = self._mask(available, size)
        slot = self._slot + 1
        if reports is not None:
            self._check_sizes(reports, "ask() takes reports as a Feedback")
        self.size = size
        try:
            if reports is None:
                cohort, indices = self._choose(slot, mask)
            else:
                cohort, indices = self._choose_reported(slot, mask, reports)
        except NoElection:
            self._slot = slot  # the clients held the election; its slot is gone
            raise
        self._check_cohort(cohort, mask)
        self._slot = slot
        self._open = Selection(slot, cohort, indices)
        self._reported = frozenset(name for name in self.asks if getattr(reports, name, None) is not None)
        return self._open

    def tell(self, selection: Selection, feedback: Feedback) -> None:
        """Close the open selection with its feedback, and learn from it."""
        self._check_open(selection)
        self._check_sizes(feedback, "tell() takes a Feedback")
        missing = [signal for signal in self.needs - self._reported if getattr(feedback, signal) is None]
        if missing:
            raise MissingSignalError(
                f"{type(self).__name__} needs {' and '.join(map(repr, sorted(missing)))}, which this feedback lacks; "
                f"give it, or close the slot with abandon()"
            )
        self._change_arrays(lambda: self._learn(selection, feedback))
        self._open, self._reported = None, frozenset()

    def abandon(self, selection: Selection) -> None:
        """Close the open selection without feedback. Its slot number is not used again."""
        self._check_open(selection)
        self._change_arrays(lambda: self._abandon(selection))
        self._open, self._reported = None, frozenset()

    def skip(self) -> None:
        """Let the next slot pass without an election, for too few clients are there. Its number is not used again."""
        if self._open is not None:
            raise StaleSelectionError(f"slot {self._open.slot} is open; answer it, or close it with abandon()")
        self._slot += 1

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-able values; long arrays are packed (see `fedelect.rules.packing`)."""
        selection, chosen = self._open, None
        if selection is not None:
            chosen = {"cohort": list(selection.cohort), "indices": list(selection.indices)}
            chosen |= {"reported": sorted(self._reported)} if self._reported else {}
        arrays = {name: pack(values, "<f8") for name, values in self.arrays.items()}
        return {
            "selector": type(self).__name__,
            "version": self.version,
            "parameters": dict(self.parameters),
            "slot": self._slot,
            "open": chosen,
            "memory": arrays | self._memory(),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """Build the selector that `state` was taken from; it continues exactly as that one would."""
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
            selector._slot = as_int("slot", state["slot"])
            if selector._slot < (state["open"] is not None):
                raise ValueError(f"slot {selector._slot}")
            if state["open"] is not None:
                cohort = as_cohort(state["open"]["cohort"], clients=selector.clients)
                selector.size = selector._read_size(len(cohort))
                selector._check_cohort(cohort, None)
                selector._open = Selection(selector._slot, cohort, tuple(map(float, state["open"]["indices"])))
                selector._reported = cls.asks & frozenset(state["open"].get("reported", ()))
            memory = state["memory"]
            for array in selector.arrays:
                selector.arrays[array] = unpack(memory[array], "<f8", size=selector.clients, what=array)
            selector._recall(memory)
        except StateError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, FedelectError) as error:
            raise StateError(f"the saved state of {cls.__name__} is damaged: {error!r}") from error
        return selector

    @abstractmethod
    def _choose(self, slot: int, available: Available) -> Choice:
        """Choose the cohort of `slot` out of the available clients. Must not change what is saved."""

    def _propose(self, slot: int, available: Available) -> Cohort | None:
        """Clients to ask for the signals in `asks` before `slot`, sorted. Must not change what is saved."""
        return None

    def _choose_reported(self, slot: int, available: Available, reports: Feedback) -> Choice:
        """Choose as `_choose` does, knowing what the candidates reported; without this hook the same."""
        return self._choose(slot, available)

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        """Learn from checked feedback. If it raises, the arrays are put back; other memory must be unchanged."""

    def _abandon(self, selection: Selection) -> None:
        """Learn that the slot had no result."""

    def _memory(self) -> dict[str, Any]:
        """Return what was learnt beside the arrays, as JSON-able values under names that no array has."""
        return {}

    def _recall(self, memory: dict[str, Any]) -> None:
        """Restore what `_memory` returned, and what follows from the arrays, which are restored already."""

    def _candidates(self, available: Available) -> Ints:
        """Numbers of the available clients, sorted."""
        return np.arange(self.clients) if available is None else np.flatnonzero(available)

    def _pick_best(self, values: Floats, slot: int, candidates: Ints, count: int | None = None) -> Cohort:
        """Return the `count` (`size` if None) candidates with the highest values (N,); ties by hash of the seed."""
        size = self.size if count is None else count
        return top_k(values, size, among=candidates, tie_seed=self.seed, slot=slot) if size else ()

    def _pick_random(self, slot: int, candidates: Ints, count: int, name: str = "random") -> list[int]:
        """Draw `count` distinct candidates uniformly from the stream `name` of this seed and slot."""
        drawn: list[int] = stream(self.seed, name, slot).choice(candidates, count, replace=False).tolist()
        return drawn

    def _update_known(self, name: str, values: Floats) -> None:
        """Overwrite an array where `values` (N,) is not nan."""
        self.arrays[name] = np.where(np.isnan(values), self.arrays[name], values)

    def _change_arrays(self, change: Callable[[], None]) -> None:
        """Run `change`, which may change the arrays; put them back if it raises or spoils them."""
        before = {name: values.copy() for name, values in self.arrays.items()}
        try:
            change()
            self._check_arrays()
        except BaseException:
            self.arrays = before
            raise

    def _check_arrays(self) -> None:
        if self.arrays.keys() != self.initial_arrays.keys():
            raise SelectorError(
                f"{type(self).__name__} has arrays {sorted(self.arrays)} where `initial_arrays` declares "
                f"{sorted(self.initial_arrays)}; declare all of them, with a value to begin with"
            )
        for name, values in self.arrays.items():
            found = f"{getattr(values, 'dtype', type(values).__name__)} {np.shape(values)}"
            if found != f"float64 ({self.clients},)":
                raise SelectorError(
                    f"{type(self).__name__} made its array {name!r} {found}; keep it float64 ({self.clients},)"
                )
            if not values.flags.writeable:  # one of the feedback's own arrays
                self.arrays[name] = values.copy()

    def _check_sizes(self, feedback: Feedback, rule: str) -> None:
        if not isinstance(feedback, Feedback):
            raise FeedbackError(f"{rule}, got {type(feedback).__name__}")
        rows = {} if feedback.updates is None else {"updates": feedback.updates}
        for name, values in (feedback.per_client() | rows).items():
            if len(values) != self.clients:
                raise FeedbackError(f"{name} has {len(values)} values but there are {self.clients} clients")

    def _check_cohort(self, cohort: Cohort, available: Available, *, proposed: bool = False) -> None:
        """Raise SelectorError unless `cohort` is a sorted tuple of distinct available clients, plain ints.

        There must be `size` of them, or, if only `proposed` as candidates, at least one.
        """
        plain = type(cohort) is tuple and set(map(type, cohort)) == {int} and (proposed or len(cohort) == self.size)
        sound = plain and list(cohort) == sorted(set(cohort)) and cohort[0] >= 0 and cohort[-1] < self.clients
        if not sound or (available is not None and not available[list(cohort)].all()):
            did, what = ("proposed", "candidates are a") if proposed else ("elected", "a cohort is a")
            count = "" if proposed else f"{self.size} "
            raise SelectorError(
                f"{type(self).__name__} {did} {cohort!r}; {what} sorted tuple of {count}distinct "
                f"clients (plain ints) out of those available in 0..{self.clients - 1}"
            )

    def _check_open(self, selection: Selection) -> None:
        if not isinstance(selection, Selection):
            raise StaleSelectionError(f"hand back the Selection that ask() gave, got {type(selection).__name__}")
        if self._open is None:
            raise StaleSelectionError(f"slot {selection.slot} is closed and no selection is open; call ask() first")
        if selection != self._open:
            raise StaleSelectionError(
                f"slot {selection.slot} with cohort {list(selection.cohort)} is not the open one (slot "
                f"{self._open.slot}, cohort {list(self._open.cohort)}); answer that one"
            )

    def _read_size(self, size: int | None) -> int:
        """Return how many to elect; ConfigurationError if the selector cannot elect as many."""
        if size is None or size == self.budget:
            return self.budget
        if not self.resizes:
            raise ConfigurationError(
                f"size: got {size!r}; {type(self).__name__} elects {self.budget} clients in every slot; leave it out, "
                f"or take a selector that `resizes`"
            )
        if not 1 <= as_int("size", size) <= self.clients:
            raise ConfigurationError(f"size: got {size}; allowed: 1 to {self.clients}, the number of clients")
        return size

    def _mask(self, available: Iterable[int] | None, size: int) -> Available:
        if available is None:
            return None
        if not isinstance(available, Iterable):
            raise ConfigurationError(
                f"available must be client numbers, got {available!r}; leave it out for all clients"
            )
        numbers = np.asarray(available if isinstance(available, np.ndarray) else list(available))
        if numbers.size and (not np.issubdtype(numbers.dtype, np.integer) or numbers.ndim != 1):
            raise ConfigurationError("available must be client numbers (integers), one for each available client")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.clients:
            raise ConfigurationError(f"available names a client outside 0..{self.clients - 1}")
        mask = np.zeros(self.clients, dtype=np.bool_)
        mask[numbers.astype(np.int64)] = True
        count = int(np.count_nonzero(mask))
        if count < size:
            raise AvailabilityError(
                f"{count} of {self.clients} clients are available but a cohort takes {size}; "
                f"wait for more, or lower the budget"
            )
        return mask
