"""One peer that was restarted or left behind."""

import math

import pytest
from tests.protocol.election_kit import (
    BLIND,
    Wired,
    certificate,
    chain_of,
    config,
    make_peer,
    statement,
    value,
    vote,
)
from tests.protocol.peer_kit import (
    EVIDENCE,
    PATHS,
    flooding_peer,
    gossip,
    only,
    sent,
    stored,
    voting_peer,
)

from fedelect.errors import LocalProtocolError, RemoteProtocolError, StateError
from fedelect.protocol import Certificate, Peer, State
from fedelect.protocol.effects import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    HistoryAdvanced,
    MisbehaviourProven,
    Persist,
    Record,
    SlotSkipped,
    Wait,
)
from fedelect.protocol.messages import HistoryMessage, HistoryRequest
from fedelect.protocol.proofs import ImpossibleMove, TwoValues
from fedelect.protocol.statements import SignedValue, Vote

OTHERS = tuple(tuple(n for n in range(4) if n != client) for client in range(4))  # who signs what a client missed


def test_a_restarted_peer_signs_nothing_more_in_a_slot_it_signed_in() -> None:
    peer, ballot = voting_peer()
    said = value(EVIDENCE, 1, belief=0.25)
    kept: list[list[Record]] = [[said], [said, ballot], [ballot]]
    for records in kept:
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
    wired.in_flight.clear()
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
    links = chain_of(EVIDENCE, [(0, 1)] * 300, signers=OTHERS[0])
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
    first, second, third = chain_of(EVIDENCE, [(0, 1), (2, 3), (0, 2)], signers=OTHERS[1])
    peer = make_peer(EVIDENCE, 1)
    assert peer.learn([first]) == [Persist(first), HistoryAdvanced(first)]
    peer.begin_slot(2, 0.5)
    peer.persisted(stored(peer.propose(math.nan, 0.25, BLIND)))
    decided = peer.learn([second])
    assert decided == [Persist(second), CohortAgreed(second, ())]
    assert peer.learn([second]) == []

    late = make_peer(EVIDENCE, 1, [first])
    late.begin_slot(3, 0.5)
    late.persisted(stored(late.propose(0.1, 0.25, BLIND)))
    effects = late.learn([second])
    assert effects[1:] == [HistoryAdvanced(second), BeliefSettled(3, 0.25, 0.0)]
    assert late.state is State.SETTLED and late.entries == {}
    record = stored(late.propose(0.1, 0.25, BLIND))
    assert isinstance(record, SignedValue) and record.previous == second.identity

    passed = make_peer(EVIDENCE, 1, [first])
    passed.begin_slot(2, 0.5)
    beyond = certificate(statement(EVIDENCE, slot=3, previous=first.identity), OTHERS[1])
    effects = passed.learn([beyond])
    assert isinstance(effects[1], SlotSkipped) and "went on to slot 3" in effects[1].reason
    assert third.slot == 3


def test_a_peer_that_has_voted_does_not_vote_again_when_history_moves_on() -> None:
    first = chain_of(EVIDENCE, [(0, 1)])[0]
    peer = make_peer(EVIDENCE, 1)
    peer.begin_slot(2, 0.5)
    peer.persisted(stored(peer.propose(math.nan, 0.25, BLIND)))
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


def test_a_proof_that_only_another_history_shows_is_kept_but_not_passed_on() -> None:
    first = chain_of(EVIDENCE, [(0, 1)])[0]
    lie = ImpossibleMove(
        value(EVIDENCE, 0, 0.5, slot=2, previous=first.identity),
        value(EVIDENCE, 0, 0.9, slot=3, previous=first.identity),
    )
    peer = make_peer(EVIDENCE, 1, [first, lie])
    peer.begin_slot(4, 0.5)
    assert peer.entries == {0: lie}
    rival = certificate(statement(EVIDENCE, slot=3, cohort=(2, 3)), OTHERS[1])
    peer.learn([rival])  # a higher slot, on which `first` never happened
    assert peer.entries == {}
    assert peer.proofs == {0: lie}


def voted_on_a_branch_that_lost() -> tuple[Peer, Vote, Certificate]:
    """Client 1 has voted in slot 4 on top of `first`; then it learns of a rival of a higher slot."""
    first = certificate(statement(EVIDENCE, slot=2, cohort=(0, 1)))
    peer = make_peer(EVIDENCE, 1, [first])
    peer.begin_slot(4, 0.5)
    peer.persisted(stored(peer.propose(0.5, 0.25, BLIND)))
    others = tuple(value(EVIDENCE, n, slot=4, previous=first.identity) for n in (2, 3))
    peer.receive(gossip(2, others, number=4, slot=4, previous=first.identity))
    ballot = stored(peer.receive(gossip(0, number=4, slot=4, previous=first.identity)))
    assert isinstance(ballot, Vote)
    peer.persisted(ballot)
    rival = certificate(statement(EVIDENCE, slot=3, cohort=(2, 3)))
    peer.learn([rival])
    assert peer.state is State.CERTIFYING and peer.chain.head == rival.identity
    return peer, ballot, first


