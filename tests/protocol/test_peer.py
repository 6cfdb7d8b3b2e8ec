"""One peer, call by call: what it sends, when it concludes, what it refuses, what it never signs."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.protocol.election_kit import (
    PATH,
    RING,
    SIGNERS,
    VERIFIER,
    Wired,
    certificate,
    chain_of,
    config,
    make_peer,
    statement,
    value,
    vote,
)

from fedelect.equations.cold_start import cold_start_groups
from fedelect.errors import ConfigurationError, LocalProtocolError, RemoteProtocolError, StateError
from fedelect.protocol import (
    BeliefMessage,
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    GossipMessage,
    HistoryAdvanced,
    HistoryMessage,
    HistoryRequest,
    ImpossibleMove,
    LiarProven,
    Message,
    Peer,
    PeerConfig,
    Persist,
    Record,
    Send,
    SetDeadline,
    SignedValue,
    SlotSkipped,
    State,
    TwoValues,
    TwoVotes,
    Vote,
    Wait,
)

PATHS = config(edges=PATH, seed=3)  # client 1 sits between 0 and 2; R = 3
EVIDENCE = config(edges=PATH, reading="evidence")
FIRST, SECOND = (tuple(group.tolist()) for group in cold_start_groups(4, 2, 1))


def belief(
    sender: int, number: int, amount: float = 0.1, *, slot: int = 1, shared: PeerConfig = PATHS
) -> BeliefMessage:
    return BeliefMessage(shared.digest, sender, 1, slot, shared.digest, number, amount)


def gossip(
    sender: int,
    entries: tuple[SignedValue, ...] = (),
    votes: tuple[Vote, ...] = (),
    *,
    number: int = 0,
    slot: int = 1,
    previous: bytes | None = None,
    wants_reply: bool = False,
    shared: PeerConfig = EVIDENCE,
) -> GossipMessage:
    before = shared.digest if previous is None else previous
    return GossipMessage(shared.digest, sender, 1, slot, before, number, entries, votes, wants_reply)


def sent(effects: list[Effect]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def gossips(effects: list[Effect]) -> list[GossipMessage]:
    return [message for message in sent(effects) if isinstance(message, GossipMessage)]


def only(effects: list[Effect], kind: type[Effect]) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


def stored(effects: list[Effect]) -> Record:
    (effect,) = only(effects, Persist)
    assert isinstance(effect, Persist)
    return effect.record


def flooding_peer() -> Peer:
    """Client 1 of the path, under the evidence reading, with its own value in."""
    peer = make_peer(EVIDENCE, 1)
    peer.begin_slot(1, 0.5)
    peer.persisted(stored(peer.propose(math.nan, 0.25)))
    assert peer.state is State.FLOODING
    return peer


def voting_peer() -> tuple[Peer, Vote]:
    """The same with all values in and its map frozen: it has voted, but the vote is not stored yet."""
    peer = flooding_peer()
    others = tuple(value(EVIDENCE, n) for n in (0, 2, 3))
    peer.receive(gossip(0, others, number=4))
    record = stored(peer.receive(gossip(2, others, number=4)))
    assert isinstance(record, Vote) and peer.state is State.CERTIFYING
    return peer, record


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
    effects = peer.propose(math.nan, 0.25)
    record = stored(effects)
    assert sent(effects) == []
    assert record == value(EVIDENCE, 1, belief=0.25)
    assert sent(peer.receive(gossip(0, (value(EVIDENCE, 0),), number=1))) == []
    assert [message.entries for message in gossips(peer.deadline_passed(Deadline(Wait.RESEND, 1)))] == [
        (),
        (value(EVIDENCE, 0),),
    ]
    messages = gossips(peer.persisted(record))
    assert [(message.receiver, message.round) for message in messages] == [(0, 1), (2, 1)]
    assert all(record in message.entries for message in messages)
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
    record = stored(peer.propose(math.nan, 0.25))
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
    wired = Wired(config(faults=1))
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
            return peers[client].propose(math.nan, 0.5, here if client < 2 or len(here) == 3 else [0, 2, 3])

        for peer in peers:
            wired.flying.extend(sent(peer.begin_slot(1, 0.5)))
        while wired.flying:
            message = wired.flying.popleft()
            for effect in peers[message.receiver].receive(message):
                wired.carry_out(
                    message.receiver, settle(message.receiver) if isinstance(effect, BeliefSettled) else [effect]
                )
        assert len(wired.agreed) == (4 if len(here) == 3 else 0)
        assert all(set(one.cohort) <= set(here) for one in wired.agreed.values())


def test_a_restarted_peer_signs_nothing_more_in_a_slot_it_signed_in() -> None:
    peer, ballot = voting_peer()
    for records in ([value(EVIDENCE, 1, belief=0.25)], [value(EVIDENCE, 1, belief=0.25), ballot], [ballot]):
        heir = make_peer(EVIDENCE, 1, records)
        assert (heir.slot, heir.state) == (1, State.IDLE)
        with pytest.raises(LocalProtocolError, match="slot 1 cannot begin after slot 1"):
            heir.begin_slot(1, 0.5)
        assert heir.receive(gossip(0, (value(EVIDENCE, 0),), number=1)) == []
        heir.begin_slot(2, 0.5)
    assert peer.slot == 1


def test_a_restarted_peer_goes_on_from_its_records() -> None:
    wired = Wired(config())
    for slot in (1, 2):
        wired.begin(slot)
        wired.deliver()
    heir = make_peer(wired.config, 2, wired.disks[2])
    assert heir.chain.certificates == wired.peers[2].chain.certificates
    wired.peers[2] = heir
    wired.begin(3)
    wired.deliver()
    assert len(wired.agreed) == 4


def test_records_of_others_are_refused() -> None:
    for record in (value(EVIDENCE, 2), vote(statement(EVIDENCE), 0), value(PATHS, 1)):
        with pytest.raises(StateError, match="give each peer its own records"):
            make_peer(EVIDENCE, 1, [record])
    with pytest.raises(StateError, match="not of this election"):
        make_peer(EVIDENCE, 1, [certificate(statement(PATHS))])
    with pytest.raises(StateError, match="not of this election"):
        make_peer(EVIDENCE, 1, [TwoValues(value(EVIDENCE, 2), value(EVIDENCE, 2))])


def test_who_is_behind_asks_and_is_told_before_it_speaks() -> None:
    shared = config(reading="evidence")
    wired = Wired(shared, cut=lambda message: message.receiver == 3)
    wired.begin(1)
    for _ in range(5):
        wired.deliver()
        for client in range(4):
            wired.carry_out(client, wired.peers[client].deadline_passed(Deadline(Wait.RESEND, 1)))
    assert set(wired.agreed) == {0, 1, 2}
    wired.carry_out(3, wired.peers[3].deadline_passed(Deadline(Wait.SLOT, 1)))
    wired.cut = lambda message: False
    wired.flying.clear()
    wired.sent.clear()
    wired.begin(2)
    wired.deliver()
    assert any(isinstance(message, HistoryMessage) and message.receiver == 3 for message in wired.sent)
    for _ in range(3):
        for client in range(4):
            wired.carry_out(client, wired.peers[client].deadline_passed(Deadline(Wait.RESEND, 2)))
        wired.deliver()
    assert set(wired.agreed) == {0, 1, 2, 3}  # it proposed again, on top of what it had missed
    assert len({peer.chain.head for peer in wired.peers}) == 1
    values = [record for record in wired.disks[3] if isinstance(record, SignedValue) and record.slot == 2]
    assert len({record.previous for record in values}) == 2
    assert all(not peer.proofs for peer in wired.peers)  # another history is no lie


def test_an_unknown_history_is_asked_for_once_until_the_next_tick() -> None:
    peer = flooding_peer()
    strange = gossip(0, number=1, previous=b"\7" * 32, slot=1)
    (request,) = sent(peer.receive(strange))
    assert request == HistoryRequest(EVIDENCE.digest, 1, 0, (EVIDENCE.digest,))
    assert peer.receive(strange) == []
    peer.deadline_passed(Deadline(Wait.RESEND, 1))
    assert len(sent(peer.receive(strange))) == 1


def test_a_question_about_history_is_answered_and_a_full_answer_asked_on() -> None:
    links = chain_of(EVIDENCE, [(0, 1)] * 300)
    peer, novice = make_peer(EVIDENCE, 1, links), make_peer(EVIDENCE, 0)
    (answer,) = sent(peer.receive(HistoryRequest(EVIDENCE.digest, 0, 1, (EVIDENCE.digest,))))
    assert isinstance(answer, HistoryMessage) and len(answer.certificates) == 256
    effects = novice.receive(answer)
    assert effects[-2] == HistoryAdvanced(links[255])
    (again,) = sent(effects)
    assert isinstance(again, HistoryRequest)
    (rest,) = sent(peer.receive(again))
    novice.receive(rest)
    assert novice.chain.head == peer.chain.head
    assert peer.receive(HistoryRequest(EVIDENCE.digest, 0, 1, novice.chain.locator())) == []


def test_a_decided_peer_answers_who_asks_with_the_certificate() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    votes = tuple(vote(ballot.statement, n) for n in (0, 2))
    peer.receive(gossip(0, (), votes, number=4))
    assert peer.receive(gossip(2, (), votes, number=4)) == []
    (answer,) = sent(peer.receive(gossip(2, number=2, wants_reply=True)))
    assert isinstance(answer, HistoryMessage) and answer.certificates[0].identity == peer.chain.head
    assert peer.deadline_passed(Deadline(Wait.RESEND, 1)) == []
    assert peer.deadline_passed(Deadline(Wait.SLOT, 1)) == []


def test_history_that_moves_on_ends_or_restarts_the_slot() -> None:
    first, second, third = chain_of(EVIDENCE, [(0, 1), (2, 3), (0, 2)])
    peer = make_peer(EVIDENCE, 1)
    assert peer.learn([first]) == [Persist(first), HistoryAdvanced(first)]
    peer.begin_slot(2, 0.5)
    peer.persisted(stored(peer.propose(math.nan, 0.25)))
    decided = peer.learn([second])
    assert decided == [Persist(second), CohortAgreed(second, ())]
    assert peer.learn([second]) == []

    late = make_peer(EVIDENCE, 1, [first])
    late.begin_slot(3, 0.5)
    late.persisted(stored(late.propose(0.1, 0.25)))
    effects = late.learn([second])
    assert effects[1:] == [HistoryAdvanced(second), BeliefSettled(3, 0.25, 0.0)]
    assert late.state is State.SETTLED and late.entries == {}
    record = stored(late.propose(0.1, 0.25))
    assert isinstance(record, SignedValue) and record.previous == second.identity

    passed = make_peer(EVIDENCE, 1, [first])
    passed.begin_slot(2, 0.5)
    beyond = certificate(statement(EVIDENCE, slot=3, previous=first.identity))
    effects = passed.learn([beyond])
    assert isinstance(effects[1], SlotSkipped) and "went on to slot 3" in effects[1].reason
    assert third.slot == 3


def test_a_peer_that_has_voted_does_not_vote_again_when_history_moves_on() -> None:
    first = chain_of(EVIDENCE, [(0, 1)])[0]
    peer = make_peer(EVIDENCE, 1)
    peer.begin_slot(2, 0.5)
    peer.persisted(stored(peer.propose(math.nan, 0.25)))
    others = tuple(value(EVIDENCE, n, slot=2) for n in (0, 2, 3))
    peer.receive(gossip(0, others, number=4, slot=2))
    ballot = stored(peer.receive(gossip(2, number=4, slot=2)))
    assert isinstance(ballot, Vote)
    assert peer.learn([first]) == [Persist(first), HistoryAdvanced(first)]
    assert peer.state is State.CERTIFYING
    peer.persisted(ballot)
    votes = tuple(vote(ballot.statement, n) for n in (0, 2))
    (agreed,) = only(peer.receive(gossip(0, (), votes, number=4, slot=2)), CohortAgreed)
    assert isinstance(agreed, CohortAgreed)
    assert [one.slot for one in peer.chain.certificates] == [2]  # the higher slot is history


def test_who_says_two_things_is_proven_a_liar_and_never_elected_again() -> None:
    peer = flooding_peer()
    one, other = value(EVIDENCE, 0, belief=0.1), value(EVIDENCE, 0, belief=0.2)
    peer.receive(gossip(0, (one,), number=1))
    effects = peer.receive(gossip(2, (other, value(EVIDENCE, 2), value(EVIDENCE, 3)), number=4))
    proof = TwoValues(one, other)
    assert [Persist(proof), LiarProven(proof)] == effects[:2]
    ballot = stored(peer.receive(gossip(0, number=4)))
    assert isinstance(ballot, Vote) and 0 not in ballot.statement.cohort
    heir = make_peer(EVIDENCE, 1, [proof])
    heir.begin_slot(2, 0.5)
    assert heir.entries == heir.proofs == {0: proof}


def test_two_votes_of_one_client_are_proven() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    other = vote(statement(EVIDENCE, cohort=(0, 3)), 0)
    peer.receive(gossip(0, (), (vote(ballot.statement, 0),), number=4))
    effects = peer.receive(gossip(2, (), (other,), number=4))
    assert LiarProven(TwoVotes(vote(ballot.statement, 0), other)) in effects


def test_a_mean_that_moves_without_an_election_is_proven_a_lie() -> None:
    first = chain_of(EVIDENCE, [(0, 1)])[0]
    peer = make_peer(EVIDENCE, 1, [first])
    for slot, mean in ((2, 0.5), (3, 0.9)):
        peer.begin_slot(slot, 0.5)
        peer.persisted(stored(peer.propose(math.nan, 0.25)))
        claimed = value(EVIDENCE, 0, mean, slot=slot, previous=first.identity)
        quiet = tuple(value(EVIDENCE, n, slot=slot, previous=first.identity) for n in (2, 3))
        peer.receive(gossip(0, (claimed,), number=4, slot=slot, previous=first.identity))
        effects = peer.receive(gossip(2, quiet, number=4, slot=slot, previous=first.identity))
        assert peer.state is State.CERTIFYING and effects
        peer.deadline_passed(Deadline(Wait.SLOT, slot))
    (proof,) = peer.proofs.values()
    assert isinstance(proof, ImpossibleMove) and (proof.one.mean, proof.other.mean) == (0.5, 0.9)


def test_messages_of_the_slot_to_come_wait_for_it() -> None:
    peer = make_peer(PATHS, 1)
    assert peer.receive(belief(0, 1, 0.7)) == []
    assert peer.receive(belief(2, 1, 0.9)) == []
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


def test_misuse_by_the_host_is_refused_and_changes_nothing() -> None:
    peer = flooding_peer()
    before = (peer.state, peer.slot, peer.entries)
    misuses: list[tuple[Callable[[], object], str]] = [
        (lambda: peer.propose(0.5, 0.5), "'propose' may not happen while the peer is flooding"),
        (lambda: peer.begin_slot(2, 0.5), "'begin_slot' may not happen"),
        (lambda: peer.deadline_passed(Deadline(Wait.SLOT, 2)), "has not begun"),
    ]
    for misuse, match in misuses:
        with pytest.raises(LocalProtocolError, match=match):
            misuse()
        assert (peer.state, peer.slot, peer.entries) == before
    fresh = make_peer(EVIDENCE, 1, chain_of(EVIDENCE, [(0, 1), (0, 1)]))
    with pytest.raises(LocalProtocolError, match="slot 2 cannot begin after slot 2"):
        fresh.begin_slot(2, 0.5)
    with pytest.raises(LocalProtocolError, match="opinion must be in"):
        fresh.begin_slot(3, 1.5)
    fresh.begin_slot(3, 0.5)
    for mean, strength, match in ((2.0, 0.5, "the mean must be"), (0.5, -1.0, "the belief must be")):
        with pytest.raises(LocalProtocolError, match=match):
            fresh.propose(mean, strength)
    with pytest.raises(ConfigurationError):
        fresh.propose(0.5, 0.5, [9])
    assert fresh.state is State.SETTLED
    fresh.propose(0.5, 0.5)
    fresh.deadline_passed(Deadline(Wait.SLOT, 3))
    fresh.begin_slot(4, 0.5)
    with pytest.raises(LocalProtocolError, match=r"its mean was 0.5 and cannot be 0.6 after 0 elections"):
        fresh.propose(0.6, 0.5)
    with pytest.raises(LocalProtocolError, match="never elected"):
        untried = make_peer(EVIDENCE, 2)
        untried.begin_slot(1, 0.5)
        untried.propose(0.5, 0.5)


BAD_MESSAGES: list[tuple[Message, str]] = [
    (replace(belief(0, 1), configuration=bytes(32)), "start all peers with the same"),
    (replace(belief(0, 1), receiver=2), "takes messages to itself"),
    (belief(3, 1), "from its neighbours"),
    (belief(0, 1, slot=0), "numbered from 1"),
    (belief(0, 0), "round 0 of 2"),
    (belief(0, 3), "round 3 of 2"),
    (belief(0, 1, math.nan), "must be finite"),
    (gossip(0, (value(PATHS, 3, belief=1.5),), shared=PATHS), "the belief must be"),
    (gossip(0, (value(PATHS, 3, 1.5),), shared=PATHS), "the mean must be"),
    (gossip(0, (value(PATHS, 3, 0.5),), shared=PATHS), "never elected"),
    (gossip(0, (replace(value(PATHS, 3), client=9),), shared=PATHS), "there are 0..3"),
    (gossip(0, (replace(value(PATHS, 3), client=2),), shared=PATHS), "client 2, which did not sign"),
    (gossip(0, (value(PATHS, 3, slot=2),), shared=PATHS), "signed for slot 2"),
    (gossip(0, (value(PATHS, 3, previous=bytes(32)),), shared=PATHS), "another history"),
    (gossip(0, (value(PATHS, 3), value(PATHS, 3)), shared=PATHS), "repeats itself"),
    (gossip(0, number=5, shared=PATHS), "flood round 5 of 3"),
    (gossip(0, (), (replace(vote(statement(PATHS), 3), client=2),), shared=PATHS), "client 2, which did not sign"),
    (gossip(0, (), (replace(vote(statement(PATHS), 3), client=8),), shared=PATHS), "vote of client 8"),
    (gossip(0, (), (vote(statement(PATHS, slot=2), 3),), shared=PATHS), "signed for slot 2"),
    (gossip(0, (), (vote(statement(PATHS, cohort=(0,)), 3),), shared=PATHS), "has 2 members"),
    (HistoryRequest(PATHS.digest, 0, 1, ()), "0 items of history"),
    (HistoryMessage(PATHS.digest, 0, 1, (certificate(statement(PATHS), (0, 1)),)), "2 signatures"),
]


@pytest.mark.parametrize(("message", "match"), BAD_MESSAGES)
def test_unsound_messages_are_the_senders_fault_and_change_nothing(message: Message, match: str) -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    with pytest.raises(RemoteProtocolError, match=match):
        peer.receive(message)
    assert peer.entries == {}
    assert peer.state is State.EXCHANGING


def test_the_evidence_reading_knows_no_belief_messages() -> None:
    peer = flooding_peer()
    with pytest.raises(RemoteProtocolError, match="reading has none"):
        peer.receive(belief(0, 1, shared=EVIDENCE))


def test_a_peer_needs_its_own_secret() -> None:
    with pytest.raises(ConfigurationError, match="does not hold client 1's key"):
        Peer(config(edges=RING), 1, SIGNERS[2], VERIFIER)
    with pytest.raises(ConfigurationError, match="client"):
        make_peer(config(), 7)
