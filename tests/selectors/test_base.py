"""The parts of the contract that the conformance suite does not reach."""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from fedelect import Feedback
from fedelect.errors import (
    AvailabilityError,
    BudgetError,
    ConfigurationError,
    FeedbackError,
    MissingSignalError,
    NoElection,
    SelectorError,
    StaleSelectionError,
    StateError,
)
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector, BpUcb, QuickInitUcb, RandomCohort, SubsetUcb
from fedelect.selectors.base import Available, Choice
from fedelect.testing import check_selector
from fedelect.vocabulary import Selection


@pytest.mark.parametrize("kind", [SubsetUcb, QuickInitUcb, BpUcb])
def test_a_budget_above_the_clients_is_refused(kind: type[QuickInitUcb]) -> None:
    with pytest.raises(BudgetError, match="budget 6 is not between 1 and the 5 clients"):
        kind(clients=5, budget=6, exploration=1.0, seed=0)


@pytest.mark.parametrize("kind", [SubsetUcb, QuickInitUcb, BpUcb])
@pytest.mark.parametrize("mu", [-0.1, float("nan"), float("inf")])
def test_exploration_must_be_a_number_not_below_zero(kind: type[QuickInitUcb], mu: float) -> None:
    with pytest.raises(ConfigurationError, match="exploration"):
        kind(clients=5, budget=2, exploration=mu, seed=0)


