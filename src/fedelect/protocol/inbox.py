"""Checks of incoming messages, and a buffer for those that arrive too early.

Only what follows from the message alone is checked here. Signatures, and what depends on history, are checked for new
values and votes (`fedelect.protocol.memory`). An honest peer relays only what it has checked, so a failed check is the
sender's fault.
"""

import math
from collections import Counter

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.chain import HISTORY_LIMIT, statement_fault
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.gossip import Relayed
from fedelect.protocol.messages import (
    AppraisalMessage,
    AppraisalRequest,
    BeliefMessage,
    GossipMessage,
    HistoryRequest,
    Message,
    Reply,
    Request,
)
from fedelect.protocol.statements import SignedValue

_LONGEST_LOCATOR = 100  # identities in a request; doubling steps need fewer for any history

_ROUNDED_UP, _ROUNDED_OFF = 1.05, 1e-9  # where tanh(J) is next to 1, a message may come out up to 3 % above |J|


def check_message(message: Message, *, config: PeerConfig, client: int) -> None:
    """Raise RemoteProtocolError unless this is a valid message from a neighbour to `client` under `config`."""
    sender = message.sender
    if message.configuration != config.digest:
        raise RemoteProtocolError(
            f"client {sender} runs under configuration {message.configuration.hex()}, client {client} under "
            f"{config.digest.hex()}; start all peers with the same one"
        )
    if message.receiver != client or sender not in config.neighbours[client]:
        raise RemoteProtocolError(
            f"client {client} got a message from client {sender} to client {message.receiver}; "
            f"it takes messages to itself from its neighbours {list(config.neighbours[client])}"
        )
    if isinstance(message, Request | Reply):
        _check_history(message, config)
        return
    if message.slot < 1:
        raise RemoteProtocolError(f"client {sender} spoke of slot {message.slot}; slots are numbered from 1")
    if isinstance(message, BeliefMessage):
        _check_belief(message, config, config.neighbours[client][sender])
    else:
        _check_gossip(message, config)


def _check_history(message: Request | Reply, config: PeerConfig) -> None:
    limit = _LONGEST_LOCATOR if isinstance(message, HistoryRequest) else HISTORY_LIMIT
    items: tuple[object, ...]
    if isinstance(message, AppraisalRequest | AppraisalMessage):
        if config.settings.rule != "bp-gp":
            raise RemoteProtocolError(
                f"client {message.sender} spoke of appraisals; the rule {config.settings.rule} has none"
            )
        items = message.certificates if isinstance(message, AppraisalRequest) else message.appraisals
    else:
        items = message.locator if isinstance(message, HistoryRequest) else message.certificates
    if not 0 < len(items) <= limit:
        raise RemoteProtocolError(
            f"client {message.sender} sent {len(items)} items of history; 1 to {limit} are allowed"
        )


def _check_belief(message: BeliefMessage, config: PeerConfig, coupling: float) -> None:
    if config.settings.reading == "evidence":
        raise RemoteProtocolError(f'client {message.sender} sent a belief message; the "evidence" reading has none')
    if not 1 <= message.round <= config.settings.rounds:
        raise RemoteProtocolError(f"client {message.sender} sent round {message.round} of {config.settings.rounds}")
    if not math.isfinite(message.value):
        raise RemoteProtocolError(f"client {message.sender} sent the message {message.value!r}; it must be finite")
    # tanh(nu) = tanh(J) tanh(cavity), and damping only mixes such messages: no honest one is larger than the coupling.
    if abs(message.value) > _ROUNDED_UP * abs(coupling) + _ROUNDED_OFF:
        raise RemoteProtocolError(
            f"client {message.sender} sent the message {message.value!r} over a link of coupling {coupling!r}, which "
            "lets none through that is larger than itself"
        )


