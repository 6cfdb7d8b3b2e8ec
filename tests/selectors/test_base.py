"""The parts of the contract that the conformance suite does not reach."""

import json
from typing import Any

import numpy as np
import pytest

from fedelect import Feedback
from fedelect.errors import (
    AvailabilityError,
    BudgetError,
    ConfigurationError,
    FeedbackError,
    MissingSignalError,
    SelectorError,
    StaleSelectionError,
    StateError,
)
from fedelect.selectors import AbstractSelector, BpUcb, QuickInitUcb, RandomCohort, SubsetUcb
from fedelect.selectors.base import Available, Choice


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
    with pytest.raises(StaleSelectionError, match="is not the open ask"):
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
        super().__init__(clients=4, budget=2, parameters={})
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
