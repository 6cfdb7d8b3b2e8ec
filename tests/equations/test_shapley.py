"""GTG-Shapley against the Shapley value by its definition."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.selectors.literature.vectors import load_vectors

from fedelect.equations.shapley import ORDERS_EACH, SetValue, gtg_shapley, guided_orders, truncated_shapley
from fedelect.seeds import stream

Game = dict[tuple[int, ...], float]


def subsets(members: Sequence[int]) -> list[tuple[int, ...]]:
    return [chosen for size in range(len(members) + 1) for chosen in itertools.combinations(members, size)]


def exact_shapley(game: Game, members: int) -> list[float]:
    """Shapley's formula: weighted marginal gains over all sets without the member."""
    values = []
    for member in range(members):
        others = [one for one in range(members) if one != member]
        total = 0.0
        for chosen in subsets(others):
            weight = math.factorial(len(chosen)) * math.factorial(members - len(chosen) - 1) / math.factorial(members)
            total += weight * (game[tuple(sorted((*chosen, member)))] - game[chosen])
        values.append(total)
    return values


@st.composite
def games(draw: st.DrawFn) -> tuple[Game, int]:
    members = draw(st.integers(1, 4))
    return {chosen: draw(st.floats(-1.0, 1.0)) for chosen in subsets(range(members))}, members


@given(games())
def test_without_truncation_and_with_all_orders_it_is_the_shapley_value(case: tuple[Game, int]) -> None:
    game, members = case
    orders = itertools.permutations(range(members))
    found = truncated_shapley(game.__getitem__, members, orders, within=0.0, between=0.0, tolerance=0.0)
    assert found == pytest.approx(exact_shapley(game, members), abs=1e-12)


@given(games(), st.integers(1, 40), st.sampled_from([0.0, 0.05, 0.5]))
def test_contributions_sum_to_what_all_gained_but_for_the_truncation(
    case: tuple[Game, int], count: int, within: float
) -> None:
    game, members = case
    orders = itertools.islice(guided_orders(members, stream(1, "orders")), count)
    found = truncated_shapley(game.__getitem__, members, orders, within=within, between=0.0, tolerance=0.0)
    gained = game[tuple(range(members))] - game[()]
    assert abs(found.sum() - gained) <= within + 1e-12


@given(games())
def test_every_set_is_scored_once(case: tuple[Game, int]) -> None:
    game, members = case
    scored: list[tuple[int, ...]] = []

    def value(chosen: tuple[int, ...]) -> float:
        scored.append(chosen)
        return game[chosen]

    gtg_shapley(value, members, stream(2, "orders"))
    assert len(scored) == len(set(scored)) and set(scored) <= set(game)


def test_a_round_that_gains_nothing_costs_two_scores_and_gives_nobody_anything() -> None:
    scored = []

    def value(chosen: tuple[int, ...]) -> float:
        scored.append(chosen)
        return 0.5 + 0.3 * (len(chosen) == 1) + 0.0009 * (len(chosen) == 3)

    assert gtg_shapley(value, 3, stream(1, "orders")).tolist() == [0.0, 0.0, 0.0]
    assert scored == [(), (0, 1, 2)]


def test_members_after_the_one_that_reaches_the_whole_gain_nothing_and_cost_nothing() -> None:
    """Member 0 alone is worth as much as all; in an order that it begins, nobody else is scored."""
    scored = []

    def value(chosen: tuple[int, ...]) -> float:
        scored.append(chosen)
        return float(0 in chosen)

    orders = [(0, 1, 2, 3), (0, 3, 2, 1)]
    assert truncated_shapley(value, 4, orders).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert scored == [(), (0, 1, 2, 3), (0,)]


def additive(worth: Sequence[float]) -> SetValue:
    return lambda chosen: sum(worth[member] for member in chosen)


def test_an_additive_game_gives_everyone_its_worth_and_stops_early() -> None:
    drawn = itertools.count()
    orders = (order for order, _ in zip(guided_orders(5, stream(3, "orders")), drawn, strict=False))
    worth = [0.3, -0.2, 0.1, 0.05, 0.4]
    assert truncated_shapley(additive(worth), 5, orders) == pytest.approx(worth)
    assert next(drawn) <= 31  # converged as soon as it was looked at


def test_the_estimate_is_near_the_exact_value_for_ten_members() -> None:
    rng = np.random.default_rng(1)
    worth, pairs = rng.uniform(0.0, 0.1, 10), rng.uniform(-0.02, 0.02, (10, 10))

    def value(chosen: tuple[int, ...]) -> float:
        own = list(chosen)
        return float(worth[own].sum() + pairs[np.ix_(own, own)].sum())

    exact = worth + (pairs + pairs.T).sum(axis=1) / 2.0
    found = gtg_shapley(value, 10, stream(4, "orders"))
    assert np.abs(found - exact).max() < 0.02
    assert found.sum() == pytest.approx(value(tuple(range(10))), abs=1e-3)


@given(st.integers(1, 7))
def test_guided_orders_are_permutations_that_everyone_begins_equally_often(members: int) -> None:
    orders = list(itertools.islice(guided_orders(members, stream(5, "orders")), 3 * members))
    assert all(sorted(order) == list(range(members)) for order in orders)
    assert [order[0] for order in orders] == list(range(members)) * 3


def test_a_game_that_does_not_converge_ends() -> None:
    """Of two members each alone is worth nothing like what both are worth; estimates of 0 never settle relatively."""
    calls = itertools.count()

    def value(chosen: tuple[int, ...]) -> float:
        next(calls)
        return [0.0, 1.0, -1.0, 0.5][len(chosen)]

    found = gtg_shapley(value, 3, stream(6, "orders"))
    assert np.isfinite(found).all() and next(calls) == 8 <= ORDERS_EACH


def test_nobody_contributes_nothing() -> None:
    assert gtg_shapley(lambda chosen: 0.0, 0, stream(1, "orders")).shape == (0,)


@pytest.mark.parametrize("game", load_vectors("gtg_shapley")["games"], ids=lambda game: str(game["kind"]))
def test_estimates_are_those_of_the_public_code_of_greedyfed(game: dict[str, Any]) -> None:
    def value(chosen: tuple[int, ...]) -> float:
        found: float = game["values"][",".join(map(str, chosen))]
        return found

    found = truncated_shapley(value, game["members"], game["orders"], within=1e-4, between=1e-4, tolerance=0.0)
    assert found == pytest.approx(game["contributions"], abs=1e-8)