def _check_gossip(message: GossipMessage, config: PeerConfig) -> None:
    sender = message.sender
    if not 0 <= message.round <= config.flood_rounds + 1:
        raise RemoteProtocolError(f"client {sender} sent flood round {message.round} of {config.flood_rounds}")
    if _repeats(message) or len(message.votes) > 2 * config.clients:
        raise RemoteProtocolError(
            f"client {sender} repeats itself: two values, one proof and two votes of a client at most"
        )
    for one in message.entries:
        _check_relayed(message, one, config)
    for vote in message.votes:
        fault = statement_fault(vote.statement, config)
        if fault is not None or not 0 <= vote.client < config.clients:
            raise RemoteProtocolError(f"client {sender} relayed a vote of client {vote.client}: {fault or 'unknown'}")
        _check_context(message, vote.statement.configuration, vote.statement.slot, vote.statement.previous)


def _repeats(message: GossipMessage) -> bool:
    entries = [one.entry for one in message.entries]
    values = [entry for entry in entries if isinstance(entry, SignedValue)]
    proven = [entry.client for entry in entries if not isinstance(entry, SignedValue)]
    most = max(Counter(value.client for value in values).values(), default=0)
    return most > 2 or len(set(values)) < len(values) or len(set(proven)) < len(proven)


def _check_relayed(message: GossipMessage, one: Relayed, config: PeerConfig) -> None:
    sender, entry = message.sender, one.entry
    if not 0 <= entry.client < config.clients:
        raise RemoteProtocolError(f"client {sender} spoke of client {entry.client}; there are 0..{config.clients - 1}")
    if isinstance(entry, SignedValue):
        fault = entry.fault()
        if fault is not None:
            raise RemoteProtocolError(f"client {sender} relayed a value of client {entry.client}: {fault}")
        _check_context(message, entry.configuration, entry.slot, entry.previous)
    relays = [relay for relay, _ in one.signatures]
    if sorted(set(relays)) != relays or not all(0 <= relay < config.clients for relay in relays):
        raise RemoteProtocolError(f"client {sender} named relays that are not different clients in order: {relays}")
    if entry.client in relays or (relays and config.windows == 1):
        raise RemoteProtocolError(
            f"client {sender} named clients {relays} as relays of an entry about client {entry.client}, which signs "
            f"nothing twice; where peers only crash nobody signs what it passes on"
        )


def _check_context(message: GossipMessage, configuration: bytes, slot: int, previous: bytes) -> None:
    if (configuration, slot, previous) != (message.configuration, message.slot, message.previous):
        raise RemoteProtocolError(
            f"client {message.sender} put into a message about slot {message.slot} what was signed for slot {slot}, "
            "another history or another election"
        )


class EarlyMessages:
    """Buffer for messages of slots that have not begun here: the newest of each neighbour, so its size is bounded.

    That is enough: a waiting neighbour repeats round 1, and a gossip message holds all that we have not acknowledged.
    """

    def __init__(self) -> None:
        self._beliefs: dict[int, BeliefMessage] = {}
        self._gossip: dict[int, GossipMessage] = {}

    def keep(self, message: BeliefMessage | GossipMessage) -> None:
        """Keep `message` for its slot."""
        sender = message.sender
        if isinstance(message, BeliefMessage):
            if message.round == 1 and (sender not in self._beliefs or self._beliefs[sender].slot < message.slot):
                self._beliefs[sender] = message
            return
        held = self._gossip.get(sender)
        if held is None or (held.slot, held.round) <= (message.slot, message.round):
            self._gossip[sender] = message

    def take(self, slot: int) -> list[BeliefMessage | GossipMessage]:
        """Remove and return the messages of `slot`, in client order; drop those of earlier slots."""
        taken: list[BeliefMessage | GossipMessage] = []
        kept: dict[int, BeliefMessage] | dict[int, GossipMessage]
        for kept in (self._beliefs, self._gossip):
            for sender in sorted(kept):
                if kept[sender].slot == slot:
                    taken.append(kept[sender])
                if kept[sender].slot <= slot:
                    del kept[sender]
        return taken
