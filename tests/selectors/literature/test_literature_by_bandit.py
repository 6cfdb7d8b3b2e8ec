"""Rivals that are bandits over clients: their formulas on numbers worked out by hand."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector, AdditiveThompson, ClientThompson, ClientUcb, ContextUcb, RbcsF
from fedelect.selectors.literature.features import Ridge, divide_by_mean
from fedelect.vocabulary import Cohort, Feedback, Selection


def tell(selector: AbstractSelector, **signals: Any) -> Selection:
    selection = selector.ask()
    selector.tell(selection, Feedback(**signals))
    return selection


def test_the_client_index_is_the_mean_reward_of_its_cohorts_and_a_bonus() -> None:
    selector = ClientUcb(clients=4, budget=2, exploration=0.5, seed=1)
    first, second = tell(selector, reward=0.8), tell(selector, reward=0.4)
    indices = selector.indices(3)
    bonus = 0.5 * math.sqrt(1.5 * math.log(3))
    assert indices[list(first.cohort)] == pytest.approx([0.8 + bonus] * 2)
    assert indices[list(second.cohort)] == pytest.approx([0.4 + bonus] * 2)
    selection = tell(selector, reward=0.6)
    assert selection.cohort == first.cohort and selection.indices == pytest.approx((0.8 + bonus,) * 2)
    assert selector.indices(4)[list(first.cohort)] == pytest.approx([0.7 + 0.5 * math.sqrt(1.5 * math.log(4) / 2)] * 2)


def test_client_thompson_counts_a_reward_as_successes_and_failures() -> None:
    selector = ClientThompson(clients=3, budget=1, sharpness=50.0, seed=1)
    for _ in range(30):
        selection = selector.ask()
        selector.tell(selection, Feedback(reward=0.9 if selection.cohort == (1,) else 0.2))
    cohorts = [tell(selector, reward=0.9).cohort for _ in range(5)]
    assert set(cohorts) == {(1,)}
    noisy = ClientThompson(clients=3, budget=1, seed=1)
    selection = noisy.ask()
    noisy.tell(selection, Feedback(reward=7.0))  # noise may carry a reward out of [0, 1]
    assert noisy.arrays["successes"][selection.cohort[0]] == 2.0 and noisy.arrays["failures"].tolist() == [1.0] * 3


def test_additive_thompson_draws_from_the_posterior_of_the_regression() -> None:
    played: list[tuple[Cohort, float]] = [((0, 1), 0.9), ((0, 2), 0.7), ((1, 3), 0.5), ((2, 3), 0.4)]
    selector = AdditiveThompson(clients=4, budget=2, spread=0.2, noise=0.1, seed=1)
    for cohort, reward in played:
        selector._statistics.add_reward(cohort, reward, 0.0)
    draws = np.array(
        [selector._condition(0.2 * (rng := stream(seed, "draw")).standard_normal(4), rng) for seed in range(4000)]
    )
    members = np.array([[client in cohort for client in range(4)] + [True] for cohort, _ in played], dtype=float)
    centred = np.array([reward for _, reward in played]) - np.mean([reward for _, reward in played])
    precision = members.T @ members / 0.01 + np.diag([25.0] * 4 + [1.0])  # a level of variance 1 beside the worths
    covariance = np.linalg.inv(precision)
    mean = covariance @ members.T @ centred / 0.01
    assert draws.mean(axis=0) == pytest.approx(mean[:4], abs=0.015)
    assert np.cov(draws.T) == pytest.approx(covariance[:4, :4], abs=0.004)


def test_ridge_regression_and_its_widths_are_worked_out_by_hand() -> None:
    ridge = Ridge(2)
    ridge.add(np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([3.0, 5.0]))
    square = np.array([[3.0, 2.0], [2.0, 5.0]])  # I + sum of x x^T
    mean, width = ridge.estimate(np.array([[1.0, 1.0]]))
    assert mean == pytest.approx([np.array([1.0, 1.0]) @ np.linalg.solve(square, [8.0, 10.0])])
    assert width == pytest.approx([math.sqrt(4.0 / 11.0)])  # (5 + 3 - 2 - 2) / 11
    assert divide_by_mean(np.array([1.0, 3.0, np.nan])).tolist() == [0.5, 1.5, 1.0]
    assert divide_by_mean(np.array([np.nan, np.nan])).tolist() == [1.0, 1.0]


def test_rbcs_f_elects_the_cohort_of_least_cost_of_all() -> None:
    selector = RbcsF(clients=6, budget=3, patience=2.0, seed=1)
    times = np.array([1.0, 4.0, 2.0, 3.0, 0.5, 2.5])
    selector.arrays["queue"] = np.array([0.0, 5.0, 1.0, 2.5, 0.2, 3.0])

    def cost(cohort: Cohort) -> float:
        members = list(cohort)
        return 2.0 * float(times[members].max()) - float(selector.arrays["queue"][members].sum())

    chosen = selector._cheapest(times, np.arange(6))
    assert cost(chosen) == pytest.approx(min(map(cost, itertools.combinations(range(6), 3))))


def test_rbcs_f_owes_every_client_its_share() -> None:
    training, upload = np.array([1.0, 2.0, 3.0, 20.0]), np.ones(4)
    selector = RbcsF(clients=4, budget=1, fairness=0.2, patience=1.0, seed=1)
    counts = np.zeros(4)
    for _ in range(200):
        selection = tell(selector, seconds=training + upload, training_s=training, upload_s=upload)
        counts[list(selection.cohort)] += 1
    assert counts.min() >= 0.15 * 200 and counts[0] == counts.max()
    greedy = RbcsF(clients=4, budget=1, fairness=0.0, patience=1.0, exploration=0.0, seed=1)
    cohorts = [tell(greedy, seconds=training + upload, training_s=training, upload_s=upload).cohort for _ in range(30)]
    assert cohorts[-5:] == [(0,)] * 5
    with pytest.raises(ConfigurationError, match="at most K / N"):
        RbcsF(clients=4, budget=1, fairness=0.5, seed=1)


def test_context_ucb_learns_what_kind_of_client_is_worth_electing() -> None:
    sizes = np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    selector = ContextUcb(clients=6, budget=2, exploration=0.1, seed=1)
    for _ in range(40):
        selection = selector.ask()
        reward = float(sizes[list(selection.cohort)].mean()) / 60.0
        selector.tell(selection, Feedback(reward=reward, sizes=sizes, training_s=np.ones(6), upload_s=np.ones(6)))
    assert selector.ask().cohort == (4, 5)
