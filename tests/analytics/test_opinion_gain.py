"""Rewards of a warm run: gains against a forecast, fair to identical clients whatever the curve."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.analytics import OpinionGain
from fedelect.analytics.opinion_gain import LEVEL, NEUTRAL, SETTLING_SLOTS, TREND
from fedelect.errors import StateError
from fedelect.seeds import stream
from fedelect.selectors import SelectorSpec
from fedelect.vocabulary import Feedback, Floats

CURVES: dict[str, Callable[[int], float]] = {
    "steep": lambda slot: 0.9 - 0.8 * math.exp(-slot / 10),
    "slow": lambda slot: 0.9 - 0.8 * math.exp(-slot / 40),
    "power": lambda slot: 0.95 - 0.85 / math.sqrt(slot),
    "straight": lambda slot: 0.2 + 0.01 * slot,
}

opinions = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)


def rewards_of(means: list[float]) -> list[float]:
    gain = OpinionGain()
    return [gain.reward(mean) for mean in means]


def reference(means: list[float]) -> list[float]:
    """The forecast by its definition: a least-squares line while that weighs the newest slot more, then Holt's rule."""
    level, trend, rewards = means[0], 0.0, [0.5]
    for count, mean in enumerate(means[1:], start=2):
        forecast = level + trend
        rewards.append(0.5 if count <= 10 else 0.5 + mean - forecast)
        if 6 / (count * (count + 1)) > TREND:  # then the level's weight is above its least, too
            trend, at_zero = np.polyfit(np.arange(1, count + 1), means[:count], 1)
            level = at_zero + trend * count
        else:
            weight = max(LEVEL, (4 * count - 2) / (count * (count + 1)))
            level, trend = forecast + weight * (mean - forecast), trend + TREND * (mean - forecast)
    return rewards


@given(opinions)
def test_rewards_are_those_of_the_literal_reference(means: list[float]) -> None:
    assert rewards_of(means) == pytest.approx(reference(means), abs=1e-9)


@given(opinions)
def test_the_first_slots_are_neutral(means: list[float]) -> None:
    assert set(rewards_of(means)[:SETTLING_SLOTS]) == {NEUTRAL}


@given(st.floats(0.0, 1.0), st.floats(-0.02, 0.02))
def test_a_straight_line_gains_nothing(first: float, rise: float) -> None:
    assert rewards_of([first + rise * slot for slot in range(50)]) == pytest.approx([NEUTRAL] * 50, abs=1e-9)


@given(opinions, st.floats(0.0, 1.0))
def test_a_shift_of_all_opinions_changes_no_reward(means: list[float], shift: float) -> None:
    assert rewards_of([mean + shift for mean in means]) == pytest.approx(rewards_of(means), abs=1e-9)


@given(opinions, st.integers(0, 40))
def test_a_restored_forecast_goes_on_exactly(means: list[float], cut: int) -> None:
    gain, other = OpinionGain(), OpinionGain()
    before = [gain.reward(mean) for mean in means[:cut]]
    other.restore(json.loads(json.dumps(gain.state())))
    assert before + [other.reward(mean) for mean in means[cut:]] == rewards_of(means)


@pytest.mark.parametrize("state", [{}, {"slots": 3, "level": 0.5}, {"slots": "3", "level": 0.5, "trend": 0.0}])
def test_a_damaged_state_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(StateError, match="forecast of opinions is damaged"):
        OpinionGain().restore(state)


def test_a_good_cohort_is_not_rewarded_for_its_predecessor() -> None:
    """Cohorts whose effect lasts a slot: a gain follows its own cohort, and much less the one before it."""
    rng = stream(3, "effects")
    effects = rng.choice([0.0, -0.1], 2000)
    means = (0.8 + effects + 0.01 * rng.standard_normal(2000)).tolist()
    gains = np.array(rewards_of(means))[100:]
    own, before = effects[100:], effects[99:-1]
    design = np.stack([np.ones(own.size), own, before], axis=1)
    _, of_own, of_before = np.linalg.lstsq(design, gains, rcond=None)[0]
    assert of_own == pytest.approx(1.0, abs=0.02)
    assert abs(of_before) < 0.5  # the bare difference of two slots has -1


def play(spec: str, curve: Callable[[int], float], noise: float, seed: int) -> Floats:
    """How often each of 12 identical clients is elected in 60 slots of three."""
    selector = SelectorSpec.of(spec).build(clients=12, budget=3, seed=seed)
    luck = stream(seed, "noise").standard_normal(60)
    gain, counts = OpinionGain(), np.zeros(12)
    for slot in range(1, 61):
        selection = selector.ask()
        counts[list(selection.cohort)] += 1
        reward = gain.reward(curve(slot) + noise * float(luck[slot - 1]))
        times = np.ones(12)
        selector.tell(selection, Feedback(reward=reward, training_s=times, upload_s=times, sizes=times))
    return counts


BY_REWARD = ("quick-init-ucb", "subset-ucb", "client-ucb", "client-thompson", "additive-thompson", "context-ucb")


@pytest.mark.parametrize(("curve", "noise"), [("steep", 0.0), ("slow", 0.02), ("power", 0.02), ("straight", 0.0)])
@pytest.mark.parametrize("spec", BY_REWARD)
def test_identical_clients_get_equal_shares_while_rewards_rise(spec: str, curve: str, noise: float) -> None:
    shares = np.mean([play(spec, CURVES[curve], noise, seed) for seed in range(50)], axis=0) / (60 * 3 / 12)
    assert shares == pytest.approx(np.ones(12), abs=0.2)


def test_identical_clients_get_equal_shares_from_set_gp() -> None:
    shares = np.mean([play("set-gp", CURVES["slow"], 0.0, seed) for seed in range(12)], axis=0) / (60 * 3 / 12)
    assert shares == pytest.approx(np.ones(12), abs=0.2)
