"""The variant that breaks ties by number agrees with Quick-Init UCB wherever there is no tie."""

import pytest

from fedelect.seeds import stream
from fedelect.selectors import QuickInitUcb
from fedelect.testing import check_selector
from fedelect.vocabulary import Feedback
from paper.measurements.ties import QuickInitByNumber


@pytest.mark.parametrize("exploration", [0.01, 1.0])
def test_where_no_two_arms_are_level_it_elects_whom_the_exact_selector_elects(exploration: float) -> None:
    # With K = 1 every client has a reward of its own.
    by_number = QuickInitByNumber(clients=9, budget=1, exploration=exploration, seed=5)
    exact = QuickInitUcb(clients=9, budget=1, exploration=exploration, seed=5)
    rng = stream(5, "rewards")
    for _ in range(80):
        one, other = by_number.ask(), exact.ask()
        assert one.cohort == other.cohort and one.indices == pytest.approx(other.indices, abs=1e-12)
        reward = float(rng.random())
        by_number.tell(one, Feedback(reward=reward))
        exact.tell(other, Feedback(reward=reward))


def test_after_the_cold_start_its_index_is_that_of_the_exact_selector() -> None:
    by_number = QuickInitByNumber(clients=9, budget=4, exploration=0.5, seed=5)
    exact = QuickInitUcb(clients=9, budget=4, exploration=0.5, seed=5)
    for reward in (0.3, 0.9, 0.4):  # the last group is filled up with clients of the others
        for selector in (by_number, exact):
            selector.tell(selector.ask(), Feedback(reward=reward))
    assert by_number.ask().indices == pytest.approx(exact.ask().indices, abs=1e-12)


def test_ties_go_to_the_lowest_numbers() -> None:
    selector = QuickInitByNumber(clients=6, budget=2, exploration=1.0, seed=0)
    for _ in range(3):
        selector.tell(selector.ask(), Feedback(reward=0.5))
    assert selector.ask().cohort == (0, 1)


def test_it_keeps_the_contract_of_selectors_but_for_the_names_of_clients() -> None:
    check_selector(lambda clients, budget, seed: QuickInitByNumber(clients=clients, budget=budget, seed=seed))
