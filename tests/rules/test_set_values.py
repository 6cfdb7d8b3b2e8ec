"""The value of a cohort as a Gaussian process over sets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import set_values as reference

from fedelect.errors import AvailabilityError, ConfigurationError
from fedelect.rules import SetPrior, belief_value, elect_set, fit_loss_surrogate, search
from fedelect.rules.exact_algebra import Factor, ln, membership
from fedelect.rules.posterior import NOISES, TRUST, SetPosterior
from fedelect.rules.search import find_best_set
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Floats

PRIOR = SetPrior(level=0.7, additive=1.3, pairs=0.9, triples=0.4, own=0.2)
PLAYED: list[Cohort] = [(0, 1, 2), (3, 4, 5), (0, 3, 6), (1, 4, 6)]
REWARDS = [[0.5, 0.56], [0.3], [0.8, 0.7, 0.75], [0.4]]
EVERYBODY = np.arange(7)
SETS: list[Cohort] = list(itertools.combinations(range(7), 3))


def told(rewards: list[list[float]] = REWARDS) -> tuple[Floats, Floats, Floats]:
    means = np.array([np.mean(own) for own in rewards])
    weights = np.array([float(len(own)) for own in rewards])
    scatter = np.array([np.sum((np.array(own) - np.mean(own)) ** 2) for own in rewards])
    return means, weights, scatter


def known(rewards: list[list[float]] = REWARDS) -> SetPosterior:
    return SetPosterior(np.array(PLAYED), *told(rewards), np.zeros(4), PRIOR)


def all_bounds(posterior: SetPosterior, exploration: float) -> Floats:
    rows = membership(np.array(SETS), EVERYBODY)
    return posterior.acquisition(rows, posterior.membership(EVERYBODY), EVERYBODY, exploration=exploration)


def test_the_covariance_of_two_sets_is_worked_out_by_hand() -> None:
    prior = SetPrior(level=1.0, additive=2.0, pairs=3.0, triples=8.0, own=0.5)
    overlaps = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    # K = 4: 1 + 2 o / 4 + 3 C(o, 2) / 6 + 8 C(o, 3) / 4, and 0.5 more for the set itself
    assert prior.covariance(overlaps, 4).tolist() == pytest.approx([1.0, 1.5, 2.5, 6.0, 14.5])
    assert prior.covariance(np.array([0.0, 1.0]), 1).tolist() == pytest.approx([1.0, 3.5])


@given(st.lists(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4), min_size=4, max_size=4))
@settings(max_examples=25, deadline=None)
def test_scale_and_noise_are_the_most_likely_given_every_single_reward(rewards: list[list[float]]) -> None:
    if np.var([np.mean(own) for own in rewards]) < 1e-4:
        return
    posterior = known(rewards)
    likely = {noise: reference.evidence(PLAYED, rewards, 7, PRIOR, noise, TRUST) for noise in NOISES}
    best = max(evidence for evidence, _ in likely.values())
    evidence, scale = likely[posterior.noise]
    assert evidence == pytest.approx(best, abs=1e-7)
    assert posterior.scale == pytest.approx(scale, rel=1e-6)


def test_much_scatter_of_repeated_plays_is_taken_for_noise_and_little_is_not() -> None:
    assert known([[0.5, 0.5, 0.5], [0.3, 0.3], [0.8, 0.8], [0.4, 0.4]]).noise == NOISES[0]
    assert known([[0.2, 0.8, 0.5], [0.0, 0.6], [0.4, 0.9], [0.1, 0.7]]).noise == NOISES[-1]


def test_bounds_are_those_of_the_process_written_out_feature_by_feature() -> None:
    posterior = known()
    mean, variance = reference.posterior(SETS, PLAYED, REWARDS, 7, PRIOR, posterior.noise, posterior.centre)
    moved = math.sqrt(posterior.scale) * variance / np.sqrt(variance + posterior.noise)
    for exploration in (0.0, 1.0, 2.5):
        assert all_bounds(posterior, exploration) == pytest.approx(mean + exploration * moved, abs=1e-9)


def test_a_surrogate_score_is_one_more_feature_of_a_set() -> None:
    class Told:
        def score(self, cohorts: object) -> Floats:
            moods: Floats = np.asarray(cohorts).sum(axis=1) / 10.0 - 1.0
            return moods

    posterior = SetPosterior(np.array(PLAYED), *told(), np.zeros(4), PRIOR, Told())  # type: ignore[arg-type]
    surrogate_score, played_score = Told().score(SETS), Told().score(PLAYED)
    gram = np.array([[reference.covariance(a, b, 7, PRIOR) for b in PLAYED] for a in PLAYED])
    gram += np.outer(played_score, played_score) + np.diag(posterior.noise / told()[1])
    across = np.array([[reference.covariance(a, b, 7, PRIOR) for b in PLAYED] for a in SETS])
    across += np.outer(surrogate_score, played_score)
    mean = across @ np.linalg.solve(gram, told()[0] - told()[0].mean())
    variance = (
        PRIOR.covariance(np.array(3.0), 3)
        + surrogate_score**2
        - (across * np.linalg.solve(gram, across.T).T).sum(axis=1)
    )
    moved = math.sqrt(posterior.scale) * variance / np.sqrt(variance + posterior.noise)
    assert all_bounds(posterior, 1.5) == pytest.approx(mean + 1.5 * moved, abs=1e-9)


def test_the_surrogate_score_is_the_expected_sum_of_squares_judge_by_judge() -> None:
    losses = stream(3, "losses").uniform(0.5, 3.0, (4, 5))
    losses[2, 1] = np.nan
    weights, judges = np.array([2.0, 1.0, 3.0, 1.0]), [0, 1, 3, 4, 6]
    surrogate = fit_loss_surrogate(np.array(PLAYED), weights, losses, clients=7, reporters=np.array(judges), seed=1)
    literal = reference.surrogate_score(PLAYED, weights, losses, 7, judges)
    found = surrogate.score(np.array(SETS))
    slope, shift = np.polyfit(literal, found, 1)
    assert slope > 0.0 and found == pytest.approx(slope * literal + shift, abs=1e-9)
    assert surrogate.score(np.array(PLAYED)).mean() == pytest.approx(0.0, abs=1e-9)
    assert 0.6 < found.std() < 1.7  # about one over random sets


def test_losses_tell_substitutes_from_complements_before_any_pair_was_played() -> None:
    kind = np.array([0, 0, 1, 1, 2, 2])
    cohorts = [(0, 2), (1, 4), (3, 5)]
    losses = np.array([[0.2 if kind[judge] in kind[list(cohort)] else 2.0 for judge in range(6)] for cohort in cohorts])
    surrogate = fit_loss_surrogate(np.array(cohorts), np.ones(3), losses, clients=6, reporters=np.arange(6), seed=1)
    alike, unlike = (
        surrogate.score(np.array([[0, 1], [2, 3], [4, 5]])),
        surrogate.score(np.array([[0, 3], [1, 2], [0, 5]])),
    )
    assert alike.max() < unlike.min()


def test_losses_that_are_all_the_same_or_missing_give_no_surrogate_score() -> None:
    for loss in (1.0, np.nan):
        surrogate = fit_loss_surrogate(
            np.array(PLAYED), np.ones(4), np.full((4, 7), loss), clients=7, reporters=EVERYBODY, seed=1
        )
        assert surrogate.score(np.array(SETS)).tolist() == [0.0] * len(SETS)


def test_noise_that_was_added_to_a_reward_makes_it_count_for_less() -> None:
    noisy = SetPosterior(np.array(PLAYED), *told(), np.array([0.0, 0.0, 1e6, 0.0]), PRIOR)
    place = SETS.index((0, 3, 6))
    assert all_bounds(noisy, 0.0)[place] < all_bounds(known(), 0.0)[place]


@given(st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_elimination_in_fixed_order_solves_and_knows_the_determinant(size: int, seed: int) -> None:
    rng = stream(seed, "matrix")
    root, columns = rng.standard_normal((size, size)), rng.standard_normal((size, 3))
    matrix = root @ root.T + np.eye(size)
    factor = Factor(matrix)
    assert factor.solve(columns) == pytest.approx(np.linalg.solve(matrix, columns), abs=1e-8)
    solve_lower = factor.solve_lower(columns)
    assert (solve_lower.T / factor.pivots) @ solve_lower == pytest.approx(
        columns.T @ np.linalg.solve(matrix, columns), abs=1e-8
    )
    assert factor.ln_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_is_that_of_the_platform_but_for_rounding(number: float) -> None:
    assert ln(number) == pytest.approx(math.log(number), rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_the_search_finds_the_set_with_the_highest_bound(seed: int) -> None:
    posterior = known()
    bounds = all_bounds(posterior, 1.0)
    cohort, bound = find_best_set(posterior, EVERYBODY, clients=7, exploration=1.0, seed=seed, slot=5)
    assert bound == pytest.approx(bounds.max(), abs=1e-12)
    assert bounds[SETS.index(cohort)] == pytest.approx(bounds.max(), abs=1e-12)


def test_the_search_ends_after_a_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MOST_STEPS", 1)
    bounds = all_bounds(known(), 1.0)
    cohort, bound = find_best_set(known(), EVERYBODY, clients=7, exploration=1.0, seed=1, slot=5)
    assert bounds[SETS.index(cohort)] == pytest.approx(bound, abs=1e-12)


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


@pytest.mark.parametrize("part", [{"surrogate": -0.1}, {"pairs": -1.0}, {"own": float("nan")}])
def test_impossible_variances_are_refused(part: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="variances must be"):
        SetPrior(**part)
