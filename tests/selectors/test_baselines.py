"""The selectors that do not listen."""

import numpy as np
import pytest

from fedelect import Feedback
from fedelect.errors import BudgetError, ConfigurationError
from fedelect.selectors import AbstractSelector, FixedCohort, RandomCohort, RoundRobin


def cohorts(selector: AbstractSelector, slots: int, available: list[int] | None = None) -> list[tuple[int, ...]]:
    elected = []
    for _ in range(slots):
        selection = selector.ask(available)
        elected.append(selection.cohort)
        selector.tell(selection, Feedback())
    return elected


def test_random_elects_every_client_equally_often() -> None:
    counts = np.zeros(10)
    for cohort in cohorts(RandomCohort(clients=10, budget=3, seed=1), 5000):
        counts[list(cohort)] += 1
    assert ((counts - 1500) ** 2 / 1500).sum() < 27.9  # 9 degrees of freedom, p = 0.001


def test_random_among_predefined_sets_elects_each_equally_often() -> None:
    sets = [(0, 1), (2, 3), (4, 5)]
    elected = cohorts(RandomCohort(clients=6, budget=2, seed=1, cohorts=sets), 3000)
    counts = [elected.count(cohort) for cohort in sets]
    assert sum(counts) == 3000
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 13.8  # 2 degrees of freedom, p = 0.001


def test_round_robin_has_five_sets_of_which_the_paper_names_the_first() -> None:
    elected = cohorts(RoundRobin(clients=20, budget=5, seed=4), 10)
    assert elected[0] == (0, 1, 10, 15, 19)
    assert elected[:5] == elected[5:]
    assert len(set(elected)) == 5
    assert elected[1:5] != cohorts(RoundRobin(clients=20, budget=5, seed=5), 5)[1:]


def test_round_robin_over_given_sets_goes_in_order() -> None:
    sets = [[3, 2], [0, 1]]
    assert cohorts(RoundRobin(clients=4, budget=2, seed=0, cohorts=sets), 3) == [(2, 3), (0, 1), (2, 3)]


def test_round_robin_passes_over_a_set_that_is_not_all_there() -> None:
    sets = [[0, 1], [2, 3]]
    assert cohorts(RoundRobin(clients=4, budget=2, seed=0, cohorts=sets), 2, [1, 2, 3]) == [(2, 3), (2, 3)]


def test_an_absent_member_of_a_fixed_cohort_is_replaced() -> None:
    (elected,) = cohorts(FixedCohort(clients=6, cohort=[0, 1, 2]), 1, [0, 2, 3, 4])
    assert {0, 2} < set(elected) and set(elected) & {3, 4}


@pytest.mark.parametrize("bad", [[[0, 1], [2]], []])
def test_predefined_sets_must_have_the_size_of_the_budget(bad: list[list[int]]) -> None:
    with pytest.raises(ConfigurationError, match="sets of 2 clients each"):
        RoundRobin(clients=4, budget=2, seed=0, cohorts=bad)


def test_a_fixed_cohort_of_nobody_is_refused() -> None:
    with pytest.raises(BudgetError):
        FixedCohort(clients=4, cohort=[])


def test_stand_ins_are_drawn_evenly_over_the_slots() -> None:
    counts = np.zeros(6)
    for cohort in cohorts(FixedCohort(clients=6, cohort=[0, 1]), 2000, [0, 2, 3, 4, 5]):
        counts[list(cohort)] += 1
    assert counts[0] == 2000 and counts[1] == 0
    assert ((counts[2:] - 500) ** 2 / 500).sum() < 16.3  # 3 degrees of freedom, p = 0.001