def test_a_value_is_judged_by_the_history_it_builds_on_and_the_votes_beside_it_count() -> None:
    peer, ballot, first = voted_on_a_branch_that_lost()
    earned = value(EVIDENCE, 0, 0.5, slot=4, previous=first.identity)  # client 0 was elected on that branch only
    votes = tuple(vote(ballot.statement, n) for n in (0, 2))
    effects = peer.receive(gossip(0, (earned,), votes, number=4, slot=4, previous=first.identity))
    assert [one.slot for one in only(effects, CohortAgreed) if isinstance(one, CohortAgreed)] == [4]
    untried = value(EVIDENCE, 2, 0.5, slot=4, previous=first.identity)  # and client 2 on the other
    peer, ballot, first = voted_on_a_branch_that_lost()
    with pytest.raises(RemoteProtocolError, match="the client was never elected"):
        peer.receive(gossip(0, (untried,), number=4, slot=4, previous=first.identity))


def test_a_proof_of_an_impossible_move_is_judged_by_the_history_its_message_builds_on() -> None:
    peer, _, first = voted_on_a_branch_that_lost()
    before, after = (
        value(EVIDENCE, 0, mean, slot=slot, previous=first.identity) for slot, mean in ((3, 0.2), (4, 0.9))
    )
    proof = ImpossibleMove(before, after)
    message = gossip(0, (proof,), number=4, slot=4, previous=first.identity)
    assert MisbehaviourProven(proof) in peer.receive(message)
    # On the other branch it proves nothing, though this peer knows both: its neighbours there may not.
    rival = peer.chain.certificates[-1]
    peer = make_peer(EVIDENCE, 1, [first, rival])
    peer.begin_slot(4, 0.5)
    with pytest.raises(RemoteProtocolError, match="as far as the history tells that the message builds on"):
        peer.receive(gossip(0, (proof,), slot=4, previous=rival.identity))


def test_a_peer_that_is_shown_its_own_signature_to_what_it_does_not_remember_signs_nothing_more() -> None:
    first, second = chain_of(EVIDENCE, [(0, 1), (2, 3)])  # both signed by clients 0, 1 and 2
    peer = make_peer(EVIDENCE, 1, [value(EVIDENCE, 1), first])  # of slot 2 it has nothing
    (request,) = sent(peer.ask(0))
    assert request == HistoryRequest(EVIDENCE.digest, 1, 0, (first.identity, EVIDENCE.digest))
    assert peer.receive(HistoryMessage(EVIDENCE.digest, 0, 1, (first, second))) == []  # nothing is stored
    with pytest.raises(LocalProtocolError, match=r"signed in slot 2, as others can show.*enrol the client anew"):
        peer.begin_slot(3, 0.5)
    bystander = make_peer(EVIDENCE, 3)  # its signature is in neither
    bystander.learn([first, second])
    bystander.begin_slot(3, 0.5)


@pytest.mark.parametrize("shown", ["value", "vote", "certificate"])
def test_a_peer_that_learns_in_mid_slot_that_it_forgot_gives_the_slot_up_and_does_not_vote(shown: str) -> None:
    peer = flooding_peer()
    earlier = value(EVIDENCE, 1, belief=0.25, blind=bytes(16))
    everyone = (value(EVIDENCE, 0), value(EVIDENCE, 2), value(EVIDENCE, 3))
    if shown == "certificate":
        effects = peer.learn([certificate(statement(EVIDENCE, slot=7))])
    elif shown == "value":
        peer.receive(gossip(2, everyone, number=4))
        effects = peer.receive(gossip(0, (earlier,), number=4))
    else:
        peer.receive(gossip(2, everyone, number=4))
        effects = peer.receive(gossip(0, (), (vote(statement(EVIDENCE), 1),), number=4))
    (skipped,) = effects
    assert isinstance(skipped, SlotSkipped) and "its records do not hold that" in skipped.reason
    assert peer.state is State.SKIPPED
    with pytest.raises(LocalProtocolError, match="signs nothing more"):
        peer.begin_slot(9, 0.5)


def test_what_a_peer_signed_itself_it_does_not_take_for_forgotten() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    own = value(EVIDENCE, 1, belief=0.25)
    peer.receive(gossip(0, (own,), (ballot, vote(ballot.statement, 0)), number=4))
    peer.receive(gossip(2, (), (vote(ballot.statement, 2),), number=4))
    assert peer.state is State.DECIDED
    heir = make_peer(EVIDENCE, 1, [own, ballot])
    assert only(heir.learn(peer.chain.certificates), Persist)
    heir.begin_slot(2, 0.5)
