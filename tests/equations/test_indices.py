"""Indices and election, beside literal references."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.equations.indices import bp_ucb_index, ln_slot, noise_adjusted, top_k, ucb_index
from fedelect.errors import AvailabilityError
from fedelect.rules import elect

NAN = float("nan")


@given(st.integers(1, 10**7))
def test_the_logarithm_is_right(slot: int) -> None:
    assert ln_slot(slot) == pytest.approx(math.log(slot), rel=3e-16)


@given(st.floats(0, 1), st.integers(1, 500), st.integers(1, 1000), st.floats(0, 3))
def test_the_ucb_index_is_the_printed_formula(mean: float, pulls: int, slot: int, mu: float) -> None:
    literal = mean + mu * (math.log(slot) / pulls) ** 0.5
    assert ucb_index(mean, pulls, slot=slot, exploration=mu) == pytest.approx(literal, rel=1e-14, abs=1e-15)


def test_the_index_falls_with_pulls_and_rises_with_the_slot() -> None:
    def index(pulls: int, slot: int) -> float:
        return ucb_index(0.5, pulls, slot=slot, exploration=1.0)

    assert index(1, 10) > index(2, 10) > index(3, 10)
    assert index(2, 11) > index(2, 10)


def test_a_missing_mean_counts_as_the_others_average_and_a_missing_belief_as_none() -> None:
    index = bp_ucb_index(
        np.array([0.2, 0.6, NAN]), np.array([1, 1, 1]), np.array([1.0, NAN, 3.0]), slot=1, exploration=1.0
    )
    assert index == pytest.approx([0.2 + 0.25 / 3, 0.6, 0.4 + 0.75 / 3])


def test_nobody_known_and_no_belief_is_no_division_by_zero() -> None:
    index = bp_ucb_index(np.full(2, NAN), np.ones(2, dtype=np.int64), np.zeros(2), slot=1, exploration=0.0)
    assert index.tolist() == [0.0, 0.0]


def test_noise_widens_as_documented() -> None:
    assert noise_adjusted(0.3, 0.0) == 0.3
    assert noise_adjusted(1.0, 0.75) == pytest.approx(2.0)


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=12), st.data())
def test_the_top_k_are_the_highest_and_ties_are_settled_by_hash(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    chosen = top_k(np.array(values), k, among=np.arange(len(values)), tie_seed=7, slot=3)
    assert len(set(chosen)) == k and list(chosen) == sorted(chosen)
    assert sorted((values[c] for c in chosen), reverse=True) == sorted(values, reverse=True)[:k]


def test_another_slot_or_seed_settles_ties_otherwise() -> None:
    everyone = np.arange(40)
    drawn = {
        top_k(np.zeros(40), 5, among=everyone, tie_seed=seed, slot=slot)
        for seed in (1, "config-hash")
        for slot in (1, 2)
    }
    assert len(drawn) == 4


def test_only_the_eligible_are_elected() -> None:
    mean = np.array([0.9, 0.8, 0.7, 0.6])
    election = elect(
        mean,
        np.ones(4, dtype=np.int64),
        np.ones(4),
        slot=5,
        budget=2,
        exploration=0.1,
        tie_seed=1,
        eligible=np.array([3, 1, 2]),
    )
    assert election.cohort == (1, 2)
    assert election.indices[0] > election.indices[1]


def test_too_few_eligible_clients_elect_nobody() -> None:
    with pytest.raises(AvailabilityError, match="budget is 2"):
        elect(
            np.zeros(4),
            np.ones(4, dtype=np.int64),
            np.ones(4),
            slot=5,
            budget=2,
            exploration=0.1,
            tie_seed=1,
            eligible=np.array([3]),
        )
