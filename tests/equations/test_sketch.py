"""The projection of model changes keeps lengths and angles, and is the same everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.equations.sketch import MOST_COORDINATES, UpdateSketch
from fedelect.seeds import stream
from fedelect.vocabulary import UPDATE_SIZE

LENGTH = 5000


def literal_projection(change: np.ndarray, length: int, seed: int) -> list[float]:
    """The definition, one coordinate after the other."""
    rng = stream(seed, "update sketch", length)
    places = rng.integers(UPDATE_SIZE, size=length)
    signs = rng.choice(np.array([-1.0, 1.0]), size=length)
    sums = [0.0] * UPDATE_SIZE
    for place, sign, value in zip(places.tolist(), signs.tolist(), change.reshape(-1).tolist(), strict=True):
        sums[place] += sign * value
    return sums


@given(st.integers(1, 300), st.integers(0, 5), st.integers(0, 99))
def test_a_projection_is_its_definition(length: int, seed: int, chance: int) -> None:
    change = stream(chance, "change").normal(size=length)
    assert UpdateSketch(length, seed).project(change) == pytest.approx(literal_projection(change, length, seed))


def test_a_projection_is_linear_and_knows_no_shape() -> None:
    sketch, rng = UpdateSketch(12, 1), stream(1, "change")
    one, other = rng.normal(size=(2, 12))
    assert sketch.project(2 * one - other) == pytest.approx(2 * sketch.project(one) - sketch.project(other))
    assert (sketch.project(one.reshape(3, 4)) == sketch.project(one)).all()


def test_inner_products_are_kept_in_expectation_with_the_stated_deviation() -> None:
    rng = stream(2, "change")
    one = rng.normal(size=LENGTH)
    other = 0.6 * one + 0.8 * rng.normal(size=LENGTH)
    errors = []
    for seed in range(200):
        sketch = UpdateSketch(LENGTH, seed)
        errors.append(sketch.project(one) @ sketch.project(other) - one @ other)
    scale = np.linalg.norm(one) * np.linalg.norm(other) / np.sqrt(UPDATE_SIZE)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(200)
    assert 0.7 * scale < np.std(errors) < 1.6 * scale


def test_of_a_long_vector_a_part_is_drawn_and_lengths_are_kept_in_expectation() -> None:
    length = 2 * MOST_COORDINATES
    change = stream(4, "change").normal(size=length).astype(np.float32)
    squares = [float(np.sum(UpdateSketch(length, seed).project(change) ** 2)) for seed in range(20)]
    truth = float(change.astype(np.float64) @ change)
    assert abs(np.mean(squares) / truth - 1.0) < 4 * np.sqrt(2 / UPDATE_SIZE / 20)


def test_opposite_changes_have_opposite_projections_and_no_change_has_none() -> None:
    sketch, change = UpdateSketch(100, 3), stream(3, "change").normal(size=100)
    assert (sketch.project(-change) == -sketch.project(change)).all()
    assert (sketch.project(np.zeros(100)) == 0.0).all()
