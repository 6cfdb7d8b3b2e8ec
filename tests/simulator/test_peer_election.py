"""Two ways, one answer: peers that exchange messages, and BP-UCB over dense beliefs."""

import json
import math
from typing import Any

import numpy as np
import pytest
from tests.simulator.peer_world_kit import BAD_LINKS, opinions_of, world

from fedelect.analytics import democratized_feedback
from fedelect.equations.beliefs import local_field, settle
from fedelect.errors import (
    AvailabilityError,
    ConfigurationError,
    FeedbackError,
    MissingSignalError,
    NoElection,
    StateError,
)
from fedelect.protocol import Admission, CertificateChain, KeyedHashVerifier, State
from fedelect.seeds import stream
from fedelect.selectors import BpUcb
from fedelect.simulator import LinkConditions, PeerElection, specify_selectors
from fedelect.vocabulary import Feedback, Selection


@pytest.mark.parametrize("reading", ["ising", "evidence"])
@pytest.mark.parametrize("conditions", [LinkConditions(), BAD_LINKS], ids=["calm", "bad"])
def test_peers_settle_the_dense_beliefs_and_elect_the_same_cohorts_to_the_bit(
    reading: str, conditions: LinkConditions
) -> None:
    place = world(reading=reading, damping=0.1)
    peers = PeerElection.from_scenario(place, seed=5, conditions=conditions)
    dense = BpUcb(clients=9, budget=4, seed=5)
    for slot in range(1, 26):
        selection = peers.ask()
        assert selection == dense.ask()  # cohort and indices, to the last bit
        if slot in (3, 11):
            peers.abandon(selection)
            dense.abandon(selection)
            continue
        opinions = opinions_of(slot, 9)
        feedback, exchange = democratized_feedback(place, opinions)
        peers.tell(selection, Feedback(opinions=opinions))
        dense.tell(selection, feedback)
        last = peers.last_exchange
        assert last is not None and feedback.beliefs is not None
        np.testing.assert_array_equal(last.beliefs, feedback.beliefs)
        assert (last.slot, last.exchange.rounds) == (slot, exchange.rounds)
        assert (last.exchange.residual, last.exchange.outcome) == (exchange.residual, exchange.outcome)
        assert (last.lost > 0) == (conditions is BAD_LINKS)
        assert last.skipped is None


@pytest.mark.parametrize(("clients", "budget"), [(1, 1), (2, 1), (5, 5), (7, 3)])
def test_edge_cases_of_budget_and_size(clients: int, budget: int) -> None:
    place = world(clients=clients, budget=budget, neighbours=1)
    peers, dense = PeerElection.from_scenario(place, seed=2), BpUcb(clients=clients, budget=budget, seed=2)
    for slot in range(1, 8):
        selection = peers.ask()
        assert selection == dense.ask()
        opinions = opinions_of(slot, clients)
        peers.tell(selection, Feedback(opinions=opinions))
        dense.tell(selection, democratized_feedback(place, opinions)[0])


def test_slots_abandoned_before_any_survey_elect_as_the_dense_form_does() -> None:
    place = world()
    peers, dense = PeerElection.from_scenario(place, seed=3), BpUcb(clients=9, budget=4, seed=3)
    for _ in range(6):
        selection = peers.ask()
        assert selection == dense.ask()
        peers.abandon(selection)
        dense.abandon(selection)


def test_availability_restricts_the_election_as_in_the_dense_form() -> None:
    place = world()
    peers, dense = PeerElection.from_scenario(place, seed=8), BpUcb(clients=9, budget=4, seed=8)
    for slot in range(1, 14):
        here = sorted(stream(8, "here", slot).permutation(9)[:6].tolist())
        selection = peers.ask(here)
        assert selection == dense.ask(here)
        assert set(selection.cohort) <= set(here)
        opinions = opinions_of(slot, 9)
        peers = PeerElection.restore(json.loads(json.dumps(peers.state())))
        peers.tell(selection, Feedback(opinions=opinions))
        dense.tell(selection, democratized_feedback(place, opinions)[0])
    with pytest.raises(AvailabilityError):
        peers.ask([0, 1])


