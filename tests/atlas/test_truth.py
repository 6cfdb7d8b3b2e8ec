"""What cohorts are worth: exact in the table, unbiased for the scenario."""

import numpy as np
import pytest
from tests.atlas.made_up import alike, made_up, trained

from fedelect.atlas import level_contenders, scenario_truth, seed_sets_apart, table_truth
from fedelect.atlas.truth import choose_and_value, contenders_of
from fedelect.equations.intervals import student_t_quantile
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream


def test_the_truth_of_the_table_is_the_mean_over_its_seeds_and_clients() -> None:
    atlas = trained()
    truth = table_truth(atlas)
    for rank in range(15):
        every = [atlas.opinions(rank, seed) for seed in range(2)]
        assert truth.values[rank] == pytest.approx(np.mean(every), abs=1e-11)
    best, worst = truth.values.max(), truth.values.min()
    assert truth.values[truth.best] == best == truth.optimum.mean
    assert truth.largest_gap == pytest.approx(best - worst)
    assert truth.smallest_gap == pytest.approx(best - np.sort(truth.values[truth.values < best])[-1])


def test_regret_is_what_each_elected_cohort_falls_short_of_the_optimum_added_up() -> None:
    means = np.linspace(0.3, 0.9, 15)[np.newaxis]
    truth = table_truth(made_up(alike(means), alike(np.full((4, 1), 0.5)), [3], opinion="m:f"))
    cohorts = np.array([[[4, 5], [3, 5], [0, 1]], [[0, 1], [4, 5], [4, 5]]])  # numbers 14, 13, 0; 0, 14, 14
    step = 0.6 / 14
    assert truth.of(cohorts) == pytest.approx(np.array([[0.9, 0.9 - step, 0.3], [0.3, 0.9, 0.9]]), abs=1e-6)
    assert truth.regret(cohorts) == pytest.approx(np.array([[0, step, step + 0.6], [0.6, 0.6, 0.6]]), abs=1e-6)


def test_regret_by_the_scenarios_truth_may_be_negative() -> None:
    """Seeds that had no part in choosing number 13 value number 14 higher; in the table nothing beats the best."""
    fresh = np.array([[0.5, 0.2], [0.5, 0.2], [0.6, 0.9], [0.6, 0.9]])
    atlas = made_up(alike(np.linspace(0.1, 0.8, 15)[np.newaxis]), alike(fresh), [13, 14], opinion="m:f")
    scenario, table = scenario_truth(atlas), table_truth(atlas)
    assert scenario.regret([[4, 5], [4, 5]]) == pytest.approx([-0.3, -0.6], abs=1e-6)
    assert (table.optimum.mean - table.values >= 0).all()
    assert table.exact and not scenario.exact


def test_cohorts_that_are_level_are_equal_and_leave_no_gap() -> None:
    """0.1 + 0.2 and 0.3 differ in the last bit when they are averaged; they are level all the same."""
    table = np.zeros((2, 6, 15), dtype=np.float32)
    table[:, :, 0] = np.array([[0.1], [0.2]], dtype=np.float32)
    table[:, :, 1] = np.array([[0.2], [0.1]], dtype=np.float32)
    truth = table_truth(made_up(table, alike(np.full((4, 1), 0.5)), [0], opinion="m:f"))
    assert truth.best == 0 and truth.smallest_gap == truth.largest_gap == pytest.approx(0.15)
    flat = table_truth(made_up(alike(np.full((1, 15), 0.4)), alike(np.full((4, 1), 0.5)), [0], opinion="m:f"))
    assert np.isnan(flat.smallest_gap) and np.isnan(flat.largest_gap)


def test_one_half_of_the_fresh_seeds_chooses_and_the_other_values() -> None:
    means = np.array([[0.5, 0.6, 0.1], [0.5, 0.6, 0.1], [0.7, 0.3, 0.9], [0.7, 0.4, 0.9], [0.7, 0.5, 0.9]])
    choice = choose_and_value(means)
    assert choice.best == 1  # by the first two seeds; by the others it is the worst
    assert choice.values == pytest.approx([0.7, 0.4, 0.9])
    assert choice.optimum.mean == pytest.approx(0.4) and choice.optimum.count == 3
    assert choice.optimum.half_width == pytest.approx(student_t_quantile(0.975, 2) * 0.1 / np.sqrt(3))
    assert choose_and_value(np.full((4, 3), 0.5)).best == 0
    with pytest.raises(ConfigurationError, match="at least 4"):
        choose_and_value(means[:3])


