"""Intervals over drawings and trials: against a literal reference, and by how often they hold the truth."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.equations.intervals import Interval, mean_interval
from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats
from paper.registered.intervals import interval_of_one_drawing, interval_over_drawings

T_975 = {1: 12.7062047, 2: 4.3026527, 3: 3.1824463, 4: 2.7764451, 5: 2.5705818}

VALUES = st.floats(-5.0, 5.0).map(lambda value: round(value, 3))


@given(st.lists(st.lists(VALUES, min_size=1, max_size=5), min_size=2, max_size=6))
def test_the_interval_is_that_of_the_drawings_means_written_out(drawings: list[list[float]]) -> None:
    found = interval_over_drawings(drawings)
    means = [sum(drawing) / len(drawing) for drawing in drawings]
    count = len(means)
    centre = sum(means) / count
    assert math.isclose(found.interval.mean, centre, abs_tol=1e-12)
    assert found.interval.half_width is not None
    expected = T_975[count - 1] * statistics.stdev(means) / math.sqrt(count)
    assert math.isclose(found.interval.half_width, expected, rel_tol=1e-6, abs_tol=1e-9)
    pooled = [(x - mean) ** 2 for drawing, mean in zip(drawings, means, strict=True) for x in drawing]
    degrees = sum(len(drawing) - 1 for drawing in drawings)
    if degrees:
        assert math.isclose(found.within, math.sqrt(sum(pooled) / degrees), abs_tol=1e-9)
        noise = sum(pooled) / degrees * sum(1 / len(drawing) for drawing in drawings) / count
        between = math.sqrt(max(statistics.variance(means) - noise, 0.0))
        assert math.isclose(found.between, between, abs_tol=1e-6)


@pytest.mark.parametrize("trials", [(6, 6, 6, 6, 6, 6), (2, 6, 3, 6, 6, 4)])
def test_the_interval_holds_the_truth_as_often_as_it_says_and_one_over_trials_alone_does_not(
    trials: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(7)
    repeats, held, held_over_trials, between = 4000, 0, 0, []
    for _ in range(repeats):
        drawings = [0.86 + rng.normal(0.0, 0.02) + rng.normal(0.0, 0.013, size=count) for count in trials]
        found = interval_over_drawings(drawings)
        assert found.interval.half_width is not None
        held += abs(found.interval.mean - 0.86) <= found.interval.half_width
        between.append(found.between**2)
        pooled = mean_interval(np.concatenate(drawings))
        assert pooled.half_width is not None
        held_over_trials += abs(pooled.mean - 0.86) <= pooled.half_width
    assert 0.935 <= held / repeats <= 0.965
    assert held_over_trials / repeats < 0.75
    assert math.isclose(math.sqrt(float(np.mean(between))), 0.02, rel_tol=0.05)


def test_one_drawing_has_a_mean_and_no_interval_and_missing_trials_are_left_out() -> None:
    found = interval_over_drawings([[1.0, math.nan, 3.0]])
    assert (found.interval.mean, found.interval.half_width, found.interval.count) == (2.0, None, 1)
    with pytest.raises(ConfigurationError, match="no value"):
        interval_over_drawings([[1.0], [math.nan]])
    with pytest.raises(ConfigurationError, match="at least one drawing"):
        interval_over_drawings([])


@given(st.lists(VALUES, min_size=2, max_size=100), st.lists(st.lists(VALUES, min_size=1), min_size=2, max_size=6))
def test_the_interval_of_one_drawing_is_written_out(trials: list[float], others: list[list[float]]) -> None:
    over_trials = mean_interval(trials)
    found = interval_of_one_drawing(over_trials, interval_over_drawings(others))
    means = [sum(other) / len(other) for other in others]
    assert over_trials.half_width is not None and found.half_width is not None
    squares = over_trials.half_width**2 + (T_975[len(means) - 1] * statistics.stdev(means)) ** 2
    assert math.isclose(found.half_width, math.sqrt(squares), rel_tol=1e-6, abs_tol=1e-9)
    assert found.mean == over_trials.mean and found.count == len(others)


def test_the_interval_of_one_drawing_holds_the_mean_over_drawings_at_least_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    repeats, held, held_over_trials = 2000, 0, 0

    def draw(trials: int) -> Floats:
        return np.asarray(0.86 + rng.normal(0.0, 0.02) + rng.normal(0.0, 0.013, size=trials))

    for _ in range(repeats):
        own = mean_interval(draw(100))
        found = interval_of_one_drawing(own, interval_over_drawings([draw(3) for _ in range(6)]))
        assert own.half_width is not None and found.half_width is not None
        held += abs(found.mean - 0.86) <= found.half_width
        held_over_trials += abs(own.mean - 0.86) <= own.half_width
    assert 0.95 <= held / repeats <= 0.985
    assert held_over_trials / repeats < 0.2


def test_one_drawing_has_no_interval_over_drawings_by_one_other_or_by_one_trial() -> None:
    alone, two = interval_over_drawings([[1.0, 2.0]]), interval_over_drawings([[1.0], [2.0]])
    assert interval_of_one_drawing(Interval(0.5, 0.1, 9), alone) == Interval(0.5, None, 1)
    assert interval_of_one_drawing(Interval(0.5, None, 1), two) == Interval(0.5, None, 2)