def election(**changes: Any) -> PeerElection:
    place = world()
    return PeerElection.from_scenario(place, seed=6, **changes)


def dead_link_election() -> PeerElection:
    """All links lose all messages."""
    return PeerElection(
        clients=4,
        budget=2,
        seed=1,
        edges=[[0, 1], [1, 2], [2, 3]],
        couplings=[0.1, 0.1, 0.1],
        rounds=2,
        slot_s=3.0,
        conditions=LinkConditions(loss=1.0),
    )


def test_when_peers_cannot_agree_ask_says_why_and_the_slot_is_used_up() -> None:
    peers = dead_link_election()
    for slot in (1, 2, 3):
        with pytest.raises(
            NoElection, match=f"slot {slot}: 4 of 4 clients did not agree .* belief messages of round 1"
        ):
            peers.ask()
        last = peers.last_exchange
        assert last is not None and last.skipped is not None
        assert last.exchange.virtual_seconds == 3.0
    assert peers.state()["slot"] == 3
    assert peers.certificates == ()


def test_after_a_skipped_slot_the_next_election_uses_the_same_opinions() -> None:
    bad, good = election(slot_s=0.5, resend_s=0.1, conditions=LinkConditions(loss=0.1)), election()
    first = good.ask()
    good.tell(first, Feedback(opinions=opinions_of(1, 9)))
    reasons: list[str] = []
    asks: list[Selection] = []
    while len(asks) < 3:
        try:
            asks.append(bad.ask())
            bad.tell(asks[-1], Feedback(opinions=opinions_of(1, 9)))
        except NoElection as reason:
            reasons.append(str(reason))
            assert len(reasons) < 200
            _same_history_everywhere(bad)
    assert reasons
    assert asks[0].cohort == first.cohort
    assert asks[1].cohort == good.ask().cohort  # the cold start goes on where it was
    assert [one.slot for one in bad.certificates[:3]] == [selection.slot for selection in asks]


def _same_history_everywhere(peers: PeerElection) -> None:
    assert len({peer.chain.head for peer in peers._peers}) == 1


def test_a_certificate_that_only_some_have_seen_stands_and_the_others_get_it() -> None:
    # A deadline between the first and the last decision: some peers have the certificate, others give up.
    partly = 0
    for millis in range(200, 700, 10):
        peers = election(resend_s=0.05, slot_s=millis / 1000, conditions=LinkConditions(longest_delay_s=0.05))
        try:
            selection = peers.ask()
        except NoElection:
            continue
        _same_history_everywhere(peers)
        assert peers.certificates[-1].cohort == selection.cohort
        partly += any(peer.state is State.SKIPPED for peer in peers._peers)
    assert partly > 0


def test_every_slot_is_certified_and_the_chain_is_what_a_server_would_accept() -> None:
    peers = election(max_faulty=0)
    asks = []
    for slot in range(1, 8):
        asks.append(peers.ask())
        peers.tell(asks[-1], Feedback(opinions=opinions_of(slot, 9)))
    server = CertificateChain(peers._config, KeyedHashVerifier())
    certificates = peers.certificates[:7]
    assert [server.add(one) for one in certificates] == [Admission.HEAD] * 7
    assert [(one.slot, one.cohort) for one in certificates] == [
        (selection.slot, selection.cohort) for selection in asks
    ]


def test_twenty_peers_ready_for_a_byzantine_one_elect_what_the_dense_form_elects() -> None:
    place = world(clients=20, budget=5, neighbours=6, rounds=10)
    ring = sorted({(0, 19)} | {(int(i), int(j)) for i, j in place.edges})
    peers = PeerElection(
        clients=20,
        budget=5,
        seed=4,
        edges=ring,
        couplings=np.full(len(ring), 0.1),
        rounds=10,
        max_faulty=1,
        byzantine=True,
    )
    dense = BpUcb(clients=20, budget=5, seed=4)
    for slot in range(1, 6):
        selection = peers.ask()
        assert selection == dense.ask()
        opinions = opinions_of(slot, 20)
        beliefs = settle(local_field(opinions), ring, np.full(len(ring), 0.1), rounds=10).beliefs
        peers.tell(selection, Feedback(opinions=opinions))
        dense.tell(selection, Feedback(opinions=opinions, beliefs=beliefs))


