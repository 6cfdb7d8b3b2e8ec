import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import metrics as literal

from fedelect.equations import metrics
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.vocabulary import Floats

opinions = st.floats(0.0, 1.0)
curves = st.lists(opinions | st.just(math.nan), min_size=1, max_size=30)
counts = st.lists(st.integers(0, 10**6), min_size=1, max_size=40)


def curves_with_gaps(name: str, *shape: int) -> Floats:
    rng = stream(5, "metrics", name)
    values = rng.random(shape)
    values[rng.random(shape) < 0.2] = np.nan
    return values


def test_the_running_mean_equals_the_literal_one_over_any_leading_axes() -> None:
    batch = curves_with_gaps("running", 3, 4, 25)
    batch[0, 0, :3] = np.nan
    result = metrics.running_mean(batch)
    for index in np.ndindex(3, 4):
        np.testing.assert_allclose(result[index], literal.running_mean(batch[index].tolist()), rtol=1e-12)


def test_the_untrained_model_counts_as_one_more_first_term() -> None:
    batch = curves_with_gaps("untrained", 6, 25)
    first = stream(5, "first").random(6)
    result = metrics.running_mean(batch, first)
    for trial in range(6):
        expected = literal.running_mean(batch[trial].tolist(), float(first[trial]))
        np.testing.assert_allclose(result[trial], expected, rtol=1e-12)


def test_the_papers_optimal_column_is_a_running_mean_that_starts_untrained() -> None:
    # Five slots near 0.89 after a first term near 0.1 pull the mean up to about 0.77 only.
    curve = np.full(6, 0.89)
    assert metrics.running_mean(curve)[-1] == pytest.approx(0.89)
    assert metrics.running_mean(curve, 0.1)[-1] == pytest.approx((0.1 + 6 * 0.89) / 7)


def test_an_unknown_untrained_model_leaves_the_running_mean_unknown() -> None:
    assert np.isnan(metrics.running_mean(np.array([0.5, 0.6]), np.nan)).all()


@given(curves)
def test_a_running_mean_stays_between_the_lowest_and_highest_opinion_so_far(curve: list[float]) -> None:
    result = metrics.running_mean(np.array(curve))
    for slot, mean in enumerate(result, 1):
        present = [value for value in curve[:slot] if not math.isnan(value)]
        assert math.isnan(mean) == (not present)
        if present:
            assert min(present) - 1e-12 <= mean <= max(present) + 1e-12


@given(curves, opinions)
def test_the_running_mean_equals_the_literal_one(curve: list[float], first: float) -> None:
    np.testing.assert_allclose(metrics.running_mean(np.array(curve)), literal.running_mean(curve), atol=1e-12)
    expected = literal.running_mean(curve, first)
    np.testing.assert_allclose(metrics.running_mean(np.array(curve), first), expected, atol=1e-12)


def test_regret_adds_up_what_the_oracle_would_have_earned_more() -> None:
    batch = curves_with_gaps("regret", 4, 30)
    result = metrics.regret(batch, 0.9)
    for trial in range(4):
        np.testing.assert_allclose(result[trial], literal.regret(batch[trial].tolist(), 0.9), atol=1e-12)


