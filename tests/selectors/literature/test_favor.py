"""FAVOR: the networks against finite differences, the state and the reward by hand, and that it learns."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.errors import ConfigurationError
from fedelect.selectors import Favor
from fedelect.selectors.literature.favor import principal_loadings
from fedelect.selectors.literature.q_network import QNetwork
from fedelect.vocabulary import UPDATE_SIZE, Feedback, Floats


def literal_q(network: QNetwork, state: Floats, action: int) -> float:
    hidden = [
        max(0.0, sum(float(w) * float(s) for w, s in zip(row, state, strict=True)) + float(bias))
        for row, bias in zip(network.inner, network.inner_bias, strict=True)
    ]
    outer = zip(network.outer[action], hidden, strict=True)
    return sum(float(w) * h for w, h in outer) + float(network.outer_bias[action])


def small_network(seed: int = 1) -> QNetwork:
    rng = np.random.default_rng(seed)
    network = QNetwork.draw(5, 4, 3, rng)
    return network._replace(
        inner_bias=rng.normal(size=4).astype(np.float32), outer_bias=np.array([0.1, -0.2, 0.3], np.float32)
    )


def test_q_values_are_those_of_a_network_with_one_hidden_layer() -> None:
    network, states = small_network(), np.random.default_rng(2).normal(size=(6, 5))
    expected = [[literal_q(network, state, action) for action in range(3)] for state in states]
    assert network.values(states) == pytest.approx(np.array(expected), abs=1e-5)


@given(st.integers(0, 50))
def test_the_slope_is_that_of_the_mean_squared_error_of_the_actions_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network, states = small_network(seed), rng.normal(size=(4, 5))
    actions, targets = np.array([[0, 1], [1, 2], [0, 2], [2, 1]]), rng.normal(size=4)

    def error(of: QNetwork) -> float:
        values = np.array(
            [[literal_q(of, states[row], int(action)) for action in actions[row]] for row in range(len(states))]
        )
        return float(((values - targets[:, None]) ** 2).mean() / 2.0)

    slope, step = network.slope(states, actions, targets.astype(np.float32)), 1e-3
    for part in range(4):
        place = tuple(rng.integers(size) for size in network[part].shape)
        moved = []
        for sign in (1.0, -1.0):
            parts = [weights.astype(np.float64) for weights in network]
            parts[part][place] += sign * step
            moved.append(error(QNetwork(*parts)))
        assert float(slope[part][place]) == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=2e-3)


def test_a_step_goes_against_the_slope_and_a_long_slope_is_shortened() -> None:
    network = small_network()
    short = QNetwork(*(np.full_like(part, 0.01) for part in network))
    assert network.descend(short, 0.5).outer == pytest.approx(network.outer - 0.005)
    long = QNetwork(*(np.full_like(part, 100.0) for part in network))
    moved = [before - after for before, after in zip(network, network.descend(long, 0.5), strict=True)]
    assert np.sqrt(sum(float((part**2).sum()) for part in moved)) == pytest.approx(0.5, rel=1e-4)


def test_loadings_are_the_principal_directions_of_the_first_updates() -> None:
    rng = np.random.default_rng(3)
    directions, _ = np.linalg.qr(rng.normal(size=(UPDATE_SIZE, 3)))
    scores = rng.normal(size=(30, 3)) * [5.0, 2.0, 0.5]
    rows = scores @ directions.T + 1.0
    rows[7] = np.nan
    found = principal_loadings(rows, 5)
    assert (found[:, 3:] == 0.0).all()  # the rows span no more
    _, vectors = np.linalg.eigh(np.cov(np.delete(rows, 7, axis=0).T))
    for place in range(3):
        axis = found[:, place] / np.linalg.norm(found[:, place])
        assert abs(axis @ vectors[:, -1 - place]) == pytest.approx(1.0, abs=1e-6)
        assert axis[np.argmax(np.abs(axis))] > 0.0


class Game:
    """Clients whose cohorts are worth the mean of their members, and whose updates tell them apart."""

    def __init__(self, clients: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.worth = self.rng.random(clients)
        self.kinds = self.rng.standard_normal((clients, UPDATE_SIZE))

    def play(self, selector: Favor, slots: int) -> list[float]:
        rewards = []
        for _ in range(slots):
            selection = selector.ask()
            members = list(selection.cohort)
            updates = np.full(self.kinds.shape, np.nan)
            updates[members] = self.kinds[members] + 0.1 * self.rng.standard_normal((len(members), UPDATE_SIZE))
            rewards.append(float(self.worth[members].mean()))
            selector.tell(selection, Feedback(reward=rewards[-1], updates=updates))
        return rewards


def test_it_comes_to_elect_better_cohorts() -> None:
    ahead = []
    for seed in range(5):
        game = Game(20, seed)
        rewards = game.play(Favor(clients=20, budget=4, seed=seed), 100)
        best = np.sort(game.worth)[-4:].mean()
        ahead.append((np.mean(rewards[-30:]) - game.worth.mean()) / (best - game.worth.mean()))
    assert np.mean(ahead) > 0.35  # of the way from random to the best; 0 for one that learns nothing


def test_the_k_highest_q_values_are_elected_but_for_explored_places() -> None:
    selector = Favor(clients=12, budget=3, exploration=0.0, seed=1)
    Game(12, 1).play(selector, 8)
    values = selector.q_values
    selection = selector.ask([client for client in range(12) if client != int(values.argmax())])
    assert selection.cohort == tuple(sorted(np.argsort(-values)[1:4].tolist()))
    assert selection.indices == tuple(values[list(selection.cohort)].tolist())
    explored = 0
    for seed in range(200):
        other = Favor.restore(json.loads(json.dumps(selector.state() | {"open": None, "slot": seed + 8})))
        other._exploration = 0.5
        explored += len(set(other.ask().cohort) - set(np.argsort(-values)[:3].tolist()))
    assert 150 < explored < 300  # half of 600 places, a few of which fall on the best


def test_state_reward_and_target_are_worked_out_by_hand() -> None:
    selector = Favor(clients=4, budget=2, target=0.8, sharpness=16.0, components=2, seed=1)
    game = Game(4, 5)
    game.play(selector, 2)  # the cold start
    first, loadings = selector._first.rows.copy(), selector._loadings
    assert loadings is not None
    assert selector._base[1:] == pytest.approx(first @ loadings) and selector._base[0] == pytest.approx(
        (first @ loadings).mean(axis=0)
    )
    selection = selector.ask()
    one, other = selection.cohort
    updates = np.full((4, UPDATE_SIZE), np.nan)
    updates[one] = game.kinds[one]
    selector.tell(selection, Feedback(reward=0.55, updates=updates, sizes=[10.0, 20.0, 30.0, 40.0]))
    (kept,) = selector._slots
    assert kept.reward == pytest.approx(16.0 ** (0.55 - 0.8) - 1.0) == pytest.approx(-0.5)
    assert selector._state[1 + one] == pytest.approx(updates[one] @ loadings)
    assert selector._state[1 + other] == pytest.approx(first[other] @ loadings)  # it did not upload
    assert selector._state[0] == pytest.approx(updates[one] @ loadings)
    both = selector.ask()
    updates = np.where(np.isin(np.arange(4), both.cohort)[:, None], game.kinds, np.nan)
    selector.tell(both, Feedback(reward=0.6, updates=updates, sizes=[10.0, 20.0, 30.0, 40.0]))
    members, weights = list(both.cohort), np.array([10.0, 20.0, 30.0, 40.0])[list(both.cohort)]
    expected = (weights[:, None] * (updates[members] @ loadings)).sum(axis=0) / weights.sum()
    assert selector._state[0] == pytest.approx(expected)


def test_the_memory_is_bounded_and_the_state_before_it_moves_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedelect.selectors.literature.favor._MEMORY", 5)
    long, selector = Game(6, 1), Favor(clients=6, budget=2, seed=1)
    long.play(selector, 14)
    assert len(selector._slots) == 5
    restored = Favor.restore(json.loads(json.dumps(selector.state())))
    assert (restored._state == selector._state).all()
    assert (restored.q_values == selector.q_values).all()


def test_the_target_network_lags_behind() -> None:
    selector = Favor(clients=6, budget=2, seed=1)
    game, first = Game(6, 1), selector._copy.outer
    game.play(selector, 3 + 9)  # cold start, and nine slots
    assert (selector._copy.outer == first).all() and (selector._network.outer != first).any()
    game.play(selector, 1)
    assert (selector._copy.outer == selector._network.outer).all()


@pytest.mark.parametrize("wrong", [{"components": 65}, {"hidden": 0}, {"sharpness": 0.5}, {"exploration": 1.5}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Favor(clients=6, budget=2, seed=1, **wrong)
