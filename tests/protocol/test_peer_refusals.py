"""Byzantine clients, invalid messages and hosts that misuse their peer."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.protocol.election_kit import (
    BLIND,
    RING,
    SIGNERS,
    VERIFIER,
    certificate,
    chain_of,
    changed,
    config,
    make_peer,
    statement,
    value,
    vote,
)
from tests.protocol.peer_kit import (
    EVIDENCE,
    PATHS,
    belief,
    flooding_peer,
    gossip,
    stored,
    voting_peer,
)

from fedelect.equations.beliefs import outgoing_messages
from fedelect.errors import ConfigurationError, LocalProtocolError, RemoteProtocolError
from fedelect.protocol import Peer, State
from fedelect.protocol.effects import Deadline, MisbehaviourProven, Persist, Wait
from fedelect.protocol.inbox import check_message
from fedelect.protocol.messages import HistoryMessage, HistoryRequest, Message
from fedelect.protocol.proofs import ImpossibleMove, TwoValues, TwoVotes
from fedelect.protocol.statements import Vote


def test_a_client_that_signs_two_values_is_proven_to_misbehave_and_never_elected_again() -> None:
    peer = flooding_peer()
    one, other = value(EVIDENCE, 0, belief=0.1), value(EVIDENCE, 0, belief=0.2)
    peer.receive(gossip(0, (one,), number=1))
    effects = peer.receive(gossip(2, (other, value(EVIDENCE, 2), value(EVIDENCE, 3)), number=4))
    proof = TwoValues(one, other)
    assert [Persist(proof), MisbehaviourProven(proof)] == effects[:2]
    ballot = stored(peer.receive(gossip(0, number=4)))
    assert isinstance(ballot, Vote) and 0 not in ballot.statement.cohort
    heir = make_peer(EVIDENCE, 1, [proof])
    heir.begin_slot(2, 0.5)
    assert heir.entries == heir.proofs == {0: proof}


def test_two_blinds_are_two_values() -> None:
    peer = flooding_peer()
    one, other = (value(EVIDENCE, 0, blind=bytes([number]) * 16) for number in (1, 2))
    peer.receive(gossip(0, (one,), number=1))
    assert MisbehaviourProven(TwoValues(one, other)) in peer.receive(gossip(2, (other,), number=1))


def test_two_votes_of_one_client_are_proven() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    other = vote(statement(EVIDENCE, cohort=(0, 3)), 0)
    peer.receive(gossip(0, (), (vote(ballot.statement, 0),), number=4))
    effects = peer.receive(gossip(2, (), (other,), number=4))
    assert MisbehaviourProven(TwoVotes(vote(ballot.statement, 0), other)) in effects


def test_a_mean_that_moves_without_an_election_is_proven_a_lie() -> None:
    first = chain_of(EVIDENCE, [(0, 1)])[0]
    peer = make_peer(EVIDENCE, 1, [first])
    for slot, mean in ((2, 0.5), (3, 0.9)):
        peer.begin_slot(slot, 0.5)
        peer.persisted(stored(peer.propose(math.nan, 0.25, BLIND)))
        claimed = value(EVIDENCE, 0, mean, slot=slot, previous=first.identity)
        quiet = tuple(value(EVIDENCE, n, slot=slot, previous=first.identity) for n in (2, 3))
        peer.receive(gossip(0, (claimed,), number=4, slot=slot, previous=first.identity))
        effects = peer.receive(gossip(2, quiet, number=4, slot=slot, previous=first.identity))
        assert peer.state is State.CERTIFYING and effects
        peer.deadline_passed(Deadline(Wait.SLOT, slot))
    (proof,) = peer.proofs.values()
    assert isinstance(proof, ImpossibleMove) and (proof.one.mean, proof.other.mean) == (0.5, 0.9)


def test_misuse_by_the_host_is_refused_and_changes_nothing() -> None:
    peer = flooding_peer()
    before = (peer.state, peer.slot, peer.entries)
    misuses: list[tuple[Callable[[], object], str]] = [
        (lambda: peer.propose(0.5, 0.5, BLIND), "'propose' may not happen while the peer is flooding"),
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
            fresh.propose(mean, strength, BLIND)
    with pytest.raises(ConfigurationError):
        fresh.propose(0.5, 0.5, BLIND, [9])
    for blind in (b"", bytes(15), bytes(17)):
        with pytest.raises(LocalProtocolError, match=f"the blind must be 16 random bytes, got {len(blind)}"):
            fresh.propose(0.5, 0.5, blind)
    assert fresh.state is State.SETTLED
    fresh.propose(0.5, 0.5, BLIND)
    fresh.deadline_passed(Deadline(Wait.SLOT, 3))
    fresh.begin_slot(4, 0.5)
    with pytest.raises(LocalProtocolError, match=r"its mean was 0.5 and cannot be 0.6 after 0 elections"):
        fresh.propose(0.6, 0.5, BLIND)
    with pytest.raises(LocalProtocolError, match="never elected"):
        untried = make_peer(EVIDENCE, 2)
        untried.begin_slot(1, 0.5)
        untried.propose(0.5, 0.5, BLIND)


BAD_MESSAGES: list[tuple[Message, str]] = [
    (replace(belief(0, 1), configuration=bytes(32)), "start all peers with the same"),
    (replace(belief(0, 1), receiver=2), "takes messages to itself"),
    (belief(3, 1), "from its neighbours"),
    (belief(0, 1, slot=0), "numbered from 1"),
    (belief(0, 0), "round 0 of 2"),
    (belief(0, 3), "round 3 of 2"),
    (belief(0, 1, math.nan), "must be finite"),
    (belief(0, 1, 0.22), "over a link of coupling 0.2, which lets none through"),
    (belief(0, 1, -1e3), "sent the message -1000.0 over a link"),
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


@pytest.mark.parametrize("damping", [0.0, 0.7])
def test_no_honest_belief_message_is_refused_however_strong_the_coupling(damping: float) -> None:
    strengths = [0.0, 1e-300, 1e-12, 0.2, 3.0, *np.linspace(12.0, 20.0, 1601).tolist(), 400.0]
    for coupling in [*strengths, *(-one for one in strengths)]:
        shared = changed(PATHS, couplings=(coupling,) * 3, damping=damping)
        cavities = np.array([-1e3, -6.9, 0.3, 6.9, 1e3])
        sent_before = np.zeros(5)
        for _ in range(2):
            sent_before = outgoing_messages(cavities, np.tanh(np.full(5, coupling)), sent_before, damping=damping)
            for amount in sent_before.tolist():
                check_message(belief(0, 1, amount, shared=shared), config=shared, client=1)


def test_the_evidence_reading_knows_no_belief_messages() -> None:
    peer = flooding_peer()
    with pytest.raises(RemoteProtocolError, match="reading has none"):
        peer.receive(belief(0, 1, shared=EVIDENCE))


def test_a_peer_needs_its_own_secret() -> None:
    with pytest.raises(ConfigurationError, match="does not hold client 1's key"):
        Peer(config(edges=RING), 1, SIGNERS[2], VERIFIER)
    with pytest.raises(ConfigurationError, match="client"):
        make_peer(config(), 7)


def test_a_relayed_proof_is_believed_if_it_proves_something() -> None:
    peer = flooding_peer()
    one, other = value(EVIDENCE, 3, belief=0.1), value(EVIDENCE, 3, belief=0.2)
    empty = gossip(0, (TwoValues(one, one),))
    with pytest.raises(RemoteProtocolError, match="proves nothing against client 3"):
        peer.receive(empty)
    assert peer.proofs == {}
    proof = TwoValues(one, other)
    assert MisbehaviourProven(proof) in peer.receive(gossip(0, (proof,)))
    votes = tuple(vote(statement(EVIDENCE, cohort=cohort), 3) for cohort in ((0, 1), (1, 2)))
    assert not any(
        isinstance(effect, MisbehaviourProven) for effect in peer.receive(gossip(0, (), votes))
    )  # that is known
    assert peer.proofs == {3: proof}


def test_a_deadline_of_a_slot_gone_by_means_nothing() -> None:
    peer = flooding_peer()
    peer.deadline_passed(Deadline(Wait.SLOT, 1))
    peer.begin_slot(2, 0.5)
    assert peer.deadline_passed(Deadline(Wait.SLOT, 1)) == peer.deadline_passed(Deadline(Wait.RESEND, 1)) == []
    assert peer.state is State.SETTLED
