import math

import numpy as np
import pytest
from scipy import stats
from tests.reference import metrics as literal

from fedelect.equations.intervals import (
    Interval,
    mean_band,
    mean_interval,
    paired_difference,
    share_interval,
    student_t_quantile,
)
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 19, 99, 100, 999, 1000, 1001, 5000, 10**6])
def test_the_t_quantile_equals_an_independent_librarys(degrees: int) -> None:
    for probability in (0.001, 0.025, 0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999):
        expected = float(stats.t.ppf(probability, degrees))
        assert student_t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 5), (1.0, 5), (math.nan, 5), (0.9, 0)])
def test_an_impossible_quantile_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ConfigurationError, match=r"must be|is needed"):
        student_t_quantile(probability, degrees)


def test_an_interval_equals_the_literal_one_and_leaves_missing_trials_out() -> None:
    values = stream(1, "interval").random(12)
    for confidence in (0.5, 0.95, 0.99):
        mean, half = literal.interval(values.tolist(), float(stats.t.ppf((1 + confidence) / 2, 11)))
        result = mean_interval([*values, math.nan], confidence=confidence)
        assert result.mean == pytest.approx(mean)
        assert result.half_width == pytest.approx(half)
        assert result.low == pytest.approx(mean - half)
        assert result.high == pytest.approx(mean + half)
        assert result.count == 12


def test_one_trial_has_a_mean_but_no_interval() -> None:
    result = mean_interval([0.25])
    assert result == Interval(0.25, None, 1)
    assert result.low is None and result.high is None


def test_no_trial_has_neither() -> None:
    result = mean_interval([math.nan, math.nan])
    assert math.isnan(result.mean) and result.half_width is None and result.count == 0
    assert mean_interval([]).count == 0


def test_an_interval_of_a_table_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one value for each trial"):
        mean_interval(np.zeros((2, 2)))


def test_a_band_is_the_interval_of_each_column() -> None:
    values = stream(1, "band").random((6, 15))
    values[stream(1, "holes").random((6, 15)) < 0.4] = np.nan
    values[:, 0] = np.nan
    values[1:, 1] = np.nan
    band = mean_band(values)
    for column in range(15):
        one = mean_interval(values[:, column])
        np.testing.assert_equal(float(band.mean[column]), one.mean)
        half = float(band.half_width[column])
        assert (None if math.isnan(half) else half) == one.half_width
        assert int(band.count[column]) == one.count


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (10, 10), (50, 100)])
def test_the_interval_of_a_share_covers_wilsons(hits: int, count: int) -> None:
    wilson = stats.binomtest(hits, count).proportion_ci(method="wilson")
    found = share_interval(hits, count)
    assert found.mean == hits / count and found.half_width is not None
    reach = max(found.mean - wilson.low, wilson.high - found.mean)
    assert found.half_width == pytest.approx(reach, rel=1e-9)


@pytest.mark.parametrize(("hits", "count"), [(-1, 5), (6, 5), (0, 0)])
def test_a_share_of_more_hits_than_there_are_is_refused(hits: int, count: int) -> None:
    with pytest.raises(ConfigurationError, match="hits must be from 0 to a count of at least 1"):
        share_interval(hits, count)


def test_a_difference_in_the_same_trials_is_that_of_a_paired_t_test() -> None:
    rng = np.random.default_rng(8)
    luck = rng.normal(0, 5, 12)  # common to both, so a difference of means would drown in it
    ours, theirs = luck + rng.normal(1, 0.5, 12), luck + rng.normal(0, 0.5, 12)
    found = paired_difference(ours, theirs)
    expected = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.low is not None and found.low > 0
    assert stats.ttest_ind(ours, theirs).pvalue > 0.3
    with pytest.raises(ConfigurationError, match=r"pairs need equally many values, got shapes \(2,\) and \(3,\)"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