def test_regret_takes_an_oracle_for_each_slot() -> None:
    curve = np.array([[0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(metrics.regret(curve, np.array([0.5, 1.0])), [[0.0, 0.5], [0.25, 0.5]])


def test_time_to_target_equals_the_literal_one() -> None:
    batch = curves_with_gaps("target", 5, 8, 12)
    batch[0, 0] = np.nan
    for target in (0.0, 0.7, 0.95, 2.0):
        slot, value, reached = metrics.time_to_target(batch, target)
        for index in np.ndindex(5, 8):
            expected = literal.time_to_target(batch[index].tolist(), target)
            assert (int(slot[index]), bool(reached[index])) == (expected[0], expected[2])
            np.testing.assert_equal(float(value[index]), expected[1])


def test_a_target_never_reached_counts_as_all_slots_and_the_last_value() -> None:
    slot, value, reached = metrics.time_to_target(np.array([0.1, 0.6, 0.4, np.nan]), 0.7)
    assert (int(slot), float(value), bool(reached)) == (4, 0.4, False)


def test_a_target_met_exactly_is_reached() -> None:
    assert metrics.time_to_target(np.array([0.1, 0.7]), 0.7).slot == 2


def test_a_mean_that_is_at_the_target_but_for_the_rounding_of_its_sum_is_there() -> None:
    mean = metrics.running_mean(np.full(9, 0.7))  # 0.7 throughout, on paper
    assert (mean < 0.7).any() and mean == pytest.approx(0.7)
    below = int(np.argmax(mean < 0.7))
    assert metrics.time_to_target(mean[below:], 0.7).slot == 1
    assert not metrics.time_to_target(np.array([0.7 - 1e-6]), 0.7).reached


def test_a_curve_of_no_slots_cannot_reach_a_target() -> None:
    with pytest.raises(ConfigurationError, match="no slots"):
        metrics.time_to_target(np.empty((3, 0)), 0.5)


def test_the_last_value_present_is_found_behind_missing_ones() -> None:
    batch = np.array([[0.1, 0.2, np.nan], [np.nan, np.nan, np.nan], [np.nan, 0.5, 0.6]])
    np.testing.assert_array_equal(metrics.last_present(batch), [0.2, np.nan, 0.6])
    np.testing.assert_array_equal(metrics.last_present(np.empty((2, 0))), [np.nan, np.nan])


def test_a_slot_without_a_value_has_that_of_the_last_one_before_it() -> None:
    batch = np.array([[np.nan, 0.2, np.nan, np.nan, 0.1], [0.5, np.nan, 0.25, np.nan, np.nan]])
    expected = [[np.nan, 0.2, 0.2, 0.2, 0.1], [0.5, 0.5, 0.25, 0.25, 0.25]]
    np.testing.assert_array_equal(metrics.carry_forward(batch), expected)
    assert metrics.carry_forward(np.empty((2, 0))).shape == (2, 0)


def test_the_final_mean_is_the_literal_one_wherever_a_trial_ends() -> None:
    batch = curves_with_gaps("final", 6, 30)
    batch[0], batch[1, :25] = np.nan, np.nan
    ends = np.array([30, 30, 30, 17, 4, 0])
    expected = [literal.final_mean(row, end) for row, end in zip(batch.tolist(), ends.tolist(), strict=True)]
    np.testing.assert_allclose(metrics.final_mean(batch, ends), expected, rtol=1e-12)
    assert math.isnan(expected[0]) and math.isnan(expected[5]) and not math.isnan(expected[1])
    last_three = [literal.final_mean(row, 30, 3) for row in batch.tolist()]
    np.testing.assert_allclose(metrics.final_mean(batch, slots=3), last_three, rtol=1e-12)


def test_slots_are_paid_for_until_the_budget_is_spent() -> None:
    costs = np.round(100 * curves_with_gaps("costs", 9, 20))
    budgets = np.array([0.0, 1.0, 55.0, 100.0, 123.0, 500.0, 1e6, np.nansum(costs[7]), np.nansum(costs[8]) - 1])
    expected = [literal.slots_within(row, budget) for row, budget in zip(costs.tolist(), budgets.tolist(), strict=True)]
    assert metrics.slots_within(costs, budgets).tolist() == expected
    assert expected[7] == 20 and expected[8] < 20


def test_the_gap_is_the_mean_over_slots_that_both_have() -> None:
    a, b = curves_with_gaps("gap a", 7, 20), curves_with_gaps("gap b", 7, 20)
    a[0, ::2], b[0, 1::2] = np.nan, np.nan
    expected = [literal.gap(x.tolist(), y.tolist()) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(metrics.gap_to(a, b), expected, rtol=1e-12)
    assert math.isnan(expected[0])


@given(counts)
def test_jains_index_equals_the_literal_one(count: list[int]) -> None:
    result = float(metrics.jain_index(np.array(count)))
    np.testing.assert_allclose(result, literal.jain_index([float(value) for value in count]), rtol=1e-12)


@given(st.lists(st.floats(0.0, 1e300), min_size=1, max_size=40), st.integers(-30, 30))
def test_jains_index_lies_between_one_nth_and_one_and_ignores_scale(count: list[float], power: int) -> None:
    result = float(metrics.jain_index(np.array(count)))
    if max(count) == 0.0:
        assert math.isnan(result)
    else:
        assert 1.0 / len(count) - 1e-12 <= result <= 1.0 + 1e-12
    if max(count) > 1e-200 and max(count) < 1e280:
        assert float(metrics.jain_index(np.array(count) * 2.0**power)) == pytest.approx(result, rel=1e-9)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 1000))
def test_jains_index_of_equal_sharers_is_their_share_of_the_clients(sharing: int, others: int, times: int) -> None:
    count = np.array([times] * sharing + [0] * others)
    assert float(metrics.jain_index(count)) == pytest.approx(sharing / (sharing + others))


def test_jains_index_of_no_clients_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one client"):
        metrics.jain_index(np.empty((2, 0)))


def test_group_shares_failures_and_never_chosen_equal_the_literal_ones() -> None:
    rng = stream(5, "counts")
    count = rng.integers(0, 3, size=(6, 9))
    count[0] = 0
    shares = metrics.group_share(count, (0, 4, 8))
    expected = [literal.group_share(row.tolist(), [0, 4, 8]) for row in count]
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    assert metrics.never_chosen(count).tolist() == [row.tolist().count(0) for row in count]
    arrived = rng.integers(0, count + 1)
    result = metrics.failure_share(arrived, count)
    for index in np.ndindex(6, 9):
        tried = int(count[index])
        np.testing.assert_equal(result[index], (tried - int(arrived[index])) / tried if tried else math.nan)
