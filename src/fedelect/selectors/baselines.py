"""Baselines that do not learn: a fixed cohort, a random one, cohorts in turn, all clients in turn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.vocabulary import Cohort, Feedback, Ints, Selection, as_cohort, as_int

PAPERS_FIRST_COHORT: Cohort = (0, 1, 10, 15, 19)
"""The one round-robin set that the paper names, {1, 2, 11, 16, 20} counted from 1."""

_ROUND_ROBIN_COHORTS = 5


@final
class FixedCohort(AbstractSelector):
    """Always the same cohort; the paper's "optimal solution" if it is the best one.

    A member that is not available is replaced by a random available client.

    >>> FixedCohort(clients=20, cohort=[4, 3, 2, 1, 0]).ask().cohort
    (0, 1, 2, 3, 4)
    """

    advice: ClassVar[str] = "You know the best cohort already, or want an upper baseline."
    symmetric = False

    def __init__(self, *, clients: int, cohort: Iterable[int]) -> None:
        self._cohort = as_cohort(cohort, clients=as_int("clients", clients))
        super().__init__(clients=clients, budget=len(self._cohort))
        self.parameters["cohort"] = self._cohort

    def _choose(self, slot: int, available: Available) -> Choice:
        return _replace_missing(self._cohort, available, seed=0, slot=slot), ()


@final
class RandomCohort(AbstractSelector):
    """A uniformly random cohort in every slot, or one of the predefined `cohorts`."""

    advice: ClassVar[str] = "You want the usual baseline, or have no signal."
    resizes = True  # not with predefined cohorts

    def __init__(self, *, clients: int, budget: int, seed: int, cohorts: Sequence[Iterable[int]] | None = None) -> None:
        sets = None if cohorts is None else _check_cohorts(cohorts, clients, budget)
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.parameters["cohorts"] = self._cohorts = sets
        self.symmetric = self.resizes = cohorts is None

    def _choose(self, slot: int, available: Available) -> Choice:
        rng = stream(self.seed, "random-cohort", slot)
        if self._cohorts is None:
            pool = self.clients if available is None else np.flatnonzero(available)
            return tuple(sorted(rng.choice(pool, self.size, replace=False).tolist())), ()
        order = [self._cohorts[i] for i in rng.permutation(len(self._cohorts))]
        return _first_available(order, available, seed=self.seed, slot=slot), ()


@final
class RandomAmong(AbstractSelector):
    """A random cohort of the clients in `among`; what `oracle` is made of, where these are the unflawed.

    If fewer than K of them are available, all of those are elected and the rest is drawn at random from the other
    available clients. With all clients in `among` it elects exactly whom `RandomCohort` with the same seed elects.

    >>> RandomAmong(clients=20, budget=3, seed=1, among=[4, 7, 9]).ask().cohort
    (4, 7, 9)
    """

    advice: ClassVar[str] = "You know which clients are good, and want an upper baseline."
    resizes = True
    symmetric = False

    def __init__(self, *, clients: int, budget: int, seed: int, among: Iterable[int]) -> None:
        chosen = sorted(set(among))
        super().__init__(clients=clients, budget=budget, seed=seed)
        if any(not 0 <= client < self.clients for client in chosen):
            raise ConfigurationError(f"among must name clients from 0 to {self.clients - 1}, got {chosen}")
        self.parameters["among"] = chosen
        self._among = np.array(chosen, dtype=np.int64)

    def _choose(self, slot: int, available: Available) -> Choice:
        rng = stream(self.seed, "random-cohort", slot)
        pool = self._among if available is None else self._among[available[self._among]]
        first = rng.choice(pool, min(self.size, pool.size), replace=False)
        others = np.setdiff1d(self._candidates(available), pool)
        second = rng.choice(others, self.size - first.size, replace=False)
        return tuple(sorted([*first.tolist(), *second.tolist()])), ()


@final
class RoundRobin(AbstractSelector):
    """Predefined cohorts in turn.

    Without `cohorts`, five are drawn at random; with the paper's budget of 5 out of at least 20 clients, the first is
    the one that the paper names, {1, 2, 11, 16, 20}.
    """

    advice: ClassVar[str] = "You want a few fixed cohorts to train in turn."
    symmetric = False

    def __init__(self, *, clients: int, budget: int, seed: int, cohorts: Sequence[Iterable[int]] | None = None) -> None:
        sets = None if cohorts is None else _check_cohorts(cohorts, clients, budget)
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.parameters["cohorts"] = sets
        self._cohorts = sets or self._draw_cohorts()

    def _draw_cohorts(self) -> list[Cohort]:
        rng = stream(self.seed, "round-robin")
        cohorts = [
            tuple(sorted(rng.choice(self.clients, self.budget, replace=False).tolist()))
            for _ in range(_ROUND_ROBIN_COHORTS)
        ]
        if self.budget == len(PAPERS_FIRST_COHORT) and self.clients > PAPERS_FIRST_COHORT[-1]:
            cohorts[0] = PAPERS_FIRST_COHORT
        return cohorts

    def _choose(self, slot: int, available: Available) -> Choice:
        turn = (slot - 1) % len(self._cohorts)
        order = self._cohorts[turn:] + self._cohorts[:turn]
        return _first_available(order, available, seed=self.seed, slot=slot), ()


@final
class ShuffledCycle(AbstractSelector):
    """All clients in turn, in an order that is shuffled anew in every cycle: equal turns, by chance.

    A cycle ends when no available client is left that has not been elected in it; a cohort that is then too small is
    filled up from the next cycle. A client that is away misses its turn. An abandoned slot counts as a turn.
    """

    advice: ClassVar[str] = "Nothing is known about the clients: as random, but everybody trains equally often."
    resizes = True
    initial_arrays: ClassVar[Mapping[str, float]] = {"elected": 0.0}  # in this cycle: 1, else 0

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._cycle = 0

    def _choose(self, slot: int, available: Available) -> Choice:
        candidates = self._candidates(available)
        waiting = candidates[self.arrays["elected"][candidates] == 0.0]
        first = self._shuffle(waiting, self._cycle)[: self.size]
        others = np.setdiff1d(candidates, first)
        second = self._shuffle(others, self._cycle + 1)[: self.size - first.size]
        return tuple(sorted([*first.tolist(), *second.tolist()])), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self._take_turns(selection)

    def _abandon(self, selection: Selection) -> None:
        self._take_turns(selection)

    def _take_turns(self, selection: Selection) -> None:
        members = np.array(selection.cohort)
        again = members[self.arrays["elected"][members] > 0.0]
        if again.size:  # the cycle has ended, and these are the first of the next one
            self._cycle += 1
            self.arrays["elected"][:] = 0.0
            members = again
        self.arrays["elected"][members] = 1.0

    def _shuffle(self, clients: Ints, cycle: int) -> Ints:
        order = stream(self.seed, "cycle", cycle).permutation(self.clients)
        return clients[np.argsort(order[clients])]

    def _memory(self) -> dict[str, Any]:
        return {"cycle": self._cycle}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._cycle = as_int("cycle", memory["cycle"])


def _check_cohorts(cohorts: Sequence[Iterable[int]], clients: int, budget: int) -> list[Cohort]:
    if not all(isinstance(cohort, Iterable) for cohort in cohorts):
        raise ConfigurationError(f"cohorts must be one or more sets of {budget} clients each, got {cohorts!r}")
    checked = [as_cohort(cohort, clients=clients) for cohort in cohorts]
    if not checked or any(len(cohort) != budget for cohort in checked):
        listed = [list(cohort) for cohort in checked]
        raise ConfigurationError(f"cohorts must be one or more sets of {budget} clients each, got {listed}")
    return checked


def _first_available(order: list[Cohort], available: Available, *, seed: int, slot: int) -> Cohort:
    for cohort in order:
        if available is None or available[list(cohort)].all():
            return cohort
    return _replace_missing(order[0], available, seed=seed, slot=slot)


def _replace_missing(cohort: Cohort, available: Available, *, seed: int, slot: int) -> Cohort:
    """Replace the members that are not available by random available clients."""
    if available is None or available[list(cohort)].all():
        return cohort
    kept = [member for member in cohort if available[member]]
    others = np.setdiff1d(np.flatnonzero(available), kept)
    stand_ins = stream(seed, "stand-in", slot).permutation(others)[: len(cohort) - len(kept)]
    return tuple(sorted([*kept, *stand_ins.tolist()]))
