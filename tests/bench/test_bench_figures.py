"""The figures of the ranking: gaps, fairness, slots to the optimum."""

import numpy as np
import pytest

from fedelect.bench import Elections, figures_of
from fedelect.bench.figures import has_come_close, slots_to_close
from fedelect.vocabulary import Ints


def elections(cohorts: Ints) -> Elections:
    trials, slots, _ = cohorts.shape
    return Elections("fa", cohorts, np.zeros((trials, slots)), np.full(trials, 0.5))


def test_figures_are_those_worked_out_literally() -> None:
    rng = np.random.default_rng(3)
    cohorts = np.sort(rng.permuted(np.tile(np.arange(7), (4, 30, 1)), axis=2)[..., :3], axis=2)
    values = rng.uniform(0.3, 0.9, (4, 30))
    found = figures_of(elections(cohorts), values, 0.9, 7)
    for trial in range(4):
        counts = [sum(client in cohort for cohort in cohorts[trial].tolist()) for client in range(7)]
        assert found.jain_index[trial] == pytest.approx(sum(counts) ** 2 / (7 * sum(x * x for x in counts)))
        assert found.running_gap[trial] == pytest.approx(100 * (0.9 - sum(values[trial]) / 30) / 0.9)
        assert found.final_gap[trial] == pytest.approx(100 * (0.9 - sum(values[trial][-3:]) / 3) / 0.9)
        assert found.regret[trial] == pytest.approx(sum(0.9 - value for value in values[trial]))
    assert found.ask_ms.tolist() == [0.5] * 4


def test_slots_to_close_is_the_first_of_ten_slots_that_are_near_on_average() -> None:
    far = np.full(30, 0.5)
    settled = np.where(np.arange(30) >= 12, 1.0, 0.5)  # near from slot 13 on
    once = np.where(np.arange(30) == 4, 1.0, 0.5)
    shaky = np.where(np.arange(30) == 20, 0.9, settled)  # ten slots with one at 0.9 are at 0.99
    late = np.where(np.arange(30) >= 21, 1.0, 0.5)  # only nine such slots are left
    found = slots_to_close(np.stack([far, settled, once, shaky, late]), 1.0)
    assert found.tolist() == [30, 13, 30, 13, 30]
    assert slots_to_close(np.array([[0.99, 0.98, 0.99]]), 1.0).tolist() == [1]


def test_close_is_two_percent_of_the_optimum_and_not_two_hundredths() -> None:
    values = np.array([[0.491] * 12, [0.489] * 12])
    assert slots_to_close(values, 0.5).tolist() == [1, 12]
    assert has_come_close(values, 0.5).tolist() == [True, False]


def test_who_gets_close_at_the_last_moment_is_told_from_who_never_does() -> None:
    values = np.array([[1.0], [0.5]])
    assert slots_to_close(values, 1.0).tolist() == [1, 1]
    assert has_come_close(values, 1.0).tolist() == [True, False]
