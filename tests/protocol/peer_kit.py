"""One peer brought to a certain point, and the messages to bring it there."""

import math

from tests.protocol.election_kit import (
    BLIND,
    PATH,
    config,
    make_peer,
    value,
)

from fedelect.protocol import Peer, PeerConfig, State
from fedelect.protocol.effects import Effect, Persist, Record, Send
from fedelect.protocol.gossip import Entry, Relayed
from fedelect.protocol.messages import BeliefMessage, GossipMessage, Message
from fedelect.protocol.statements import Vote
from fedelect.rules import cold_start_groups

PATHS = config(edges=PATH, seed=3)  # client 1 sits between 0 and 2; R = 3
EVIDENCE = config(edges=PATH, reading="evidence")
FIRST, SECOND = (tuple(group.tolist()) for group in cold_start_groups(4, 2, 1))


def belief(
    sender: int, number: int, amount: float = 0.1, *, slot: int = 1, shared: PeerConfig = PATHS
) -> BeliefMessage:
    return BeliefMessage(shared.digest, sender, 1, slot, shared.digest, number, amount)


def gossip(
    sender: int,
    entries: tuple[Entry, ...] = (),
    votes: tuple[Vote, ...] = (),
    *,
    number: int = 0,
    slot: int = 1,
    previous: bytes | None = None,
    wants_reply: bool = False,
    shared: PeerConfig = EVIDENCE,
) -> GossipMessage:
    before = shared.digest if previous is None else previous
    return GossipMessage(
        shared.digest, sender, 1, slot, before, number, tuple(map(Relayed, entries)), votes, wants_reply
    )


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
    peer.persisted(stored(peer.propose(math.nan, 0.25, BLIND)))
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
