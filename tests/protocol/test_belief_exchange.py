"""One peer's rounds: in step, whatever the order; equal to the dense form to the bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.equations.beliefs import local_field, settle
from fedelect.protocol.belief_exchange import BeliefExchange
from fedelect.seeds import stream


def ring_exchange(*, rounds: int = 3, damping: float = 0.0, opinion: float = 0.8) -> BeliefExchange:
    return BeliefExchange((1, 4), np.array([0.5, -0.7]), rounds=rounds, damping=damping, opinion=opinion)


def test_round_one_goes_out_at_once_and_each_later_round_waits_for_all_neighbours() -> None:
    exchange = ring_exchange()
    assert [(number, to) for number, to, _ in exchange.start()] == [(1, 1), (1, 4)]
    assert exchange.missing() == (1, 4)
    assert exchange.receive(1, 4, 0.2) == []
    assert exchange.missing() == (1,)
    assert [(number, to) for number, to, _ in exchange.receive(1, 1, -0.1)] == [(2, 1), (2, 4)]


def test_a_neighbour_one_round_ahead_is_kept_until_its_turn() -> None:
    early, orderly = ring_exchange(), ring_exchange()
    for exchange in (early, orderly):
        exchange.start()
    early.receive(1, 1, 0.1)
    assert early.receive(2, 1, 0.3) == []
    orderly.receive(1, 1, 0.1)
    sent = early.receive(1, 4, 0.2)
    assert sent == orderly.receive(1, 4, 0.2)
    orderly.receive(2, 1, 0.3)
    assert early.receive(2, 4, 0.4) == orderly.receive(2, 4, 0.4)


def test_round_two_may_overtake_round_one() -> None:
    exchange = ring_exchange()
    exchange.start()
    assert exchange.receive(2, 1, 0.3) == []
    assert exchange.receive(1, 4, 0.2) == []
    assert exchange.receive(2, 4, 0.2) == []
    sent = exchange.receive(1, 1, 0.1)
    assert [number for number, _, _ in sent] == [2, 2, 3, 3]


def test_repeated_and_bygone_messages_change_nothing() -> None:
    exchange = ring_exchange()
    exchange.start()
    exchange.receive(1, 1, 0.1)
    assert exchange.receive(1, 1, 0.1) == []
    exchange.receive(1, 4, 0.2)
    assert exchange.receive(1, 4, 0.9) == []  # round 1 is over, whatever it says
    assert exchange.missing() == (1, 4)


def test_the_first_message_of_a_round_stands() -> None:
    exchange, twice = ring_exchange(rounds=1), ring_exchange(rounds=1)
    for one in (exchange, twice):
        one.start()
        one.receive(1, 1, 0.1)
    assert twice.receive(1, 1, 0.2) == []  # it may have crashed and begun again: no accusation
    for one in (exchange, twice):
        one.receive(1, 4, 0.3)
    assert exchange.belief == twice.belief


def test_a_neighbour_that_went_on_without_us_says_nothing_we_can_use() -> None:
    exchange = ring_exchange()
    exchange.start()
    assert exchange.receive(3, 1, 0.1) == []
    assert exchange.missing() == (1, 4)


def test_a_neighbour_that_has_gone_counts_as_silent_from_then_on() -> None:
    exchange, quiet = ring_exchange(), ring_exchange()
    for one in (exchange, quiet):
        one.start()
        one.receive(1, 1, 0.1)
    quiet.receive(1, 4, 0.0)
    assert exchange.missing() == (4,)
    assert [number for number, _, _ in exchange.forgo(4)] == [2, 2]
    assert exchange.receive(2, 4, 0.9) == []  # back again, too late
    for number, value in ((2, 0.3), (3, 0.4)):
        exchange.receive(number, 1, value)
        quiet.receive(number, 4, 0.0)
        quiet.receive(number, 1, value)
    assert exchange.done and quiet.done
    assert exchange.belief == quiet.belief
    assert [number for number, _, _ in exchange.unacknowledged(4)] == [2, 3]


def test_what_a_neighbour_has_not_shown_to_have_is_at_most_the_last_two_rounds() -> None:
    exchange = ring_exchange()
    sent = {(number, to): value for number, to, value in exchange.start()}
    assert exchange.unacknowledged(1) == [(1, 1, sent[1, 1])]
    exchange.receive(1, 1, 0.1)
    exchange.receive(2, 1, 0.1)  # 1 has our round 1
    assert exchange.unacknowledged(1) == []
    sent |= {(number, to): value for number, to, value in exchange.receive(1, 4, 0.1)}
    assert exchange.unacknowledged(1) == [(2, 1, sent[2, 1])]
    assert exchange.unacknowledged(4) == [(1, 4, sent[1, 4]), (2, 4, sent[2, 4])]


def test_with_no_neighbours_the_belief_is_the_evidence_at_once() -> None:
    exchange = BeliefExchange((), np.zeros(0), rounds=4, damping=0.0, opinion=0.5)
    assert exchange.start() == []
    assert exchange.done
    assert exchange.belief == pytest.approx(0.25)
    assert exchange.residual == 0.0


@given(st.integers(0, 60), st.sampled_from([0.0, 0.4]), st.integers(1, 6))
def test_exchanges_wired_together_equal_the_dense_form_to_the_bit(number: int, damping: float, rounds: int) -> None:
    rng = stream(number, "wired")
    clients = int(rng.integers(2, 9))
    edges = [(i, j) for i in range(clients) for j in range(i + 1, clients) if rng.random() < 0.6]
    couplings = rng.normal(size=len(edges))
    opinions = np.where(rng.random(clients) < 0.2, np.nan, rng.random(clients))
    near: list[dict[int, float]] = [{} for _ in range(clients)]
    for (i, j), coupling in zip(edges, couplings.tolist(), strict=True):
        near[i][j] = near[j][i] = coupling
    exchanges = [
        BeliefExchange(
            sorted(links),
            np.array([links[n] for n in sorted(links)]),
            rounds=rounds,
            damping=damping,
            opinion=float(opinion),
        )
        for links, opinion in zip(near, opinions, strict=True)
    ]
    in_flight = [(n, *outgoing) for n, exchange in enumerate(exchanges) for outgoing in exchange.start()]
    while in_flight:
        sender, number_, receiver, value = in_flight.pop(int(rng.integers(len(in_flight))))
        in_flight += [(receiver, *out) for out in exchanges[receiver].receive(number_, sender, value)]
    settling = settle(local_field(opinions), edges, couplings, rounds=rounds, damping=damping)
    assert all(exchange.done for exchange in exchanges)
    assert [exchange.belief for exchange in exchanges] == settling.beliefs.tolist()
    assert max(exchange.residual for exchange in exchanges) == settling.residuals[-1]


def test_no_opinion_still_gives_a_belief() -> None:
    exchange = BeliefExchange((1,), np.array([0.5]), rounds=1, damping=0.0, opinion=math.nan)
    ((_, _, value),) = exchange.start()
    assert value == 0.0
    exchange.receive(1, 1, 0.3)
    assert exchange.belief == pytest.approx(1 / (1 + math.exp(-0.6)))
