"""The value of a cohort as a Gaussian process over sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import set_values as reference

from fedelect.equations.set_values import SetPosterior, SetPrior, belief_value, best_set, elect_set
from fedelect.equations.set_values.posterior import TRUST, inverse, membership
from fedelect.errors import AvailabilityError, ConfigurationError
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Floats

PRIOR = SetPrior(level=0.7, additive=1.3, pairs=0.9, own=0.2, noise=0.15)
PLAYED: list[Cohort] = [(0, 1, 2), (3, 4, 5), (0, 3, 6), (1, 4, 6)]
REWARDS = [[0.5, 0.56], [0.3], [0.8, 0.7, 0.75], [0.4]]


def told(rewards: list[list[float]] = REWARDS) -> tuple[Floats, Floats, Floats]:
    means = np.array([np.mean(own) for own in rewards])
    weights = np.array([float(len(own)) for own in rewards])
    scatter = np.array([np.sum((np.array(own) - np.mean(own)) ** 2) for own in rewards])
    return means, weights, scatter


def known(prior: SetPrior = PRIOR) -> SetPosterior:
    means, weights, scatter = told()
    return SetPosterior(np.array(PLAYED), means, weights, scatter, np.zeros(4), prior)


def test_the_covariance_of_two_sets_is_worked_out_by_hand() -> None:
    prior = SetPrior(level=1.0, additive=2.0, pairs=3.0, own=0.5, noise=0.1)
    overlaps = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    # K = 4: 1 + 2 o / 4 + 3 o (o - 1) / 12, and 0.5 more for the set itself
    assert prior.covariance(overlaps, 4).tolist() == pytest.approx([1.0, 1.5, 2.5, 4.0, 6.5])
    assert prior.covariance(np.array([0.0, 1.0]), 1).tolist() == pytest.approx([1.0, 3.5])


def test_the_noise_is_what_repeated_plays_show_tempered_by_the_prior() -> None:
    posterior = known()
    shown = 0.0018 + 0.005  # 2 * 0.03^2, and 0.05^2 twice
    assert posterior.noise == pytest.approx((TRUST * 0.15 * posterior.spread**2 + shown) / (TRUST + 1 + 2))
    rewards = [reward for own in REWARDS for reward in own]
    assert posterior.centre == pytest.approx(np.mean(rewards))
    assert posterior.spread == pytest.approx(
        np.sqrt(np.mean([(np.mean(own) - np.mean(rewards)) ** 2 for own in REWARDS for _ in own]))
    )


def test_bounds_are_those_of_the_process_written_out_feature_by_feature() -> None:
    posterior = known()
    sets: list[Cohort] = list(itertools.combinations(range(7), 3))
    mean, deviation = reference.posterior(
        sets, PLAYED, REWARDS, 7, PRIOR, posterior.noise, posterior.centre, posterior.spread
    )
    everybody = np.arange(7)
    rows = membership(np.array(sets), everybody)
    for exploration in (0.0, 1.0, 2.5):
        bounds = posterior.bounds(rows, posterior.membership(everybody), exploration=exploration)
        assert bounds == pytest.approx(mean + exploration * deviation, abs=1e-9)


def test_noise_that_was_added_to_a_reward_makes_it_count_for_less() -> None:
    means, weights, scatter = told()
    noisy = SetPosterior(np.array(PLAYED), means, weights, scatter, np.array([0.0, 0.0, 1e6, 0.0]), PRIOR)
    row, everybody = membership(np.array([[0, 3, 6]]), np.arange(7)), np.arange(7)
    trusting = known().bounds(row, known().membership(everybody), exploration=0.0)
    assert noisy.bounds(row, noisy.membership(everybody), exploration=0.0) < trusting


@given(st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_inverse_in_fixed_order_is_the_inverse(size: int, seed: int) -> None:
    factor = stream(seed, "matrix").standard_normal((size, size))
    matrix = factor @ factor.T + np.eye(size)
    assert inverse(matrix) == pytest.approx(np.linalg.inv(matrix), abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_the_search_finds_the_set_with_the_highest_bound(seed: int) -> None:
    posterior, everybody = known(), np.arange(7)
    sets: list[Cohort] = list(itertools.combinations(range(7), 3))
    bounds = posterior.bounds(membership(np.array(sets), everybody), posterior.membership(everybody), exploration=1.0)
    cohort, bound = best_set(posterior, everybody, clients=7, exploration=1.0, seed=seed, slot=5)
    assert bound == pytest.approx(bounds.max(), abs=1e-12)
    assert bounds[sets.index(cohort)] == pytest.approx(bounds.max(), abs=1e-12)


def test_the_election_keeps_to_who_is_eligible_and_says_when_they_are_too_few() -> None:
    means, weights, scatter = told()
    settings_ = {"clients": 7, "slot": 9, "exploration": 1.0, "seed": 3, "prior": PRIOR}
    election = elect_set(np.array(PLAYED), means, weights, scatter, eligible=np.array([1, 2, 4, 5]), **settings_)  # type: ignore[arg-type]
    assert set(election.cohort) <= {1, 2, 4, 5} and len(election.cohort) == 3
    with pytest.raises(AvailabilityError, match="2 clients can be elected but the budget is 3"):
        elect_set(np.array(PLAYED), means, weights, scatter, eligible=np.array([1, 2]), **settings_)  # type: ignore[arg-type]


def test_the_value_from_beliefs_is_the_mean_of_their_roots() -> None:
    assert belief_value(np.array([0.25, np.nan, 0.81])) == pytest.approx(0.7)
    assert belief_value(np.array([np.nan, np.nan])) is None


@pytest.mark.parametrize("part", [{"noise": 0.0}, {"pairs": -1.0}, {"own": float("nan")}])
def test_impossible_variances_are_refused(part: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="variances must be"):
        SetPrior(**part)