def test_every_mistake_leaves_the_selector_as_it_was() -> None:
    selector = QuickInitUcb(clients=4, budget=2, exploration=1.0, seed=7)
    selection = selector.ask()
    before = selector.state()
    with pytest.raises(FeedbackError, match="3 values but there are 4 clients"):
        selector.tell(selection, Feedback(opinions=[0.1, 0.2, 0.3]))
    with pytest.raises(FeedbackError):
        selector.tell(selection, Feedback(opinions=[0.1, 0.2, 0.3, 1.3]))
    with pytest.raises(MissingSignalError, match="'reward'"):
        selector.tell(selection, Feedback(opinions=[np.nan] * 4))
    assert selector.state() == before
    selector.tell(selection, Feedback(opinions=[0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(StaleSelectionError, match="slot 1 is closed"):
        selector.tell(selection, Feedback(reward=0.5))
    selector.ask()
    with pytest.raises(StaleSelectionError, match="is not the open one"):
        selector.tell(selection, Feedback(reward=0.5))


@pytest.mark.parametrize("kind", [SubsetUcb, QuickInitUcb, BpUcb, RandomCohort])
@pytest.mark.parametrize("change", [{"clients": 4.0}, {"budget": True}, {"seed": None}, {"seed": 1.5}])
def test_numbers_that_are_not_whole_are_refused_by_name(kind: type[RandomCohort], change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(ConfigurationError, match=f"{name} must be a whole number"):
        kind(**({"clients": 4, "budget": 2, "seed": 7} | change))


@pytest.mark.parametrize("kind", [SubsetUcb, QuickInitUcb, BpUcb, RandomCohort])
def test_numpy_numbers_are_as_good_as_plain_ones(kind: type[RandomCohort]) -> None:
    selector = kind(clients=np.int64(4), budget=np.int32(2), seed=np.uint8(7))  # type: ignore[arg-type]
    assert json.loads(json.dumps(selector.state())) == selector.state()


def test_what_is_no_ask_feedback_state_or_list_is_refused() -> None:
    selector = RandomCohort(clients=4, budget=2, seed=7)
    with pytest.raises(ConfigurationError, match="available must be client numbers"):
        selector.ask(3)  # type: ignore[arg-type]
    selection = selector.ask()
    with pytest.raises(FeedbackError, match="takes a Feedback, got dict"):
        selector.tell(selection, {})  # type: ignore[arg-type]
    with pytest.raises(StaleSelectionError, match="got NoneType"):
        selector.tell(None, Feedback())  # type: ignore[arg-type]
    with pytest.raises(StateError, match="got NoneType"):
        RandomCohort.restore(None)  # type: ignore[arg-type]


class Odd(AbstractSelector):
    def __init__(self, cohort: Any) -> None:
        super().__init__(clients=4, budget=2)
        self.cohort = cohort

    def _choose(self, slot: int, available: Available) -> Choice:
        return self.cohort, ()


@pytest.mark.parametrize("cohort", [(0,), (0, 1, 2), (1, 0), (1, 1), (3, 4), (-1, 0), [0, 1], (0, np.int64(1)), (2, 3)])
def test_a_cohort_that_may_not_be_elected_is_refused_and_uses_no_slot(cohort: Any) -> None:
    selector = Odd(cohort)
    with pytest.raises(SelectorError, match="Odd elected"):
        selector.ask([0, 1, 2])
    selector.cohort = (0, 1)
    assert selector.ask().slot == 1


def test_availability_is_checked() -> None:
    selector = RandomCohort(clients=4, budget=2, seed=7)
    with pytest.raises(AvailabilityError, match="1 of 4 clients are available"):
        selector.ask([3])
    with pytest.raises(AvailabilityError):
        selector.ask([])
    with pytest.raises(ConfigurationError, match=r"outside 0\.\.3"):
        selector.ask([3, 4])
    with pytest.raises(ConfigurationError, match="client numbers"):
        selector.ask([0.5, 1.5])  # type: ignore[list-item]
    assert selector.ask(np.array([0, 2])).cohort == (0, 2)


def test_a_state_of_another_selector_or_version_is_refused_by_name() -> None:
    state = QuickInitUcb(clients=4, budget=2, exploration=1.0, seed=7).state()
    with pytest.raises(StateError, match="'QuickInitUcb'"):
        SubsetUcb.restore(state)
    with pytest.raises(StateError, match="version 99"):
        QuickInitUcb.restore(state | {"version": 99})


@pytest.mark.parametrize(
    "damage",
    [
        {"memory": {}},
        {"parameters": {"clients": 4}},
        {"parameters": {"clients": 4, "budget": 9, "exploration": 1.0, "seed": 7}},
        {"slot": "many"},
        {"slot": -5},
        {"open": {"cohort": [1], "indices": []}},
        {"open": {"cohort": [0, 99], "indices": []}},
    ],
)
def test_a_damaged_state_is_refused(damage: dict[str, object]) -> None:
    selector = QuickInitUcb(clients=4, budget=2, exploration=1.0, seed=7)
    selector.tell(selector.ask(), Feedback(reward=0.5))
    with pytest.raises(StateError, match="damaged"):
        QuickInitUcb.restore(selector.state() | damage)


@pytest.mark.parametrize("text", [17, "not base64 !", "AAAA", ""])
def test_damaged_packed_arrays_are_refused(text: object) -> None:
    selector = BpUcb(clients=4, budget=2, exploration=1.0, seed=7)
    state = selector.state()
    with pytest.raises(StateError, match="damaged"):
        BpUcb.restore(state | {"memory": state["memory"] | {"pulls": text}})


def test_a_packed_array_of_another_length_is_refused() -> None:
    state = BpUcb(clients=4, budget=2, exploration=1.0, seed=7).state()
    longer = BpUcb(clients=5, budget=2, exploration=1.0, seed=7).state()
    with pytest.raises(StateError, match="5 values where 4 belong"):
        BpUcb.restore(state | {"memory": longer["memory"]})


class Greedy(AbstractSelector):
    """A learner as a user would write it: declared arrays, a parameter, `_choose` and `_learn`."""

    needs = frozenset({"reward"})
    initial_arrays: ClassVar[Mapping[str, float]] = {"pulls": 0.0, "mean": 0.5}

    def __init__(self, *, clients: int, budget: int, seed: int, epsilon: float = 0.1, **more: Any) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.epsilon = epsilon

    def _choose(self, slot: int, available: Available) -> Choice:
        candidates = self._candidates(available)
        if stream(self.seed, "explore", slot).random() < self.epsilon:
            return tuple(sorted(self._pick_random(slot, candidates, self.budget))), ()
        return self._pick_best(self.arrays["mean"], slot, candidates), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.reward is not None
        members = list(selection.cohort)
        self.arrays["pulls"][members] += 1.0
        self.arrays["mean"][members] += (feedback.reward - self.arrays["mean"][members]) / self.arrays["pulls"][members]


def test_a_selector_that_declares_its_arrays_conforms_without_saving_anything_itself() -> None:
    check_selector(lambda clients, budget, seed: Greedy(clients=clients, budget=budget, seed=seed, epsilon=0.5))


def test_the_constructors_arguments_are_recorded_with_defaults_as_plain_values() -> None:
    more: dict[str, Any] = {"sets": ((1, 2), range(2)), "array": np.arange(2), "table": {"3": np.float64(0.5)}}
    selector = Greedy(clients=4, budget=2, seed=np.int64(7), epsilon=1, **more)  # type: ignore[arg-type]
    assert selector.parameters == {
        "clients": 4,
        "budget": 2,
        "seed": 7,
        "epsilon": 1.0,
        "sets": [[1, 2], [0, 1]],
        "array": [0, 1],
        "table": {"3": 0.5},
    }
    assert type(selector.parameters["epsilon"]) is float and type(selector.parameters["seed"]) is int
    assert Greedy.restore(selector.state()).parameters == selector.parameters


@pytest.mark.parametrize("value", [object(), b"bytes", float("inf"), [1, float("nan")], {"a": {1j}}])
def test_an_argument_that_cannot_be_saved_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match="Greedy cannot save its argument odd="):
        Greedy(clients=4, budget=2, seed=7, odd=value)


def test_a_wrong_argument_is_told_as_python_tells_it() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required keyword-only argument: 'seed'"):
        Greedy(clients=4, budget=2)  # type: ignore[call-arg]


def test_a_constructor_that_takes_arguments_without_names_is_refused_at_definition() -> None:
    with pytest.raises(SelectorError, match=r"Nameless.__init__ takes arguments without a name"):

        class Nameless(RandomCohort):  # type: ignore[misc]
            def __init__(self, *sizes: int) -> None: ...


@pytest.mark.parametrize(
    ("name", "hook"),
    [("ask", "_choose"), ("tell", "_learn"), ("abandon", "_abandon"), ("state", "_memory"), ("restore", "_recall")],
)
def test_overriding_a_method_of_the_contract_is_refused_at_definition(name: str, hook: str) -> None:
    with pytest.raises(SelectorError, match=f"Hasty overrides `{name}`, which checks its input; override `{hook}`"):
        type("Hasty", (Greedy,), {name: lambda self, *told: None})
    type("Deliberate", (Greedy,), {name: lambda self, *told: None}, overrides=[name])


@pytest.mark.parametrize(
    ("signals", "says"),
    [
        ({"uses": frozenset({"reward"})}, "Odd has 'reward' in `needs` and in `uses`; a signal is needed or optional"),
        ({"uses": frozenset({"losses"})}, "Odd names the signal 'losses'; there are reward, opinions, beliefs, loss,"),
        ({"needs": frozenset({"opinion"})}, "Odd names the signal 'opinion'"),
    ],
)
def test_signals_named_twice_or_unknown_are_refused_at_definition(signals: dict[str, Any], says: str) -> None:
    with pytest.raises(SelectorError, match=says):
        type("Odd", (Greedy,), signals)


class CuriousGreedy(Greedy):
    uses = frozenset({"loss"})


def test_feedback_without_an_optional_signal_is_accepted() -> None:
    selector = CuriousGreedy(clients=4, budget=2, seed=7)
    selector.tell(selector.ask(), Feedback(reward=0.5))
    selector.tell(selector.ask(), Feedback(reward=0.5, loss=np.ones(4)))
    assert selector.arrays["pulls"].sum() == 4


def _fail(selector: AbstractSelector, feedback: Feedback) -> None:
    selector.arrays["mean"][:] = 9.0
    raise ZeroDivisionError("by design")


def _spoil(name: str, values: Any) -> Callable[[AbstractSelector, Feedback], None]:
    def spoil(selector: AbstractSelector, feedback: Feedback) -> None:
        selector.arrays[name] = values

    return spoil


@pytest.mark.parametrize(
    ("learn", "error", "says"),
    [
        (_fail, ZeroDivisionError, "by design"),
        (_spoil("mean", np.zeros(3)), SelectorError, r"'mean' float64 \(3,\); keep it float64 \(4,\)"),
        (_spoil("mean", np.zeros(4, dtype=np.int64)), SelectorError, r"'mean' int64 \(4,\); keep it float64"),
        (_spoil("mean", [0.0] * 4), SelectorError, r"'mean' list \(4,\); keep it float64"),
        (_spoil("more", np.zeros(4)), SelectorError, r"has arrays \['mean', 'more', 'pulls'\] where `initial_arrays`"),
    ],
)
def test_arrays_are_put_back_if_learning_raises_or_spoils_them(
    monkeypatch: pytest.MonkeyPatch, learn: Callable[[AbstractSelector, Feedback], None], error: type, says: str
) -> None:
    selector = Greedy(clients=4, budget=2, seed=7)
    selector.tell(selector.ask(), Feedback(reward=0.8))
    selection, before = selector.ask(), selector.state()
    with monkeypatch.context() as patched:
        patched.setattr(Greedy, "_learn", lambda self, selection, feedback: learn(self, feedback))
        with pytest.raises(error, match=says):
            selector.tell(selection, Feedback(reward=0.5))
    assert selector.state() == before
    selector.tell(selection, Feedback(reward=0.5))


def test_an_array_taken_from_the_feedback_can_be_changed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def learn(self: Greedy, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None
        self.arrays["mean"] = feedback.opinions

    monkeypatch.setattr(Greedy, "_learn", learn)
    selector = Greedy(clients=4, budget=2, seed=7)
    told = Feedback(opinions=[0.1, 0.2, 0.3, 0.4])
    selector.tell(selector.ask(), told)
    selector.arrays["mean"][0] = 0.9
    assert told.opinions is not None and told.opinions[0] == 0.1


def test_a_slot_whose_election_failed_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Greedy, slot: int, available: Available) -> Choice:
        raise NoElection("the clients did not agree")

    selector = Greedy(clients=4, budget=2, seed=7)
    with monkeypatch.context() as patched:
        patched.setattr(Greedy, "_choose", fail)
        with pytest.raises(NoElection):
            selector.ask()
    assert selector.ask().slot == 2


class Asking(AbstractSelector):
    """Proposes what it is given, and elects the candidates with the highest reported loss."""

    needs: ClassVar[frozenset[str]] = frozenset({"loss", "reward"})
    asks: ClassVar[frozenset[str]] = frozenset({"loss"})
    proposal: Any = (0, 2, 3)

    def _propose(self, slot: int, available: Available) -> Any:
        return self.proposal

    def _choose(self, slot: int, available: Available) -> Choice:
        return (0, 1), ()

    def _choose_reported(self, slot: int, available: Available, reports: Feedback) -> Choice:
        assert reports.loss is not None
        return self._pick_best(np.nan_to_num(reports.loss, nan=-1.0), slot, self._candidates(available)), ()


def test_candidates_report_before_an_ask_and_what_they_said_need_not_be_told_again() -> None:
    selector = Asking(clients=4, budget=2, seed=1)
    assert selector.candidates() == (0, 2, 3)
    selection = selector.ask(reports=Feedback(loss=[0.5, np.nan, 2.0, 3.0]))
    assert selection.cohort == (2, 3) and selector.candidates() is None
    state = selector.state()
    assert state["open"]["reported"] == ["loss"]
    twin = Asking.restore(json.loads(json.dumps(state)))
    with pytest.raises(MissingSignalError, match="needs 'reward'"):
        twin.tell(selection, Feedback())
    twin.tell(selection, Feedback(reward=0.5))
    assert twin.ask().cohort == (0, 1)  # nobody was asked: it chooses without reports
    with pytest.raises(MissingSignalError, match="needs 'loss'"):
        twin.tell(twin.ask(), Feedback(reward=0.5))


def test_a_selector_that_asks_nobody_has_no_candidates_and_ignores_reports() -> None:
    selector, other = (RandomCohort(clients=5, budget=2, seed=1) for _ in range(2))
    assert selector.candidates() is None
    assert selector.ask(reports=Feedback(loss=[1.0] * 5)) == other.ask()
    assert selector.state() == other.state()


@pytest.mark.parametrize("proposal", [(), [0, 1], (1, 0), (0, 0), (0, 4), (-1, 0), (0, 3)])
def test_candidates_must_be_distinct_available_clients(proposal: object) -> None:
    selector = Asking(clients=4, budget=2, seed=1)
    selector.proposal = proposal
    with pytest.raises(SelectorError, match="candidates are a sorted tuple of distinct clients"):
        selector.candidates([0, 1, 2])


def test_reports_of_another_number_of_clients_are_refused_and_use_no_slot() -> None:
    selector = Asking(clients=4, budget=2, seed=1)
    with pytest.raises(FeedbackError, match="loss has 3 values but there are 4 clients"):
        selector.ask(reports=Feedback(loss=[1.0, 2.0, 3.0]))
    with pytest.raises(FeedbackError, match="takes reports as a Feedback, got dict"):
        selector.ask(reports={"loss": [1.0]})  # type: ignore[arg-type]
    assert selector.ask().slot == 1


def test_updates_of_another_number_of_clients_are_refused() -> None:
    selector = RandomCohort(clients=4, budget=2, seed=1)
    with pytest.raises(FeedbackError, match="updates has 3 values but there are 4 clients"):
        selector.tell(selector.ask(), Feedback(updates=np.zeros((3, 64))))


def test_a_selector_that_asks_candidates_does_not_resize() -> None:
    with pytest.raises(SelectorError, match="Both `resizes` and `asks`"):
        type("Both", (Asking,), {"resizes": True})


@pytest.mark.parametrize(("size", "says"), [(0, "got 0; allowed: 1 to 4"), (5, "got 5"), (1.5, "size must be")])
def test_a_size_that_cannot_be_is_refused_and_uses_no_slot(size: Any, says: str) -> None:
    selector = RandomCohort(clients=4, budget=2, seed=1)
    with pytest.raises(ConfigurationError, match=says):
        selector.ask(size=size)
    assert selector.ask(size=3).slot == 1 and len(selector.ask().cohort) == 3


def test_candidates_report_extra_signals_only() -> None:
    with pytest.raises(SelectorError, match="asks candidates for 'reward'; they report extra signals only"):
        type("Curious", (Asking,), {"asks": frozenset({"reward"})})
    with pytest.raises(SelectorError, match="names the signal 'mood'"):
        type("Curious", (Asking,), {"asks": frozenset({"mood"})})
