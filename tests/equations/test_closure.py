"""Closure: the share of the oracle's gap that a selector closes, and how sure that is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import metrics as literal

from fedelect.equations.closure import (
    RESAMPLES,
    PairedFinals,
    closure,
    closure_samples,
    is_clear,
    mean_closure,
    oracle_gap,
    resample_trials,
)
from fedelect.equations.intervals import Interval
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream


def finals(name: str, trials: int = 8, *, share: float = 0.6, gap: float = 0.1) -> PairedFinals:
    """A selector that closes about `share` of the gap, with luck common to all and luck of its own."""
    rng = stream(3, name)
    random = 0.7 + rng.normal(0, 0.05, trials)
    oracle = random + gap + rng.normal(0, 0.01, trials)
    selector = random + share * gap + rng.normal(0, 0.02, trials)
    return PairedFinals(selector, random, oracle, resample_trials(trials, stream(3, "resamples", name)))


def test_a_closure_is_the_literal_ratio_and_the_percentiles_of_the_resampled_ones() -> None:
    one = finals("one")
    ratios = [
        literal.closure(
            *([float(values[trial]) for trial in draw] for values in (one.selector, one.random, one.oracle))
        )
        for draw in one.resamples.tolist()
    ]
    found = closure(one)
    assert found.value == pytest.approx(
        literal.closure(one.selector.tolist(), one.random.tolist(), one.oracle.tolist())
    )
    assert len(ratios) == RESAMPLES
    assert found.low == pytest.approx(literal.percentile(ratios, 2.5))
    assert found.high == pytest.approx(literal.percentile(ratios, 97.5))
    assert found.low < found.value < found.high and found.trials == 8


def test_random_has_closure_0_and_the_oracle_1_without_a_doubt() -> None:
    one = finals("bounds")
    for values, expected in ((one.random, 0.0), (one.oracle, 1.0)):
        found = closure(PairedFinals(values, one.random, one.oracle, one.resamples))
        assert (found.value, found.low, found.high) == pytest.approx((expected,) * 3)


@given(st.floats(-2.0, 2.0), st.floats(0.01, 0.5), st.floats(-0.3, 0.3))
def test_luck_that_a_trial_brings_to_all_three_does_not_change_a_closure(share: float, gap: float, luck: float) -> None:
    trials = np.arange(5.0)
    random = 0.5 + luck * trials
    one = PairedFinals(random + share * gap, random, random + gap, resample_trials(5, stream(1, "shared")))
    found = closure(one)
    assert (found.value, found.low, found.high) == pytest.approx((share,) * 3, abs=1e-6)


def test_the_interval_holds_the_true_share_in_about_19_of_20_samples() -> None:
    found = [closure(finals(f"coverage {number}", trials=20)) for number in range(200)]
    assert 0.88 <= sum(one.low <= 0.6 <= one.high for one in found) / 200 <= 0.99


def test_a_mean_over_worlds_counts_each_world_alike_and_is_surer_than_one() -> None:
    worlds = [finals("a", 5, share=0.2), finals("b", 20, share=0.8), finals("c", 9, share=0.5)]
    found = mean_closure(worlds)
    assert found.value == pytest.approx(sum(closure(one).value for one in worlds) / 3)
    samples = np.mean([closure_samples(one) for one in worlds], axis=0)
    assert (found.low, found.high) == pytest.approx(
        (literal.percentile(samples.tolist(), 2.5), literal.percentile(samples.tolist(), 97.5))
    )
    assert found.high - found.low < closure(worlds[0]).high - closure(worlds[0]).low
    assert found.trials == 34
    with pytest.raises(ConfigurationError, match="at least one world"):
        mean_closure([])


@pytest.mark.parametrize(
    ("gap", "clear"),
    [
        (Interval(0.05, 0.03, 5), True),
        (Interval(0.01, 0.0, 5), False),  # the lower end is at one point, not above it
        (Interval(0.05, 0.05, 5), False),
        (Interval(0.9, None, 1), False),
        (Interval(math.nan, None, 0), False),
    ],
)
def test_a_gap_is_clear_if_the_lower_end_of_its_interval_is_above_one_point(gap: Interval, clear: bool) -> None:
    assert is_clear(gap) is clear


def test_the_oracles_gap_is_paired_by_trial() -> None:
    one = finals("gap")
    found = oracle_gap(one.random, one.oracle)
    assert found.mean == pytest.approx(float(np.mean(one.oracle - one.random))) and is_clear(found)


def test_a_resample_in_which_the_oracle_is_behind_has_no_closure() -> None:
    one = PairedFinals(np.array([0.6, 0.6]), np.array([0.5, 0.5]), np.array([0.9, 0.4]), np.array([[0, 0], [1, 1]]))
    samples = closure_samples(one)
    assert samples[0] == pytest.approx(0.25) and math.isnan(samples[1])


@pytest.mark.parametrize(
    ("selector", "random", "resamples", "message"),
    [
        ([0.5, 0.5], [0.5], [[0, 1]], "the same trials of all three"),
        ([0.5, 0.5], [0.5, 0.5], [[0]], "the same trials of all three"),
        ([], [], [[]], "at least one"),
        ([0.5, math.nan], [0.5, 0.5], [[0, 1]], "a number for each trial"),
    ],
)
def test_finals_that_do_not_fit_together_are_refused(
    selector: list[float], random: list[float], resamples: list[list[int]], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PairedFinals(np.array(selector), np.array(random), np.array(selector), np.array(resamples, dtype=np.int64))
