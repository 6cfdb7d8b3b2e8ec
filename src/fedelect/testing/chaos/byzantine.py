"""Clients that lie. Each runs an honest peer and bends what it sends; none can sign for another."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fedelect.protocol import Signer
from fedelect.protocol.gossip import Entry
from fedelect.protocol.messages import AppraisalMessage, BeliefMessage, GossipMessage, HistoryMessage, Message
from fedelect.protocol.statements import SignedValue, Statement, Vote

HABITS = (
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
)
"""What a Byzantine client may do."""

PUSHES = (-1e3, -20.0, 20.0, 1e3)
"""Belief messages that would settle a neighbour's belief alone; no coupling lets them through (18.8 is the most)."""


class ByzantineClient:
    """A client that alters what its honest peer sends.

    Args:
        client: Its number.
        signer: Its own secret, the only one it has.
        clients: N.
        flood_rounds: R.
        rng: Its whims.
    """

    def __init__(
        self, client: int, signer: Signer, *, clients: int, flood_rounds: int, rng: np.random.Generator
    ) -> None:
        self._client = client
        self._signer = signer
        self._clients = clients
        self._flood_rounds = flood_rounds
        self._rng = rng
        self._overheard: list[Message] = []
        self._statements: dict[bytes, Statement] = {}
        self.habits = tuple(str(habit) for habit in rng.choice(HABITS, size=2, replace=False))

    def overhear(self, message: Message) -> None:
        """Something was said to this client."""
        if len(self._overheard) < 200:
            self._overheard.append(message)
        if isinstance(message, GossipMessage):
            for vote in message.votes:
                self._statements[vote.statement.identity] = vote.statement

    def bend(self, message: Message) -> Iterable[Message]:
        """What it sends in place of an honest message."""
        messages: list[Message] = [message]
        for habit in self.habits:
            messages = [bent for one in messages for bent in self._by_habit(habit, one)]
        return messages

    def _by_habit(self, habit: str, message: Message) -> list[Message]:
        if habit == "mute":
            return [] if self._rng.random() < 0.7 else [message]
        if habit == "replays":
            return [message, *self._replayed(message.receiver)]
        if isinstance(message, HistoryMessage) and habit == "forges votes":
            first = message.certificates[0]
            fewer = replace(first, signatures=first.signatures[:1] * len(first.signatures))
            return [replace(message, certificates=(fewer, *message.certificates[1:]))]
        if isinstance(message, AppraisalMessage) and habit in ("forges values", "two values", "boasts"):
            return [replace(message, appraisals=tuple(replace(one, worth=1.0) for one in message.appraisals))]
        if isinstance(message, BeliefMessage) and habit == "two values":
            return [replace(message, value=float(self._rng.normal()))]
        if isinstance(message, BeliefMessage) and habit == "pushes":
            return [replace(message, value=float(self._rng.choice(PUSHES)))]
        return [self._bent_gossip(habit, message)] if isinstance(message, GossipMessage) else [message]

    def _bent_gossip(self, habit: str, message: GossipMessage) -> GossipMessage:
        if habit in ("two values", "out of range", "boasts", "forges values"):
            entries = tuple(self._bent_entry(habit, entry, message.receiver) for entry in message.entries)
            return replace(message, entries=entries)
        if habit in ("two votes", "votes for all", "forges votes"):
            return replace(message, votes=(*message.votes, *self._more_votes(habit, message)))
        if habit == "rounds":
            return replace(message, round=int(self._rng.integers(0, self._flood_rounds + 3)))
        if habit == "late" and message.round < self._flood_rounds:
            return replace(message, entries=tuple(one for one in message.entries if one.client != self._client))
        return message

    def _bent_entry(self, habit: str, entry: Entry, receiver: int) -> Entry:
        if not isinstance(entry, SignedValue):
            return entry
        if habit == "forges values" and entry.client != self._client:
            return replace(entry, mean=1.0, signature=self._signer.sign(entry.content))
        if entry.client != self._client:
            return entry
        if habit == "two values":
            return self._signed(replace(entry, belief=receiver / self._clients))
        if habit == "out of range":
            return self._signed(replace(entry, belief=float(self._rng.choice([2.0, -1.0, np.inf]))))
        return self._signed(replace(entry, mean=float(self._rng.choice([0.0, 1.0, np.nan]))))

    def _signed(self, value: SignedValue) -> SignedValue:
        return replace(value, signature=self._signer.sign(value.content))

    def _more_votes(self, habit: str, message: GossipMessage) -> list[Vote]:
        fitting = [
            one for one in self._statements.values() if (one.slot, one.previous) == (message.slot, message.previous)
        ]
        if habit == "forges votes":
            victim = int(self._rng.integers(self._clients))
            return [Vote(one, victim, self._signer.sign(one.content)) for one in fitting]
        if habit == "two votes":
            fitting = [replace(one, cohort=self._other_cohort(len(one.cohort), message.receiver)) for one in fitting]
        return [Vote(one, self._client, self._signer.sign(one.content)) for one in fitting]

    def _other_cohort(self, budget: int, receiver: int) -> tuple[int, ...]:
        return tuple(sorted((receiver + step) % self._clients for step in range(budget)))

    def _replayed(self, receiver: int) -> list[Message]:
        if not self._overheard or self._rng.random() < 0.5:
            return []
        old = self._overheard[int(self._rng.integers(len(self._overheard)))]
        return [replace(old, sender=self._client, receiver=receiver)]
