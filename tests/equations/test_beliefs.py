"""Beliefs beside brute force, beside one message at a time, and beside an independent library."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.reference.belief_propagation import (
    Edge,
    exact_beliefs,
    field,
    literal_beliefs,
    literal_messages,
    state_messages,
)
from tests.steps import count_lines

from fedelect.equations.beliefs import (
    RoundsExhausted,
    Settled,
    belief_up,
    directed_links,
    evidence_belief,
    incoming_totals,
    local_field,
    outgoing_messages,
    path_loss_coupling,
    settle,
    update_messages,
)
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints

fields_in_range = st.floats(-3.0, 3.0)
couplings_in_range = st.floats(-1.5, 1.5)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[float], list[Edge], list[float]]:
    clients = draw(st.integers(1, 8))
    edges = [(draw(st.integers(0, child - 1)), child) for child in range(1, clients)]
    fields = draw(st.lists(fields_in_range, min_size=clients, max_size=clients))
    couplings = draw(st.lists(couplings_in_range, min_size=len(edges), max_size=len(edges)))
    return fields, edges, couplings


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[Edge], list[float]]:
    clients = draw(st.integers(1, 7))
    pairs = [(i, j) for i in range(clients) for j in range(i + 1, clients)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    fields = draw(st.lists(fields_in_range, min_size=clients, max_size=clients))
    couplings = draw(st.lists(couplings_in_range, min_size=len(edges), max_size=len(edges)))
    return fields, edges, couplings


@given(trees())
def test_beliefs_on_a_tree_are_the_exact_marginals(case: tuple[list[float], list[Edge], list[float]]) -> None:
    fields, edges, couplings = case
    settling = settle(np.array(fields), edges, np.array(couplings), rounds=len(fields))
    np.testing.assert_allclose(settling.beliefs, exact_beliefs(fields, edges, couplings), rtol=1e-9, atol=1e-12)
    assert isinstance(settling.outcome, Settled)


@given(graphs(), st.integers(1, 6), st.sampled_from([0.0, 0.3, 0.9]))
def test_any_number_of_rounds_equals_one_message_at_a_time(
    case: tuple[list[float], list[Edge], list[float]], rounds: int, damping: float
) -> None:
    fields, edges, couplings = case
    settling = settle(np.array(fields), edges, np.array(couplings), rounds=rounds, damping=damping)
    expected = literal_beliefs(fields, edges, couplings, rounds=rounds, damping=damping)
    np.testing.assert_allclose(settling.beliefs, expected, rtol=1e-9, atol=1e-12)
    assert settling.residuals.shape == (rounds,)


def test_each_directed_message_equals_the_literal_update() -> None:
    edges = [(0, 1), (0, 2), (1, 2), (2, 3)]
    fields, couplings = [0.4, -1.0, 0.2, 0.7], [0.5, -0.3, 0.8, -1.1]
    links = directed_links(np.array(edges), 4)
    strengths = np.tanh(np.array(couplings))[links.links]
    messages = np.zeros(8)
    for rounds in range(1, 5):
        messages = update_messages(messages, np.array(fields), links, strengths, damping=0.25)
        literal = literal_messages(fields, edges, couplings, rounds=rounds, damping=0.25)
        named = dict(zip(zip(links.sources.tolist(), links.targets.tolist(), strict=True), messages, strict=True))
        assert named.keys() == literal.keys()
        for link, value in literal.items():
            assert named[link] == pytest.approx(value, rel=1e-12, abs=1e-14)


def test_directed_links_are_sorted_by_target_then_source_and_know_their_opposite() -> None:
    links = directed_links([[0, 3], [1, 2], [0, 1]], 5)
    assert list(zip(links.targets.tolist(), links.sources.tolist(), strict=True)) == [
        (0, 1),
        (0, 3),
        (1, 0),
        (1, 2),
        (2, 1),
        (3, 0),
    ]
    assert links.links.tolist() == [2, 0, 2, 1, 1, 0]
    np.testing.assert_array_equal(links.sources[links.reverse], links.targets)
    np.testing.assert_array_equal(links.targets[links.reverse], links.sources)


@given(st.lists(st.floats(-20, 20), min_size=3, max_size=30))
def test_sums_run_in_order_of_the_sender_to_the_last_bit(values: list[float]) -> None:
    senders = len(values)
    links = directed_links([(sender, senders) for sender in range(senders)], senders + 1)
    messages = np.zeros(2 * senders)
    messages[links.targets == senders] = values
    total = 0.0
    for value in values:
        total += value
    assert incoming_totals(messages, links)[senders] == total


def test_element_by_element_the_functions_do_not_care_how_long_the_array_is() -> None:
    rng = stream(5, "lengths")
    cavities, strengths, opinions = rng.normal(size=(3, 501)) * [[3.0], [0.3], [0.1]] + [[0.0], [0.0], [0.5]]
    previous = rng.normal(size=501)
    whole = outgoing_messages(cavities, strengths, previous, damping=0.3)
    for size in (1, 2, 3, 5, 8):
        for start in range(0, 480, 37):
            part = slice(start, start + size)
            again = outgoing_messages(cavities[part], strengths[part], previous[part], damping=0.3)
            np.testing.assert_array_equal(again, whole[part])
            np.testing.assert_array_equal(local_field(opinions[part]), local_field(opinions)[part])
            np.testing.assert_array_equal(
                belief_up(cavities[part], previous[part]), belief_up(cavities, previous)[part]
            )
    assert float(local_field(np.array(opinions[7]))) == local_field(opinions)[7]


def test_weakly_coupled_loops_are_close_to_the_exact_marginals_of_an_independent_library() -> None:
    """On a 3 x 3 grid belief propagation leaves out loops; the shortest have four links.

    In the expansion by loops a loop of l links is worth at most t^l, with t the largest tanh|J|. There are four
    squares, and the longer loops add less than as much again while t < 0.25: hence 8 t^4. The couplings matter far
    more than that, so the test would see a wrong one.
    """
    edges = [(r * 3 + c, r * 3 + c + 1) for r in range(3) for c in range(2)]
    edges += [(r * 3 + c, r * 3 + c + 3) for r in range(2) for c in range(3)]
    rng = stream(8, "grid")
    for trial in range(5):
        fields = rng.uniform(-1, 1, 9)
        couplings = rng.uniform(0.1, 0.2, len(edges)) * rng.choice([-1, 1], len(edges))
        exact = _pgmpy_beliefs(fields, edges, couplings)
        np.testing.assert_allclose(exact, exact_beliefs(fields.tolist(), edges, couplings.tolist()), rtol=1e-9)
        settling = settle(fields, edges, couplings, rounds=50, tolerance=1e-12)
        assert isinstance(settling.outcome, Settled), trial
        tolerance = 8 * math.tanh(np.abs(couplings).max()) ** 4
        assert np.abs(settling.beliefs - exact).max() < tolerance
        assert np.abs(belief_up(fields, np.zeros(9)) - exact).max() > 3 * tolerance


def _pgmpy_beliefs(fields: NDArray[np.float64], edges: list[Edge], couplings: NDArray[np.float64]) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns of its own future on import
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteMarkovNetwork

        spins = np.array([-1.0, 1.0])
        model = DiscreteMarkovNetwork([(str(i), str(j)) for i, j in edges])
        for (i, j), coupling in zip(edges, couplings, strict=True):
            model.add_factors(DiscreteFactor([str(i), str(j)], [2, 2], np.exp(coupling * np.outer(spins, spins))))
        for n, value in enumerate(fields):
            model.add_factors(DiscreteFactor([str(n)], [2], np.exp(value * spins)))
        inference = VariableElimination(model)
        tables = [inference.query([str(n)], show_progress=False).values for n in range(len(fields))]
    return [float(table[1] / table.sum()) for table in tables]


@given(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=1, max_size=9))
def test_fields_equal_the_reference_and_no_opinion_is_no_evidence(opinions: list[float]) -> None:
    got = local_field(np.array(opinions))
    np.testing.assert_allclose(got, [field(opinion) for opinion in opinions], rtol=1e-12, atol=1e-15)


def test_fields_of_the_extremes_are_finite_and_hand_worked_values_hold() -> None:
    assert local_field(np.array([0.0, 1.0])) == pytest.approx([-0.5 * math.log(999999), 0.5 * math.log(999999)])
    assert local_field(np.array([math.sqrt(0.5)]))[0] == pytest.approx(0.0, abs=1e-15)
    assert local_field(np.array([math.sqrt(0.8)]))[0] == pytest.approx(0.5 * math.log(4))


def test_without_coupling_the_two_readings_agree() -> None:
    opinions = np.linspace(0.01, 0.99, 12)
    settling = settle(local_field(opinions), [(n, n + 1) for n in range(11)], np.zeros(11), rounds=3)
    np.testing.assert_allclose(settling.beliefs, evidence_belief(opinions), rtol=1e-12)


def test_the_evidence_reading_is_the_opinion_squared_and_keeps_nan() -> None:
    np.testing.assert_array_equal(evidence_belief(np.array([0.5, math.nan, 1.0])), [0.25, math.nan, 1.0])


def test_the_printed_equations_leave_one_half_whatever_the_opinions() -> None:
    edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
    for beliefs in state_messages([0.81, 0.04, 0.25, 0.5], edges, [0.9, 0.8, 0.99, 0.7], rounds=4):
        assert beliefs == pytest.approx((0.5, 0.5))


def test_the_coupling_is_minus_c_times_distance_to_the_beta() -> None:
    lengths = np.array([0.0, 0.5, 1.0, 2.0])
    expected = [0.0, -1e-3 * 0.5**3.7, -1e-3, -1e-3 * 2**3.7]
    assert path_loss_coupling(lengths, scale=1e-3, exponent=3.7) == pytest.approx(expected)


def test_positive_couplings_pull_a_client_without_opinion_towards_its_neighbour() -> None:
    fields = local_field(np.array([0.95, math.nan]))
    together = settle(fields, [(0, 1)], np.array([0.8]), rounds=2).beliefs
    apart = settle(fields, [(0, 1)], np.array([-0.8]), rounds=2).beliefs
    assert together[1] > 0.5 > apart[1]
    assert together[1] + apart[1] == pytest.approx(1.0)


def test_huge_couplings_and_hubs_stay_finite() -> None:
    spokes = 60
    fields = np.full(spokes + 1, 6.9)
    edges = [(0, n) for n in range(1, spokes + 1)]
    for coupling in (1e300, -1e300, 40.0):
        settling = settle(fields, edges, np.full(spokes, coupling), rounds=5)
        assert np.isfinite(settling.beliefs).all()
        assert ((settling.beliefs >= 0) & (settling.beliefs <= 1)).all()
    assert settle(-fields, edges, np.full(spokes, 40.0), rounds=5).beliefs[0] < 1e-200


def test_a_fixed_number_of_rounds_runs_even_when_nothing_moves() -> None:
    settling = settle(np.array([0.3, 0.1]), [(0, 1)], np.array([0.2]), rounds=7)
    assert settling.residuals.size == 7
    assert settling.residuals[-1] == 0.0
    assert settling.outcome == Settled(7, 0.0)
    assert str(settling.outcome) == "settled"


def test_with_a_tolerance_it_stops_at_the_first_round_within_it() -> None:
    ring = [(n, (n + 1) % 6) for n in range(6)]
    fields = np.linspace(-1, 1, 6)
    settling = settle(fields, ring, np.full(6, 0.4), rounds=500, tolerance=1e-6)
    assert isinstance(settling.outcome, Settled)
    assert settling.residuals[-1] <= 1e-6
    assert (settling.residuals[:-1] > 1e-6).all()
    assert settling.outcome.rounds == settling.residuals.size < 500


def test_not_settling_is_a_value_with_advice() -> None:
    triangle = [(0, 1), (0, 2), (1, 2)]
    settling = settle(np.array([0.1, 0.0, -0.1]), triangle, np.full(3, -2.0), rounds=4, tolerance=1e-9)
    assert isinstance(settling.outcome, RoundsExhausted)
    assert settling.outcome.rounds == 4
    assert settling.outcome.residual == settling.residuals[-1] > 1e-9
    assert "raise `rounds`" in settling.outcome.advice
    assert str(settling.outcome) == settling.outcome.advice


def test_heavy_damping_does_not_pass_for_convergence() -> None:
    fields, edges, couplings = np.array([2.0, -1.0]), [(0, 1)], np.array([0.7])
    plain = settle(fields, edges, couplings, rounds=1)
    damped = settle(fields, edges, couplings, rounds=1, damping=0.999)
    assert damped.residuals[0] == pytest.approx(plain.residuals[0])


def test_clients_without_links_keep_their_evidence() -> None:
    settling = settle(local_field(np.array([0.6, 0.9])), [], np.zeros(0), rounds=3)
    assert settling.beliefs == pytest.approx([0.36, 0.81])
    assert settling.outcome == Settled(3, 0.0)


def large_world(clients: int) -> tuple[Floats, Ints, Floats]:
    """Fields, edges and couplings of clients with about eight links each."""
    rng = stream(1, "large")
    pairs = np.sort(rng.integers(clients, size=(4 * clients, 2)), axis=1)
    edges = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return local_field(rng.random(clients)), edges, rng.uniform(-0.1, 0.1, len(edges))


def test_a_hundred_thousand_clients_settle_without_a_loop_over_them() -> None:
    few, many = large_world(1000), large_world(100_000)
    assert count_lines(lambda: settle(*many, rounds=10)) < 2 * count_lines(lambda: settle(*few, rounds=10))
    assert isinstance(settle(*many, rounds=10).outcome, Settled)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1, 2]], "must be an"),
        ([[0.0, 1.0]], "must be an"),
        ([0, 1], "must be an"),
        ([[0, 3]], "outside 0..2"),
        ([[-1, 2]], "outside 0..2"),
        ([[1, 1]], "to itself"),
        ([[0, 1], [1, 0]], "0 and 1 twice|1 and 0 twice"),
    ],
)
def test_edges_that_make_no_graph_are_refused(edges: list[list[float]], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        directed_links(edges, 3)


def test_settings_that_cannot_work_are_refused() -> None:
    fields, edges, couplings = np.zeros(2), [(0, 1)], np.zeros(1)
    with pytest.raises(ConfigurationError, match="rounds"):
        settle(fields, edges, couplings, rounds=0)
    for damping in (1.0, -0.1, math.nan):
        with pytest.raises(ConfigurationError, match="damping"):
            settle(fields, edges, couplings, rounds=1, damping=damping)
    for tolerance in (0.0, -1.0, math.nan):
        with pytest.raises(ConfigurationError, match="tolerance"):
            settle(fields, edges, couplings, rounds=1, tolerance=tolerance)
    for bad in (np.array([0.0, math.nan]), np.zeros((2, 1))):
        with pytest.raises(ConfigurationError, match="fields"):
            settle(bad, edges, couplings, rounds=1)
    for bad in (np.zeros(2), np.array([math.inf])):
        with pytest.raises(ConfigurationError, match="couplings"):
            settle(fields, edges, bad, rounds=1)