@pytest.mark.parametrize("stop_at", [0, 1, 4, 9])
@pytest.mark.parametrize("ask_open", [True, False])
def test_a_restored_election_goes_on_exactly(stop_at: int, ask_open: bool) -> None:
    peers = election(conditions=BAD_LINKS)
    for slot in range(1, stop_at + 1):
        peers.tell(peers.ask(), Feedback(opinions=opinions_of(slot, 9)))
    if ask_open:
        peers.ask()
    again = PeerElection.restore(json.loads(json.dumps(peers.state())))
    assert again.state() == peers.state()
    for slot in range(stop_at + 1, stop_at + 6):
        selection = peers.ask()
        assert again.ask() == selection
        for one in (peers, again):
            one.tell(selection, Feedback(opinions=opinions_of(slot, 9)))
        mine, theirs = peers.last_exchange, again.last_exchange
        assert mine is not None and theirs is not None
        np.testing.assert_array_equal(mine.beliefs, theirs.beliefs)
        assert (mine.exchange, mine.lost) == (theirs.exchange, theirs.lost)


def test_a_skipped_election_restores_as_skipped() -> None:
    peers = dead_link_election()
    with pytest.raises(NoElection):
        peers.ask()
    again = PeerElection.restore(json.loads(json.dumps(peers.state())))
    with pytest.raises(NoElection, match="slot 2"):
        again.ask()


def test_damaged_states_are_refused() -> None:
    peers = election()
    peers.tell(peers.ask(), Feedback(opinions=opinions_of(1, 9)))
    for key, value in (("before", [[1, [0]]]), ("total", "x"), ("available", [99])):
        state = json.loads(json.dumps(peers.state()))
        state["memory"][key] = value
        with pytest.raises(StateError):
            PeerElection.restore(state)


def test_the_record_gets_beliefs_and_how_they_were_settled() -> None:
    peers = election()
    assert (peers.settled, peers.last_exchange) == (None, None)
    peers.tell(peers.ask(), Feedback(opinions=opinions_of(1, 9)))
    assert peers.settled is not None and peers.last_exchange is not None
    beliefs, exchange = peers.settled
    assert np.isfinite(beliefs).all()
    assert exchange.rounds == 4 and exchange.outcome.startswith("after 4 rounds a message still moved")
    assert exchange.messages > 0 and exchange.virtual_seconds is not None and exchange.virtual_seconds > 0
    skipped = dead_link_election()
    with pytest.raises(NoElection):
        skipped.ask()
    assert skipped.settled is not None
    assert skipped.settled[1].outcome.startswith("no cohort: 4 of 4")


def test_opinions_are_needed_and_nothing_else() -> None:
    peers = election()
    selection = peers.ask()
    with pytest.raises(MissingSignalError, match="opinions"):
        peers.tell(selection, Feedback(reward=0.5))
    with pytest.raises(FeedbackError):
        peers.tell(selection, Feedback(opinions=[0.5]))
    assert peers.ask() == selection == Selection(1, selection.cohort)


def test_parameters_that_cannot_work_are_refused() -> None:
    for changes, match in (
        ({"couplings": [0.1]}, "couplings must be"),
        ({"edges": [[0, 1]], "couplings": [0.1]}, "cut off from each other"),
        ({"max_faulty": 1}, "does not survive 1 faulty peers"),
        ({"couplings": [0.1, math.inf]}, "couplings must be"),
        ({"edges": [[0, 1], [1, 9]]}, "outside"),
        ({"budget": 9}, "budget"),
        ({"conditions": {"loss": 2.0}}, "loss"),
    ):
        arguments: dict[str, Any] = {"clients": 3, "budget": 2, "seed": 1, "edges": [[0, 1], [1, 2]]}
        arguments |= {"couplings": [0.1, 0.1]} | changes
        with pytest.raises(ConfigurationError, match=match):
            PeerElection(**arguments)


def test_the_settings_of_an_election_are_parameters_of_the_selector_peers() -> None:
    (spec,) = specify_selectors(["peers:max_faulty=1,byzantine=true"])
    assert spec.parameters == {"max_faulty": 1, "byzantine": True}
