"""Cohorts by number."""

import itertools

import numpy as np
import pytest

from fedelect.atlas import cohort_ranks, cohorts_at
from fedelect.errors import BudgetError, ConfigurationError


@pytest.mark.parametrize(("clients", "budget"), [(n, k) for n in range(1, 9) for k in range(1, n + 1)] + [(20, 5)])
def test_numbers_follow_the_order_of_itertools(clients: int, budget: int) -> None:
    cohorts = np.array(list(itertools.combinations(range(clients), budget)))
    numbers = np.arange(len(cohorts))
    assert np.array_equal(cohort_ranks(cohorts, clients=clients), numbers)
    assert np.array_equal(cohorts_at(numbers, clients=clients, budget=budget), cohorts)


def test_arrays_of_any_shape_and_a_single_cohort_are_numbered() -> None:
    cohorts = cohorts_at(np.arange(12).reshape(3, 4), clients=30, budget=6)
    assert cohorts.shape == (3, 4, 6)
    assert np.array_equal(cohort_ranks(cohorts, clients=30), np.arange(12).reshape(3, 4))
    assert cohort_ranks((0, 1, 2), clients=3) == 0


def test_large_numbers_are_exact() -> None:
    last = (57, 58, 59, *range(60, 67))
    assert int(cohort_ranks(last, clients=67)) == 247994680648 - 1
    assert tuple(cohorts_at(247994680647, clients=67, budget=10)) == last


@pytest.mark.parametrize("bad", [[[1, 0]], [[0, 0]], [[-1, 2]], [[0, 5]], [[0.0, 1.0]], [], 3])
def test_what_is_not_a_cohort_is_refused(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="cohort"):
        cohort_ranks(np.asarray(bad), clients=5)


def test_numbers_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"0\.\.9"):
        cohorts_at([10], clients=5, budget=2)
    with pytest.raises(ConfigurationError, match="too many"):
        cohorts_at([0], clients=200, budget=50)
    with pytest.raises(BudgetError):
        cohorts_at([0], clients=2, budget=3)
