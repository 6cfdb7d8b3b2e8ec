"""Subset UCB tries every subset once, in random order, and is then exact."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect import Feedback
from fedelect.selectors import SubsetUcb


@given(
    clients=st.integers(1, 6),
    data=st.data(),
    exploration=st.floats(0.0, 2.0),
    seed=st.integers(0, 2**32),
)
def test_every_arm_is_tried_once_and_then_the_index_decides(
    clients: int, data: st.DataObject, exploration: float, seed: int
) -> None:
    budget = data.draw(st.integers(1, clients))
    selector = SubsetUcb(clients=clients, budget=budget, exploration=exploration, seed=seed)
    arms = list(itertools.combinations(range(clients), budget))
    rewards: dict[tuple[int, ...], list[float]] = {arm: [] for arm in arms}
    for _ in arms:
        selection = selector.ask()
        assert not rewards[selection.cohort] and not selection.indices
        reward = data.draw(st.floats(0.0, 1.0))
        rewards[selection.cohort].append(reward)
        selector.tell(selection, Feedback(reward=reward))
    for _ in range(6):
        selection = selector.ask()
        indices = {
            arm: sum(got) / len(got) + exploration * math.sqrt(math.log(selection.slot) / len(got))
            for arm, got in rewards.items()
        }
        assert indices[selection.cohort] >= max(indices.values()) - 1e-12
        assert selection.indices == pytest.approx((max(indices.values()),), abs=1e-12)
        reward = data.draw(st.floats(0.0, 1.0))
        rewards[selection.cohort].append(reward)
        selector.tell(selection, Feedback(reward=reward))


def test_untried_arms_come_in_uniformly_random_order() -> None:
    """In each of the 10 slots each of the 10 arms must be equally frequent (chi-square, p = 0.001)."""
    seeds = 1500
    arms: list[tuple[int, ...]] = list(itertools.combinations(range(5), 2))
    counts = np.zeros((10, 10))
    for seed in range(seeds):
        selector = SubsetUcb(clients=5, budget=2, exploration=1.0, seed=seed)
        for slot in range(10):
            selection = selector.ask()
            counts[slot, arms.index(selection.cohort)] += 1
            selector.tell(selection, Feedback(reward=0.5))
    chi_square = ((counts - seeds / 10) ** 2 / (seeds / 10)).sum(axis=1)
    assert chi_square.max() < 30  # 9 degrees of freedom, p = 0.0004 for each of ten slots


def test_available_clients_have_arms_of_their_own() -> None:
    selector = SubsetUcb(clients=6, budget=2, exploration=0.0, seed=2)
    seen = set()
    for slot in range(3):
        selection = selector.ask([1, 3, 5])
        seen.add(selection.cohort)
        selector.tell(selection, Feedback(reward=0.1 * slot))
    assert seen == {(1, 3), (1, 5), (3, 5)}
    best = selector.ask([1, 3, 5])
    assert best.indices == pytest.approx((0.2,))


def test_far_too_many_arms_to_list_are_no_trouble() -> None:
    selector = SubsetUcb(clients=100_000, budget=50, exploration=1.0, seed=2)
    cohorts = set()
    for _ in range(20):
        selection = selector.ask()
        cohorts.add(selection.cohort)
        selector.tell(selection, Feedback(reward=0.5))
    assert len(cohorts) == 20


def test_abandoned_arms_stay_untried() -> None:
    selector = SubsetUcb(clients=3, budget=2, exploration=1.0, seed=2)
    tried = []
    for _ in range(4):
        selection = selector.ask()
        if selection.slot == 1:
            selector.abandon(selection)
            continue
        tried.append(selection.cohort)
        selector.tell(selection, Feedback(reward=0.5))
    assert sorted(tried) == [(0, 1), (0, 2), (1, 2)]


def test_noise_widens_its_index_too() -> None:
    selector = SubsetUcb(clients=1, budget=1, exploration=1.0, seed=2)
    selector.tell(selector.ask(), Feedback(reward=0.5, reward_noise=0.5))
    assert selector.ask().indices == pytest.approx((0.5 + math.sqrt(2 * math.log(2)),))


def test_ties_among_tried_arms_are_drawn_evenly() -> None:
    counts = [0, 0, 0]
    for seed in range(3000):
        selector = SubsetUcb(clients=3, budget=2, exploration=1.0, seed=seed)
        for _ in range(3):
            selector.tell(selector.ask(), Feedback(reward=0.5))
        counts[sum(selector.ask().cohort) - 1] += 1
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 13.8  # 2 degrees of freedom, p = 0.001
