"""Byzantine clients: each runs an honest peer and alters its messages; none can sign for another client."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from fedelect.protocol import Peer, PeerConfig, Signer
from fedelect.protocol.gossip import Entry
from fedelect.protocol.messages import AppraisalMessage, BeliefMessage, GossipMessage, HistoryMessage, Message
from fedelect.protocol.statements import SignedValue, Statement, Vote
from fedelect.testing.chaos.attacks import ATTACKS, Attacker

BEHAVIOURS = (
    "two values",
    "two votes",
    "votes for all",
    "forges values",
    "forges votes",
    "replays",
    "out of range",
    "boasts",
    "late",
    "mute",
    "rounds",
    "pushes",
    *ATTACKS,
)
"""What a Byzantine client may do."""

EXCESSIVE_MESSAGES = (-1e3, -20.0, 20.0, 1e3)
"""Belief messages larger than any coupling allows (at most 18.8); each would decide a neighbour's belief alone."""


class ByzantinePeer(Peer):
    """The peer that a Byzantine client alters the messages of: it does not mind to hear of what it never signed."""

    def _has_forgotten(self) -> bool:
        return False


class ByzantineClient:
    """A client that alters what its honest peer sends.

    Args:
        client: Its number.
        config: What the peers share.
        keys: Signers of all Byzantine clients, by number: the only ones it has.
        rng: Draws what it does.
        behaviour: The one thing that it does; None for two that are drawn.
    """

    def __init__(
        self,
        client: int,
        config: PeerConfig,
        keys: Mapping[int, Signer],
        *,
        rng: np.random.Generator,
        behaviour: str | None = None,
    ) -> None:
        self._client = client
        self._signer = keys[client]
        self._clients = config.clients
        self._flood_rounds = config.flood_rounds
        self._rng = rng
        self._attacker = Attacker(client, config, keys)
        self._observed: list[Message] = []
        self._statements: dict[bytes, Statement] = {}
        drawn = [behaviour] if behaviour is not None else rng.choice(BEHAVIOURS, size=2, replace=False)
        self.behaviours = tuple(str(one) for one in drawn)

    def observe(self, message: Message) -> None:
        """Remember a message that this client received."""
        if len(self._observed) < 200:
            self._observed.append(message)
        if isinstance(message, GossipMessage):
            for vote in message.votes:
                self._statements[vote.statement.identity] = vote.statement

    def alter(self, message: Message) -> Iterable[Message]:
        """The messages that it sends in place of an honest one."""
        messages: list[Message] = [message]
        for behaviour in self.behaviours:
            messages = [altered for one in messages for altered in self._alter_by(behaviour, one)]
        return messages

    def _alter_by(self, behaviour: str, message: Message) -> list[Message]:
        if behaviour in ATTACKS:
            return self._attacker.alter(behaviour, message)
        if behaviour == "mute":
            return [] if self._rng.random() < 0.7 else [message]
        if behaviour == "replays":
            return [message, *self._replay(message.receiver)]
        if isinstance(message, HistoryMessage) and behaviour == "forges votes":
            first = message.certificates[0]
            fewer = replace(first, signatures=first.signatures[:1] * len(first.signatures))
            return [replace(message, certificates=(fewer, *message.certificates[1:]))]
        if isinstance(message, AppraisalMessage) and behaviour in ("forges values", "two values", "boasts"):
            return [replace(message, appraisals=tuple(replace(one, worth=1.0) for one in message.appraisals))]
        if isinstance(message, BeliefMessage) and behaviour == "two values":
            return [replace(message, value=float(self._rng.normal()))]
        if isinstance(message, BeliefMessage) and behaviour == "pushes":
            return [replace(message, value=float(self._rng.choice(EXCESSIVE_MESSAGES)))]
        return [self._alter_gossip(behaviour, message)] if isinstance(message, GossipMessage) else [message]

    def _alter_gossip(self, behaviour: str, message: GossipMessage) -> GossipMessage:
        if behaviour in ("two values", "out of range", "boasts", "forges values"):
            altered = (self._alter_entry(behaviour, one.entry, message.receiver) for one in message.entries)
            entries = (replace(one, entry=entry) for one, entry in zip(message.entries, altered, strict=True))
            return replace(message, entries=tuple(entries))
        if behaviour in ("two votes", "votes for all", "forges votes"):
            return replace(message, votes=(*message.votes, *self._add_votes(behaviour, message)))
        if behaviour == "rounds":
            return replace(message, round=int(self._rng.integers(0, self._flood_rounds + 3)))
        if behaviour == "late" and message.round < self._flood_rounds:
            return replace(message, entries=tuple(one for one in message.entries if one.entry.client != self._client))
        return message

    def _alter_entry(self, behaviour: str, entry: Entry, receiver: int) -> Entry:
        if not isinstance(entry, SignedValue):
            return entry
        if behaviour == "forges values" and entry.client != self._client:
            return replace(entry, mean=1.0, signature=self._signer.sign(entry.content))
        if entry.client != self._client:
            return entry
        if behaviour == "two values":
            return self._sign(replace(entry, belief=receiver / self._clients))
        if behaviour == "out of range":
            return self._sign(replace(entry, belief=float(self._rng.choice([2.0, -1.0, np.inf]))))
        return self._sign(replace(entry, mean=float(self._rng.choice([0.0, 1.0, np.nan]))))

    def _sign(self, value: SignedValue) -> SignedValue:
        return replace(value, signature=self._signer.sign(value.content))

    def _add_votes(self, behaviour: str, message: GossipMessage) -> list[Vote]:
        fitting = [
            one for one in self._statements.values() if (one.slot, one.previous) == (message.slot, message.previous)
        ]
        if behaviour == "forges votes":
            victim = int(self._rng.integers(self._clients))
            return [Vote(one, victim, self._signer.sign(one.content)) for one in fitting]
        if behaviour == "two votes":
            fitting = [replace(one, cohort=self._other_cohort(len(one.cohort), message.receiver)) for one in fitting]
        return [Vote(one, self._client, self._signer.sign(one.content)) for one in fitting]

    def _other_cohort(self, budget: int, receiver: int) -> tuple[int, ...]:
        return tuple(sorted((receiver + step) % self._clients for step in range(budget)))

    def _replay(self, receiver: int) -> list[Message]:
        if not self._observed or self._rng.random() < 0.5:
            return []
        old = self._observed[int(self._rng.integers(len(self._observed)))]
        return [replace(old, sender=self._client, receiver=receiver)]
