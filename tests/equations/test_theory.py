"""Bounds and conditions beside literal transcriptions and hand-worked numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.regret_theory import corollary_1, theorem_1, theorem_2, theorem_3

from fedelect.equations.beliefs import Settled, path_loss_coupling, settle
from fedelect.equations.theory import (
    BELIEFS_SETTLED,
    EXPLORATION_IS_ROOT_TWO,
    REWARDS_IGNORE_COHORT,
    STATIONARY_REWARDS,
    bp_ucb_complexity,
    bp_ucb_regret_bound,
    convergence,
    largest_distance_km,
    quick_init_complexity,
    quick_init_regret_bound,
)
from fedelect.errors import BudgetError, ConfigurationError
from fedelect.seeds import stream

gaps = st.tuples(st.floats(0.01, 0.5), st.floats(0.0, 0.5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.integers(1, 9), st.data(), st.integers(1, 5000), gaps)
def test_regret_bounds_equal_their_transcriptions(
    clients: int, data: st.DataObject, slots: int, gap: tuple[float, float]
) -> None:
    budget = data.draw(st.integers(1, clients))
    smallest, largest = gap
    first = quick_init_regret_bound(
        clients=clients, budget=budget, slots=slots, smallest_gap=smallest, largest_gap=largest
    )
    third = bp_ucb_regret_bound(clients=clients, slots=slots, smallest_gap=smallest, largest_gap=largest)
    assert first.value == pytest.approx(theorem_1(clients, budget, slots, smallest, largest), rel=1e-12)
    assert third.value == pytest.approx(theorem_3(clients, slots, smallest, largest), rel=1e-12)
    for bound in (first, third):
        assert bound.ceiling == pytest.approx(slots * largest)
        assert bound.vacuous == (bound.value >= bound.ceiling)


def test_the_papers_bounds_are_vacuous_at_its_own_horizon() -> None:
    first = quick_init_regret_bound(clients=20, budget=5, slots=500, smallest_gap=0.01, largest_gap=0.4)
    third = bp_ucb_regret_bound(clients=20, slots=500, smallest_gap=0.01, largest_gap=0.4)
    assert first.vacuous and third.vacuous
    assert (first.theorem, third.theorem) == ("Theorem 1", "Theorem 3")


def test_a_bound_can_say_something_by_hand() -> None:
    # one client, gap 1: 8 ln T + pi^2 / 3 + 1 against T
    bound = bp_ucb_regret_bound(clients=1, slots=1000, smallest_gap=1.0, largest_gap=1.0)
    assert bound.value == pytest.approx(8 * 6.907755279 + 3.289868134 + 1)
    assert bound.ceiling == 1000
    assert not bound.vacuous
    assert bp_ucb_regret_bound(clients=1, slots=1, smallest_gap=1.0, largest_gap=1.0).vacuous


def test_more_arms_than_floats_can_hold_give_an_infinite_bound() -> None:
    bound = quick_init_regret_bound(clients=3000, budget=1500, slots=10, smallest_gap=0.1, largest_gap=0.2)
    assert bound.value == math.inf
    assert bound.vacuous


def test_bounds_carry_their_conditions() -> None:
    first = quick_init_regret_bound(clients=4, budget=2, slots=9, smallest_gap=0.1, largest_gap=0.2).conditions
    third = bp_ucb_regret_bound(clients=4, slots=9, smallest_gap=0.1, largest_gap=0.2).conditions
    for conditions in (first, third):
        assert STATIONARY_REWARDS in conditions
        assert EXPLORATION_IS_ROOT_TWO in conditions
    assert {REWARDS_IGNORE_COHORT, BELIEFS_SETTLED} <= set(third)
    assert "mu^2 = 2" in EXPLORATION_IS_ROOT_TWO


def test_the_steps_of_the_proof_need_mu_squared_two() -> None:
    """8 ln T / R^2 pulls make 2 mu sqrt(ln T / s) <= R iff mu^2 <= 2; sum 2 t^(2 - 2 mu^2) <= pi^2 / 3 iff >= 2."""

    def pulls_suffice(squared: float) -> bool:
        gap, log_slots = 0.3, math.log(400)
        return 2 * math.sqrt(squared * log_slots / (8 * log_slots / gap**2)) <= gap * (1 + 1e-12)

    def tail_fits(squared: float) -> bool:
        return 2 * math.fsum(float(t) ** (2 - 2 * squared) for t in range(1, 20000)) <= math.pi**2 / 3

    assert pulls_suffice(2.0) and tail_fits(2.0)
    assert not pulls_suffice(2.01)
    assert not tail_fits(1.99)


@pytest.mark.parametrize(("smallest", "largest"), [(0.0, 1.0), (-0.1, 1.0), (0.5, 0.4), (0.1, math.inf)])
def test_gaps_that_make_no_sense_are_refused(smallest: float, largest: float) -> None:
    with pytest.raises(ConfigurationError, match="gaps"):
        bp_ucb_regret_bound(clients=3, slots=5, smallest_gap=smallest, largest_gap=largest)


def test_horizons_and_budgets_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="slots"):
        bp_ucb_regret_bound(clients=3, slots=0, smallest_gap=0.1, largest_gap=0.2)
    with pytest.raises(BudgetError):
        quick_init_regret_bound(clients=3, budget=4, slots=5, smallest_gap=0.1, largest_gap=0.2)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    clients = draw(st.integers(1, 9))
    coordinate = st.floats(0, 2).map(lambda x: round(x, 3))
    positions = draw(st.lists(st.tuples(coordinate, coordinate), min_size=clients, max_size=clients))
    pairs = [(i, j) for i in range(clients) for j in range(i + 1, clients)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return positions, edges


@given(worlds(), st.sampled_from([1e-3, 0.2, -0.7]), st.sampled_from([1.0, 3.7]))
def test_convergence_conditions_equal_their_transcriptions(
    world: tuple[list[tuple[float, float]], list[tuple[int, int]]], scale: float, exponent: float
) -> None:
    positions, edges = world
    lengths = np.array([math.dist(positions[i], positions[j]) for i, j in edges])
    couplings = path_loss_coupling(lengths, scale=scale, exponent=exponent)
    report = convergence(
        edges,
        couplings,
        clients=len(positions),
        positions_km=np.array(positions),
        scale=scale,
        exponent=exponent,
    )
    assert report.corollary.figure == pytest.approx(corollary_1(edges, couplings.tolist(), len(positions)), abs=1e-12)
    assert report.theorem is not None and report.theorem_as_printed is not None
    assert report.theorem.figure == pytest.approx(theorem_2(positions, scale, exponent), abs=1e-12)
    assert report.theorem_as_printed.figure == pytest.approx(theorem_2(positions, 1.0, exponent), abs=1e-12)
    # What Theorem 2 promises, Corollary 1 promises too.
    assert report.corollary.figure <= report.theorem.figure + 1e-12


def test_a_star_by_hand() -> None:
    # Centre 0 with three links: leave out the weakest, tanh 0.1; what is left is tanh 0.5 + tanh 0.3.
    report = convergence([(0, 1), (0, 2), (0, 3)], np.array([0.5, -0.1, 0.3]), clients=4)
    assert report.corollary.figure == pytest.approx(0.4621171573 + 0.2913126125)
    assert report.corollary.holds
    assert report.theorem is None and report.theorem_as_printed is None


def test_a_condition_holds_strictly_below_one_only() -> None:
    triangle, strong = [(0, 1), (0, 2), (1, 2)], np.full(3, 100.0)
    report = convergence(triangle, strong, clients=3)
    assert report.corollary.figure == 1.0
    assert not report.corollary.holds
    assert any("not necessary" in condition for condition in report.corollary.conditions)


def test_the_papers_network_meets_the_theorem_with_c_but_not_as_printed() -> None:
    positions = stream(1, "square").random((20, 2))
    edges = [(n, n + 1) for n in range(19)]
    lengths = np.hypot(*(positions[:-1] - positions[1:]).T)
    couplings = path_loss_coupling(lengths, scale=1e-3, exponent=3.7)
    report = convergence(edges, couplings, clients=20, positions_km=positions, scale=1e-3, exponent=3.7)
    assert report.theorem is not None and report.theorem_as_printed is not None
    assert report.theorem.holds
    assert not report.theorem_as_printed.holds


@given(st.integers(0, 40))
def test_where_the_corollary_holds_messages_settle(number: int) -> None:
    rng = stream(number, "contracting")
    pairs = [(i, j) for i in range(7) for j in range(i + 1, 7) if rng.random() < 0.5]
    couplings = rng.uniform(-0.3, 0.3, len(pairs))
    if convergence(pairs, couplings, clients=7).corollary.figure < 0.9:
        settling = settle(rng.normal(size=7), pairs, couplings, rounds=400, tolerance=1e-9)
        assert isinstance(settling.outcome, Settled)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=25))
def test_the_largest_distance_is_over_all_pairs(points: list[tuple[int, int]]) -> None:
    expected = max(math.dist(one, other) for one in points for other in points)
    assert largest_distance_km(np.array(points, dtype=np.float64)) == pytest.approx(expected)


def test_couplings_and_positions_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="couplings has shape"):
        convergence([(0, 1)], np.zeros(2), clients=2)
    for bad in (np.zeros((0, 2)), np.zeros((3, 3)), np.zeros(2), np.array([[0.0, math.nan]])):
        with pytest.raises(ConfigurationError, match="positions_km"):
            largest_distance_km(bad)


def test_complexities_by_hand() -> None:
    # |A| = C(4, 2) = 6, T = 10, B = 3, E = 5, D = 7
    first = quick_init_complexity(clients=4, budget=2, slots=10, batch=3, epochs=5, samples=7)
    assert first.operations == 60 + 360 + 10 * 2 * 3 * 5 + 4 * 7 * 10
    assert first.simplified == 360 + 280
    second = bp_ucb_complexity(clients=4, budget=2, slots=10, batch=3, epochs=5, samples=7)
    assert second.operations == 640 + 160 + 280 + 80 + 300
    assert second.simplified == 640 + 280
    assert first.conditions and second.conditions
