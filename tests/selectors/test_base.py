"""The parts of the contract that the conformance suite does not reach."""

import numpy as np
import pytest

from fedelect import Feedback
from fedelect.errors import (
    AvailabilityError,
    BudgetError,
    ConfigurationError,
    FeedbackError,
    MissingSignalError,
    StaleAskError,
    StateError,
)
from fedelect.selectors import BpUcb, QuickInitUcb, RandomCohort, SubsetUcb


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
    ask = selector.ask()
    before = selector.state()
    with pytest.raises(FeedbackError, match="3 values but there are 4 clients"):
        selector.tell(ask, Feedback(opinions=[0.1, 0.2, 0.3]))
    with pytest.raises(FeedbackError):
        selector.tell(ask, Feedback(opinions=[0.1, 0.2, 0.3, 1.3]))
    with pytest.raises(MissingSignalError, match="'reward'"):
        selector.tell(ask, Feedback(opinions=[np.nan] * 4))
    assert selector.state() == before
    selector.tell(ask, Feedback(opinions=[0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(StaleAskError, match="slot 1 is closed"):
        selector.tell(ask, Feedback(reward=0.5))
    selector.ask()
    with pytest.raises(StaleAskError, match="is not the open ask"):
        selector.tell(ask, Feedback(reward=0.5))


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