def test_contenders_are_valued_by_fresh_seeds_and_all_others_by_the_table() -> None:
    means = np.linspace(0.1, 0.8, 15)[np.newaxis]
    fresh = np.array([[0.5, 0.2], [0.5, 0.2], [0.6, 0.9], [0.6, 0.9]])
    truth = scenario_truth(made_up(alike(means), alike(fresh), [13, 14], opinion="m:f"))
    assert truth.best == 13 and truth.optimum.mean == pytest.approx(0.6)
    assert truth.values[:13] == pytest.approx(means[0, :13], abs=1e-6)
    assert truth.values[13:] == pytest.approx([0.6, 0.9], abs=1e-6)


def test_contenders_are_the_best_means_of_the_table() -> None:
    table = np.array([[0.1, 0.9, np.nan, 0.5, 0.5], [0.1, 0.1, np.nan, 0.6, 0.5]])
    assert contenders_of(table, 2).tolist() == [1, 3]  # 0.5 and 0.55; number 4 is level with 1 and comes after
    assert contenders_of(table, 99).tolist() == [0, 1, 2, 3, 4]


def test_the_largest_mean_flatters_and_the_fresh_half_does_not() -> None:
    """300 cohorts, true means known, seeds with noise; 400 atlases.

    The largest of the noisy means lies well above the truth of its cohort. The value by the second half of the fresh
    seeds is right on average, for the cohort chosen by the first half, and its 95 % interval holds the truth about as
    often as it says; a value by the half that chose, or by all fresh seeds, would flatter too.
    """
    worlds, cohorts, seeds, fresh, noise = 400, 300, 3, 20, 0.02
    naive, same_half, ours, inside = [], [], [], 0
    for world in range(worlds):
        rng = stream(3, "worlds", world)
        truth = rng.normal(0.7, 0.01, cohorts)
        table = truth + rng.normal(0, noise, (seeds, cohorts))
        contenders = contenders_of(table, 30)
        again = truth[contenders] + rng.normal(0, noise, (fresh, 30))
        choice = choose_and_value(again)
        true_value = truth[contenders[choice.best]]
        assert choice.optimum.half_width is not None
        naive.append(table.mean(axis=0).max() - truth[table.mean(axis=0).argmax()])
        same_half.append(again[:10, choice.best].mean() - true_value)
        ours.append(choice.optimum.mean - true_value)
        inside += abs(ours[-1]) <= choice.optimum.half_width
    standard_error = noise / np.sqrt(10 * worlds)
    assert np.mean(naive) > 0.015
    assert np.mean(same_half) > 10 * standard_error
    assert abs(np.mean(ours)) < 3 * standard_error
    assert 0.92 < inside / worlds < 0.98


def test_contenders_are_level_with_the_optimum_unless_the_valuing_seeds_tell_them_apart() -> None:
    """Number 10 is chosen by the first two seeds. The seeds shift all cohorts alike, which tells nobody apart."""
    choosing = [[0.9, 0.8, 0.5, 0.1], [0.9, 0.8, 0.5, 0.1]]
    valuing = [[0.70, 0.60, 0.71, 0.9], [0.50, 0.401, 0.49, 0.7], [0.60, 0.499, 0.60, 0.8]]
    means = np.full((1, 15), 0.4)
    means[0, [10, 11, 12, 13]] = 0.8
    atlas = made_up(alike(means), alike(np.array(choosing + valuing)), [10, 11, 12, 13], opinion="m:f")
    assert scenario_truth(atlas).best == 10
    assert level_contenders(atlas).tolist() == [12, 13]  # as good on average, and better
    assert seed_sets_apart(atlas) == pytest.approx(0.8 - np.mean(valuing), abs=1e-6)
    noisy = np.array([*choosing, [0.7, 0.60, 0.7, 0.7], [0.5, 0.49, 0.5, 0.5]])
    atlas = made_up(alike(means), alike(noisy), [10, 11, 12, 13], opinion="m:f")
    assert level_contenders(atlas).tolist() == [11, 12, 13]  # 0.1 and 0.01 behind, in two seeds: that may be chance
