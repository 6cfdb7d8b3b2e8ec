"""The selectors that do not listen."""

import numpy as np
import pytest

from fedelect import Feedback
from fedelect.errors import BudgetError, ConfigurationError
from fedelect.selectors import AbstractSelector, FixedCohort, RandomAmong, RandomCohort, RoundRobin


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


def test_random_among_some_elects_each_of_them_equally_often_and_no_other() -> None:
    counts = np.zeros(10)
    for cohort in cohorts(RandomAmong(clients=10, budget=2, seed=1, among=[1, 3, 4, 8]), 3000):
        counts[list(cohort)] += 1
    assert set(np.flatnonzero(counts)) == {1, 3, 4, 8}
    assert ((counts[[1, 3, 4, 8]] - 1500) ** 2 / 1500).sum() < 16.3  # 3 degrees of freedom, p = 0.001


@pytest.mark.parametrize("available", [None, [0, 2, 3, 5, 6, 8]])
def test_random_among_all_is_random_cohort_by_cohort(available: list[int] | None) -> None:
    among_all = RandomAmong(clients=9, budget=4, seed=5, among=range(9))
    assert cohorts(among_all, 50, available) == cohorts(RandomCohort(clients=9, budget=4, seed=5), 50, available)


def test_where_too_few_of_them_are_there_all_are_elected_and_others_fill_up_evenly() -> None:
    counts = np.zeros(8)
    for cohort in cohorts(RandomAmong(clients=8, budget=4, seed=2, among=[0, 1, 2, 3]), 2000, [0, 1, 4, 5, 6, 7]):
        counts[list(cohort)] += 1
    assert counts[[0, 1]].tolist() == [2000, 2000] and counts[[2, 3]].tolist() == [0, 0]
    assert ((counts[4:] - 1000) ** 2 / 1000).sum() < 16.3  # 3 degrees of freedom, p = 0.001


def test_random_among_clients_that_do_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"clients from 0 to 5, got \[0, 6\]"):
        RandomAmong(clients=6, budget=2, seed=1, among=[6, 0])
