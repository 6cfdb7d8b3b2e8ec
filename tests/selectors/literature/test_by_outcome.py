"""Selectors by contributions, failures, speed with fair shares, and channels: formulas by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.selectors.literature.vectors import load_vectors

from fedelect.errors import ConfigurationError
from fedelect.selectors import AbstractSelector, BestChannel, E3cs, FairUcb, GreedyFed, SFedAvg
from fedelect.selectors.literature.e3cs import allocate_chances
from fedelect.vocabulary import UPDATE_SIZE, Feedback, Selection

NAN = float("nan")


def open_slot(selector: AbstractSelector, slot: int, cohort: tuple[int, ...], chances: tuple[float, ...]) -> Selection:
    selector._slot, selector._open = slot, Selection(slot, cohort, chances)
    return selector._open


def test_s_fedavg_moves_relevance_towards_the_contributions() -> None:
    selector = SFedAvg(clients=4, budget=2, keep=0.75, gain=0.25, seed=1)
    selection = selector.ask()
    told = np.full(4, NAN)
    told[list(selection.cohort)] = [0.8, -0.4]
    selector.tell(selection, Feedback(contributions=told))
    expected = np.full(4, 0.25)
    expected[list(selection.cohort)] = [0.75 * 0.25 + 0.25 * 0.8, 0.75 * 0.25 - 0.25 * 0.4]
    assert selector.arrays["relevance"] == pytest.approx(expected)


def test_s_fedavg_draws_by_the_softmax_of_relevance() -> None:
    counts = np.zeros(3)
    for seed in range(3000):
        selector = SFedAvg(clients=3, budget=1, seed=seed)
        selector.arrays["relevance"] = np.array([0.0, 1.0, 2.0])
        counts[selector.ask().cohort[0]] += 1
    weights = np.exp([0.0, 1.0, 2.0])
    assert counts / 3000 == pytest.approx(weights / weights.sum(), abs=0.03)


@pytest.mark.parametrize(("memory", "value"), [(None, (0.4 + 0.1 - 0.2) / 3), (0.5, 0.5 * (0.5 * 0.2 + 0.05) - 0.1)])
def test_greedyfed_averages_contributions_and_takes_the_highest(memory: float | None, value: float) -> None:
    selector = GreedyFed(clients=3, budget=3, memory=memory, seed=1)
    for first in (0.4, 0.1, -0.2):
        selector.tell(selector.ask(), Feedback(contributions=[first, 0.0, NAN]))
    assert selector.arrays["value"] == pytest.approx([value, 0.0, 0.0])
    alone = GreedyFed(clients=4, budget=2, seed=1)
    for _ in range(2):  # every client trains once
        alone.tell(alone.ask(), Feedback(contributions=[0.1, 0.4, -0.2, 0.3]))
    assert alone.ask().cohort == (1, 3)


@pytest.mark.parametrize("run", load_vectors("greedyfed")["runs"], ids=["mean", "0.8", "0.3"])
def test_greedyfed_elects_whom_the_original_code_elects(run: dict[str, Any]) -> None:
    selector = GreedyFed(clients=run["clients"], budget=run["budget"], memory=run["memory"], seed=1)
    first = math.ceil(
        run["clients"] / run["budget"]
    )  # in the original, clients are tried in the order of their numbers
    for slot, entry in enumerate(run["slots"], 1):
        cohort = tuple(entry["cohort"])
        selection = open_slot(selector, slot, cohort, ()) if slot <= first else selector.ask()
        assert selection.cohort == cohort
        told = np.full(run["clients"], NAN)
        told[list(cohort)] = entry["contributions"]
        selector.tell(selection, Feedback(contributions=told))


@given(
    st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=12),
    st.integers(1, 12),
    st.floats(0.0, 1.0),
)
def test_e3cs_chances_sum_to_k_within_their_bounds_and_in_proportion(
    weights: list[float], budget: int, fairness: float
) -> None:
    values, budget = np.array(weights), min(budget, len(weights))
    chances, capped = allocate_chances(values, budget, fairness)
    sigma = fairness * budget / values.size
    assert chances.sum() == pytest.approx(budget)
    assert (chances >= sigma - 1e-9).all() and (chances <= 1.0 + 1e-9).all()
    assert chances[capped] == pytest.approx(1.0)
    if budget < values.size and fairness < 0.99:
        shares = (chances - sigma)[~capped]
        assert shares * values[~capped].sum() == pytest.approx(shares.sum() * values[~capped], abs=1e-6)


def test_e3cs_caps_the_chances_that_would_exceed_one() -> None:
    chances, capped = allocate_chances(np.array([8.0, 1.0, 1.0]), 2, 0.0)
    assert capped.tolist() == [True, False, False] and chances == pytest.approx([1.0, 0.5, 0.5])
    chances, capped = allocate_chances(np.array([2.0, 1.0, 1.0]), 1, 0.5)
    assert not capped.any() and chances == pytest.approx([1 / 6 + 1 / 4, 1 / 6 + 1 / 8, 1 / 6 + 1 / 8])


def test_e3cs_rewards_members_that_finished_and_no_capped_weight() -> None:
    selector = E3cs(clients=4, budget=3, fairness=0.5, rate=0.5, seed=1)
    selection = open_slot(selector, 1, (0, 1, 2), (0.5, 0.6, 1.0))
    selector.tell(selection, Feedback(seconds=[1.0, NAN, 2.0, NAN]))  # client 1 failed, client 2 was capped
    boost = math.exp((3 - 4 * 0.375) * 0.5 / (4 * 0.5))  # sigma = 0.5 * 3 / 4
    assert selector.arrays["weight"] == pytest.approx(np.array([boost, 1.0, 1.0, 1.0]) / boost)


def test_e3cs_goes_by_updates_where_they_are_told() -> None:
    updates = np.full((2, UPDATE_SIZE), NAN)
    updates[1] = 0.0
    selector = E3cs(clients=2, budget=2, fairness=0.0, seed=1)
    selector.tell(open_slot(selector, 1, (0, 1), (0.9, 0.9)), Feedback(seconds=[1.0, 1.0], updates=updates))
    assert selector.arrays["weight"][1] > selector.arrays["weight"][0]


def test_fair_ucb_is_worked_out_by_hand() -> None:
    selector = FairUcb(clients=3, budget=2, fairness=0.4, patience=5.0, exploration=0.3, seed=1)
    first = selector.ask()
    selector.tell(first, Feedback(seconds=[2.0, 4.0, 8.0]))
    served = np.isin(np.arange(3), first.cohort)
    assert set(np.flatnonzero(~served).tolist()) <= set(selector.ask().cohort)  # clients never elected come first
    assert selector.arrays["queue"] == pytest.approx(np.where(served, 0.0, 0.4))
    second = selector.ask()
    selector.tell(second, Feedback(seconds=[2.0, 4.0, 8.0]))
    counts = served * 1.0 + np.isin(np.arange(3), second.cohort)
    speeds = 1.0 - np.array([2.0, 4.0, 8.0]) / 8.0
    expected = 5.0 * (speeds + 0.3 * np.sqrt(2.0 * math.log(7) / counts)) + selector.arrays["queue"]
    assert selector.indices(7) == pytest.approx(expected)


def test_fair_ucb_keeps_its_promise_to_the_slowest() -> None:
    selector = FairUcb(clients=6, budget=2, fairness=0.2, patience=1.0, exploration=0.1, seed=1)
    elections = np.zeros(6)
    for _ in range(200):
        selection = selector.ask()
        elections[list(selection.cohort)] += 1
        selector.tell(selection, Feedback(seconds=[1.0, 1.0, 1.0, 1.0, 1.0, 50.0]))
    assert elections[5] >= 0.2 * 200 - 12 and elections[5] < elections[:5].min()
    with pytest.raises(ConfigurationError, match="fairness must be at most K / N"):
        FairUcb(clients=6, budget=2, fairness=0.5, seed=1)


def test_best_channel_takes_the_channels_that_are_best_now() -> None:
    selector = BestChannel(clients=4, budget=2, seed=1)
    selector.tell(selector.ask(), Feedback(channel_db=[-3.0, 10.0, 4.0, 20.0]))
    assert selector.ask().cohort == (1, 3)
    selector.tell(selector.ask(), Feedback(channel_db=[-30.0, 0.0, 5.0, NAN]))  # the silent one counts as -8.3
    assert selector.ask().cohort == (1, 2)
