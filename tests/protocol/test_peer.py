"""One peer, call by call: what it sends, when it concludes, what it never signs."""

import math
from dataclasses import replace

import pytest
from tests.protocol.election_kit import (
    BLIND,
    Wired,
    config,
    make_peer,
    statement,
    value,
    vote,
)
from tests.protocol.peer_kit import (
    EVIDENCE,
    FIRST,
    PATHS,
    belief,
    flooding_peer,
    gossip,
    gossips,
    only,
    sent,
    stored,
    voting_peer,
)

from fedelect.protocol import Peer, State
from fedelect.protocol.effects import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    Persist,
    SetDeadline,
    SlotSkipped,
    Wait,
)
from fedelect.protocol.gossip import Relayed
from fedelect.protocol.messages import BeliefMessage
from fedelect.protocol.statements import SignedValue


def test_a_slot_begins_with_two_deadlines_and_round_one_to_each_neighbour() -> None:
    peer = make_peer(PATHS, 1)
    effects = peer.begin_slot(1, 0.5)
    assert only(effects, SetDeadline) == [
        SetDeadline(Deadline(Wait.SLOT, 1), 10.0),
        SetDeadline(Deadline(Wait.RESEND, 1), 0.5),
    ]
    assert [(message.receiver, type(message)) for message in sent(effects)] == [(0, BeliefMessage), (2, BeliefMessage)]
    assert (peer.state, peer.neighbours) == (State.EXCHANGING, (0, 2))


def test_after_the_last_round_the_belief_is_handed_to_the_host() -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    assert len(sent(peer.receive(belief(2, 1)))) == 2
    peer.receive(belief(2, 2))
    (effect,) = peer.receive(belief(0, 2))
    assert isinstance(effect, BeliefSettled)
    assert effect.slot == 1 and 0.0 < effect.belief < 1.0
    assert peer.state is State.SETTLED
    assert peer.receive(belief(0, 2)) == []


def test_under_the_evidence_reading_the_belief_is_there_at_once() -> None:
    for opinion, expected in ((0.5, 0.25), (math.nan, math.nan)):
        peer = make_peer(EVIDENCE, 1)
        (effect,) = only(peer.begin_slot(1, opinion), BeliefSettled)
        assert isinstance(effect, BeliefSettled)
        assert effect.belief == pytest.approx(expected, nan_ok=True)
        assert (peer.slot, peer.state) == (1, State.SETTLED)


def test_nothing_signed_is_sent_before_it_is_stored() -> None:
    peer = make_peer(EVIDENCE, 1)
    peer.begin_slot(1, 0.5)
    effects = peer.propose(math.nan, 0.25, BLIND)
    record = stored(effects)
    assert sent(effects) == []
    assert record == value(EVIDENCE, 1, belief=0.25)
    assert sent(peer.receive(gossip(0, (value(EVIDENCE, 0),), number=1))) == []
    assert [message.entries for message in gossips(peer.deadline_passed(Deadline(Wait.RESEND, 1)))] == [
        (),
        (Relayed(value(EVIDENCE, 0)),),
    ]
    messages = gossips(peer.persisted(record))
    assert [(message.receiver, message.round) for message in messages] == [(0, 1), (2, 1)]
    assert isinstance(record, SignedValue)
    assert all(Relayed(record) in message.entries for message in messages)
    assert peer.persisted(record) == []

    voter, ballot = voting_peer()
    assert not any(message.votes for message in gossips(voter.deadline_passed(Deadline(Wait.RESEND, 1))))
    assert [message.votes for message in gossips(voter.persisted(ballot))] == [(ballot,), (ballot,)]


def test_what_is_stored_too_late_is_never_sent() -> None:
    peer, ballot = voting_peer()
    peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert peer.persisted(ballot) == []


def test_a_quorum_of_equal_votes_decides_and_the_next_slot_builds_on_it() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    assert ballot.statement.cohort == FIRST
    effects = peer.receive(gossip(0, (), (vote(ballot.statement, 0),), number=4))
    assert only(effects, CohortAgreed) == []
    assert [message.receiver for message in gossips(effects)] == [2]  # the vote goes on
    effects = peer.receive(gossip(2, (), (vote(ballot.statement, 3),), number=4))
    (agreed,) = only(effects, CohortAgreed)
    assert isinstance(agreed, CohortAgreed)
    assert (agreed.slot, agreed.cohort, agreed.indices) == (1, FIRST, ())
    assert [client for client, _ in agreed.certificate.signatures] == [0, 1, 3]
    assert Persist(agreed.certificate) in effects
    assert (peer.state, peer.chain.head) == (State.DECIDED, agreed.certificate.identity)
    peer.begin_slot(2, 0.5)
    record = stored(peer.propose(math.nan, 0.25, BLIND))
    assert isinstance(record, SignedValue) and record.previous == agreed.certificate.identity


def test_a_certificate_of_another_map_than_ones_own_decides_too() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    other = statement(EVIDENCE, cohort=(0, 3), hashed=b"\1" * 32)
    votes = tuple(vote(other, n) for n in (0, 2, 3))
    (agreed,) = only(peer.receive(gossip(0, (), votes, number=4)), CohortAgreed)
    assert isinstance(agreed, CohortAgreed) and agreed.cohort == (0, 3)


def test_a_minority_never_decides() -> None:
    wired = Wired(config(), cut=lambda message: (message.sender < 2) != (message.receiver < 2))
    wired.begin(1)
    for _ in range(30):
        wired.deliver()
        for client, peer in enumerate(wired.peers):
            wired.carry_out(client, peer.deadline_passed(Deadline(Wait.RESEND, 1)))
    for client, peer in enumerate(wired.peers):
        wired.carry_out(client, peer.deadline_passed(Deadline(Wait.SLOT, 1)))
    assert wired.agreed == {}
    assert {one.missing for one in wired.skipped.values()} == {(0, 1), (2, 3)}
    assert "3 equal votes, got 2; no vote came from clients 2, 3" in wired.skipped[0].reason


