"""Every selector passes the public suite, and the suite catches selectors that are broken on purpose."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fedelect.selectors
from fedelect.selectors import (
    AbstractSelector,
    ActiveFl,
    AdditiveThompson,
    BestChannel,
    BpGp,
    BpUcb,
    ClientThompson,
    ClientUcb,
    ClusteredBySimilarity,
    ClusteredBySize,
    ContextUcb,
    DataSize,
    DivFl,
    E3cs,
    FairUcb,
    Favor,
    FedCor,
    FedCs,
    FixedCohort,
    GreedyFed,
    LossGp,
    Oort,
    PowerOfChoice,
    ProportionalFair,
    PyramidFl,
    QuickInitUcb,
    RandomAmong,
    RandomCohort,
    RbcsF,
    RoundRobin,
    SetGp,
    SFedAvg,
    ShuffledCycle,
    SoundCycle,
    SubsetUcb,
    TiFl,
    selector_classes,
)
from fedelect.selectors.base import Available, Choice
from fedelect.testing import ConformanceError, check_selector, selector_checks
from fedelect.vocabulary import Feedback, Selection

Factory = Callable[[int, int, int], AbstractSelector]

FACTORIES: dict[str, Factory] = {
    "BpUcb": lambda n, k, seed: BpUcb(clients=n, budget=k, exploration=0.3, seed=seed),
    "FixedCohort": lambda n, k, seed: FixedCohort(clients=n, cohort=range(k)),
    "QuickInitUcb": lambda n, k, seed: QuickInitUcb(clients=n, budget=k, exploration=0.3, seed=seed),
    "RandomAmong": lambda n, k, seed: RandomAmong(clients=n, budget=k, seed=seed, among=range(1, n)),
    "RandomCohort": lambda n, k, seed: RandomCohort(clients=n, budget=k, seed=seed),
    "RandomCohort of sets": lambda n, k, seed: RandomCohort(clients=n, budget=k, seed=seed, cohorts=[range(k)]),
    "RoundRobin": lambda n, k, seed: RoundRobin(clients=n, budget=k, seed=seed),
    "ShuffledCycle": lambda n, k, seed: ShuffledCycle(clients=n, budget=k, seed=seed),
    "SoundCycle": lambda n, k, seed: SoundCycle(clients=n, budget=k, seed=seed),
    "SubsetUcb": lambda n, k, seed: SubsetUcb(clients=n, budget=k, exploration=0.3, seed=seed),
    "AdditiveThompson": lambda n, k, seed: AdditiveThompson(clients=n, budget=k, seed=seed),
    "BpGp": lambda n, k, seed: BpGp(clients=n, budget=k, seed=seed),
    "ClientThompson": lambda n, k, seed: ClientThompson(clients=n, budget=k, seed=seed),
    "ClientUcb": lambda n, k, seed: ClientUcb(clients=n, budget=k, seed=seed),
    "ContextUcb": lambda n, k, seed: ContextUcb(clients=n, budget=k, seed=seed),
    "DataSize": lambda n, k, seed: DataSize(clients=n, budget=k, seed=seed),
    "FedCs": lambda n, k, seed: FedCs(clients=n, budget=k, seed=seed),
    "LossGp": lambda n, k, seed: LossGp(clients=n, budget=k, seed=seed),
    "Oort": lambda n, k, seed: Oort(clients=n, budget=k, seed=seed),
    "PowerOfChoice": lambda n, k, seed: PowerOfChoice(clients=n, budget=k, seed=seed),
    "ProportionalFair": lambda n, k, seed: ProportionalFair(clients=n, budget=k, seed=seed),
    "RbcsF": lambda n, k, seed: RbcsF(clients=n, budget=k, seed=seed),
    "SetGp": lambda n, k, seed: SetGp(clients=n, budget=k, seed=seed),
    "ActiveFl": lambda n, k, seed: ActiveFl(clients=n, budget=k, seed=seed),
    "BestChannel": lambda n, k, seed: BestChannel(clients=n, budget=k, seed=seed),
    "ClusteredBySimilarity": lambda n, k, seed: ClusteredBySimilarity(clients=n, budget=k, seed=seed),
    "ClusteredBySize": lambda n, k, seed: ClusteredBySize(clients=n, budget=k, seed=seed),
    "DivFl": lambda n, k, seed: DivFl(clients=n, budget=k, seed=seed),
    "E3cs": lambda n, k, seed: E3cs(clients=n, budget=k, seed=seed),
    "FairUcb": lambda n, k, seed: FairUcb(clients=n, budget=k, seed=seed),
    "Favor": lambda n, k, seed: Favor(clients=n, budget=k, seed=seed),
    "FedCor": lambda n, k, seed: FedCor(clients=n, budget=k, seed=seed),
    "GreedyFed": lambda n, k, seed: GreedyFed(clients=n, budget=k, seed=seed),
    "PyramidFl": lambda n, k, seed: PyramidFl(clients=n, budget=k, seed=seed),
    "SFedAvg": lambda n, k, seed: SFedAvg(clients=n, budget=k, seed=seed),
    "TiFl": lambda n, k, seed: TiFl(clients=n, budget=k, seed=seed),
}


def test_every_public_selector_is_put_to_the_suite() -> None:
    classes = {
        name
        for name in fedelect.selectors.__all__
        if inspect.isclass(kind := getattr(fedelect.selectors, name))
        and issubclass(kind, AbstractSelector)
        and kind is not AbstractSelector
    }
    assert classes <= set(FACTORIES)


def test_every_selector_of_the_catalogue_is_put_to_the_suite() -> None:
    tried = {type(factory(7, 3, 1)) for factory in FACTORIES.values()}
    assert set(selector_classes().values()) <= tried


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("check", selector_checks(), ids=lambda check: check.__name__)
def test_selector_conforms(name: str, check: Callable[[Factory], str]) -> None:
    assert check(FACTORIES[name]).endswith(".")


class Broken(AbstractSelector):
    """A sound random selector from which the broken ones below differ in one place each."""

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._inner = RandomCohort(clients=clients, budget=budget, seed=seed)
        self._told = 0.0

    def _choose(self, slot: int, available: Available) -> Choice:
        return self._inner._choose(slot, available)

    def _memory(self) -> dict[str, Any]:
        return {"told": self._told}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._told = memory["told"]


class Sound(Broken):
    pass


class Unsorted(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        cohort, indices = super()._choose(slot, available)
        return cohort[::-1], indices


class TooMany(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        return tuple(range(min(self.clients, self.budget + 1))), ()


class NumpyMembers(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        return tuple(np.array(super()._choose(slot, available)[0])), ()


class IgnoresAvailability(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        return super()._choose(slot, None)


class Forgetful(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        return super()._choose(slot + 1000 * round(self._told), available)

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self._told += 1

    def _memory(self) -> dict[str, Any]:
        return {"told": 0.0}


class NotPlain(Broken):
    def _memory(self) -> dict[str, Any]:
        return {"told": np.float64(0.0), "array": np.zeros(2)}


_counter = itertools.count()


class Unseeded(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        return super()._choose(slot + 7 * next(_counter), available)


class HashSeeded(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        return super()._choose(slot + hash("told") % 1000, available)


class LowNumbersFirst(Broken):
    def _choose(self, slot: int, available: Available) -> Choice:
        there = range(self.clients) if available is None else np.flatnonzero(available).tolist()
        return tuple(there[: self.budget]), ()


class TakesStaleAsks(Broken):
    def _check_open(self, selection: Selection) -> None:
        pass


class LearnsBeforeItChecks(Broken, overrides=["tell"]):
    def tell(self, selection: Selection, feedback: Feedback) -> None:
        self._told += 1
        super().tell(selection, feedback)


class ReusesSlots(Broken, overrides=["abandon"]):
    def abandon(self, selection: Selection) -> None:
        super().abandon(selection)
        self._slot -= 1


class SkipsNothing(Broken):
    def skip(self) -> None:
        pass


class AsksAnew(Broken, overrides=["ask"]):
    def ask(self, available: Any = None, *, reports: Feedback | None = None, size: int | None = None) -> Selection:
        self._open = None
        return super().ask(available)


class ElectsTheBudget(Broken):
    resizes = True


class StopsAtNan(Broken):
    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None
        self._told = float(int(feedback.opinions.sum()))


class ReliesOnAnOptionalSignal(Broken):
    uses = frozenset({"loss", "sizes"})

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        if feedback.sizes is not None:
            assert feedback.loss is not None


class RemembersAnOptionalSignal(Broken):
    """Its state is that of the last loss told, which it does not save."""

    uses = frozenset({"loss"})

    def _choose(self, slot: int, available: Available) -> Choice:
        return super()._choose(slot + 1000 * getattr(self, "_seen", 0), available)

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self._seen = int(feedback.loss is None)


class TakesWhatItDoesNotDeclare(Broken):
    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.seconds is not None


def _factory(kind: type[Broken]) -> Factory:
    return lambda n, k, seed: kind(clients=n, budget=k, seed=seed)


def test_a_sound_selector_passes_by_class_and_the_report_says_what_was_tried() -> None:
    report = check_selector(Sound)
    assert len(report) == len(selector_checks()) == len(str(report).splitlines())
    for tried in (
        "(N, K) = (7, 3)",
        "24 slots",
        "Restore",
        "Other process",
        "Renaming: over 150 seeds",
        "Availability",
    ):
        assert tried in str(report)


def test_what_was_not_tried_is_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LowNumbersFirst, "symmetric", False)
    monkeypatch.setattr(LowNumbersFirst, "__module__", "__main__")
    report = str(check_selector(LowNumbersFirst))
    assert "Renaming: not tried" in report and "Other process: not tried" in report


def test_a_selector_is_checked_by_its_name() -> None:
    assert check_selector("random") == check_selector(FACTORIES["RandomCohort"])


FAILS_IN = {
    Unsorted: "cohorts are sorted distinct clients",
    TooMany: "cohorts are sorted distinct clients",
    NumpyMembers: "cohorts are sorted distinct clients",
    IgnoresAvailability: "only available clients are chosen",
    Forgetful: "state is plain json and goes on exactly",
    NotPlain: "state is plain json and goes on exactly",
    Unseeded: "a seed repeats",
    HashSeeded: "a seed repeats in another process",
    LowNumbersFirst: "renaming clients changes only names",
    TakesStaleAsks: "stale asks are refused",
    LearnsBeforeItChecks: "stale asks are refused",
    ReusesSlots: "abandoned slots are not reused",
    SkipsNothing: "skipped slots are not reused",
    AsksAnew: "an open ask is asked again",
    ElectsTheBudget: "the size of cohorts may change",
    StopsAtNan: "missing opinions are accepted",
    ReliesOnAnOptionalSignal: "optional signals may be missing",
    RemembersAnOptionalSignal: "optional signals may be missing",
    TakesWhatItDoesNotDeclare: "optional signals may be missing",
}


@pytest.mark.parametrize("kind", [k for k in Broken.__subclasses__() if k is not Sound], ids=lambda k: k.__name__)
def test_a_broken_selector_is_caught_by_the_check_that_is_named(kind: type[Broken]) -> None:
    with pytest.raises(ConformanceError, match=f"check '{FAILS_IN[kind]}' failed: "):
        check_selector(_factory(kind))