def test_a_single_client_elects_itself_alone() -> None:
    wired = Wired(config(1, (), budget=1))
    wired.begin(1, opinion=0.9)
    assert wired.agreed[0].cohort == (0,)
    wired.means[0] = 0.9
    wired.begin(2, opinion=0.9)
    assert len(wired.agreed[0].indices) == 1


def test_peers_wired_together_elect_slot_after_slot_and_pulls_are_the_certified_elections() -> None:
    wired = Wired(config(max_faulty=1))
    for slot in (1, 2, 5):
        wired.begin(slot)
        wired.deliver()
        assert len({one.certificate.identity for one in wired.agreed.values()}) == 1 and len(wired.agreed) == 4
    assert len(wired.peers[0].chain) == 3
    assert sum(wired.peers[0].chain.pulls) == 6
    assert [one.slot for one in wired.peers[3].chain.certificates] == [1, 2, 5]


def test_hosts_that_say_who_is_there_elect_among_those_and_must_say_the_same() -> None:
    for here in ([0, 2], [0, 1, 2]):
        wired = Wired(config())
        peers = wired.peers

        def settle(client: int, here: list[int] = here, peers: list[Peer] = peers) -> list[Effect]:
            return peers[client].propose(math.nan, 0.5, BLIND, here if client < 2 or len(here) == 3 else [0, 2, 3])

        for peer in peers:
            wired.in_flight.extend(sent(peer.begin_slot(1, 0.5)))
        while wired.in_flight:
            message = wired.in_flight.popleft()
            for effect in peers[message.receiver].receive(message):
                wired.carry_out(
                    message.receiver, settle(message.receiver) if isinstance(effect, BeliefSettled) else [effect]
                )
        assert len(wired.agreed) == (4 if len(here) == 3 else 0)
        assert all(set(one.cohort) <= set(here) for one in wired.agreed.values())


def test_messages_of_the_slot_to_come_wait_for_it() -> None:
    peer = make_peer(PATHS, 1)
    assert peer.receive(belief(0, 1, 0.17)) == []
    assert peer.receive(belief(2, 1, 0.19)) == []
    peer.receive(belief(0, 2))  # nobody who waits for us can be in round 2: not kept
    rounds = [message.round for message in sent(peer.begin_slot(1, 0.5)) if isinstance(message, BeliefMessage)]
    assert rounds == [1, 1, 2, 2]
    early = make_peer(EVIDENCE, 1)
    early.receive(gossip(0, (value(EVIDENCE, 0, slot=2),), number=1, slot=2))
    early.receive(gossip(0, number=0, slot=2))  # older news
    early.receive(gossip(2, (replace(value(EVIDENCE, 3, slot=2), signature=b""),), number=1, slot=2))  # forged
    early.begin_slot(1, 0.5)
    early.deadline_passed(Deadline(Wait.SLOT, 1))
    early.begin_slot(2, 0.5)
    assert set(early.entries) == {0}


def test_at_the_resend_deadline_a_peer_says_again_what_may_be_lost_and_that_it_is_there() -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    peer.receive(belief(0, 2))  # 0 has our round 1
    effects = peer.deadline_passed(Deadline(Wait.RESEND, 1))
    assert [(m.receiver, m.round) for m in sent(effects) if isinstance(m, BeliefMessage)] == [(2, 1)]
    assert [(m.receiver, m.round, m.wants_reply) for m in gossips(effects)] == [(0, 0, True), (2, 0, True)]
    assert effects[-1] == SetDeadline(Deadline(Wait.RESEND, 1), 0.5)


def test_a_neighbour_that_is_silent_for_too_long_is_not_waited_for() -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    settled: list[Effect] = []
    for tick in range(1, 4):
        assert peer.state is State.EXCHANGING
        peer.receive(belief(0, 1))
        peer.receive(belief(0, 2))
        settled = peer.deadline_passed(Deadline(Wait.RESEND, 1))
        assert tick < 4
    assert peer.state is State.SETTLED and len(only(settled, BeliefSettled)) == 1
    peer = flooding_peer()
    for _ in range(3):
        peer.receive(gossip(0, (value(EVIDENCE, 0),), number=4))
        peer.deadline_passed(Deadline(Wait.RESEND, 1))
    assert peer.state is State.CERTIFYING


def test_at_the_slot_deadline_a_peer_says_whom_it_waited_for() -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped) and skipped.missing == (2,)
    assert "client 1 waited 10 s for belief messages of round 1 from neighbours 2" in skipped.reason

    peer = make_peer(EVIDENCE, 1)
    peer.begin_slot(1, 0.5)
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped) and "host to propose" in skipped.reason

    peer = flooding_peer()
    peer.receive(gossip(0, number=1))
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped) and skipped.missing == (2,)
    assert "round 1 of the flood from neighbours 2" in skipped.reason

    peer, ballot = voting_peer()
    peer.persisted(ballot)
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped) and skipped.missing == (0, 2, 3)
    assert peer.state is State.SKIPPED
    assert peer.receive(gossip(0, (), (vote(ballot.statement, 0), vote(ballot.statement, 2)), number=4)) == []


def test_too_few_clients_to_elect_skip_the_slot() -> None:
    peer = flooding_peer()
    peer.receive(gossip(0, number=4))
    (skipped,) = only(peer.receive(gossip(2, number=4)), SlotSkipped)
    assert isinstance(skipped, SlotSkipped) and "1 of 4 clients can be elected" in skipped.reason
    assert peer.state is State.SKIPPED
