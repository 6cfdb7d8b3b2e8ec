"""What a peer checks before it takes a message in, and where it keeps those that come too early."""

import math

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.cohort_gossip import merge
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.messages import BeliefMessage, Claim, GossipMessage, Message


def check_message(message: Message, *, config: PeerConfig, client: int, neighbours: tuple[int, ...]) -> None:
    """Raise RemoteProtocolError unless this is a sound message from a neighbour to `client` under `config`."""
    sender = message.sender
    if message.configuration != config.digest:
        raise RemoteProtocolError(
            f"client {sender} runs under configuration {message.configuration!r}, client {client} under "
            f"{config.digest!r}; start all peers with the same one"
        )
    if message.receiver != client or sender not in neighbours:
        raise RemoteProtocolError(
            f"client {client} got a message from client {sender} to client {message.receiver}; "
            f"it takes messages to itself from its neighbours {list(neighbours)}"
        )
    if message.slot < 1:
        raise RemoteProtocolError(f"client {sender} spoke of slot {message.slot}; slots are numbered from 1")
    if isinstance(message, BeliefMessage):
        _check_belief(message, config)
    else:
        _check_gossip(message, config)


def _check_belief(message: BeliefMessage, config: PeerConfig) -> None:
    if config.reading == "evidence":
        raise RemoteProtocolError(f'client {message.sender} sent a belief message; the "evidence" reading has none')
    if not 1 <= message.round <= config.rounds:
        raise RemoteProtocolError(f"client {message.sender} sent round {message.round} of {config.rounds}")
    if not math.isfinite(message.value):
        raise RemoteProtocolError(f"client {message.sender} sent the message {message.value!r}; it must be finite")


def _check_gossip(message: GossipMessage, config: PeerConfig) -> None:
    for client, entry in message.values.items():
        if not 0 <= client < config.clients:
            raise RemoteProtocolError(
                f"client {message.sender} relayed a claim of client {client}; there are 0..{config.clients - 1}"
            )
        fault = entry.fault() if isinstance(entry, Claim) else None
        if fault is not None:
            raise RemoteProtocolError(f"client {message.sender} relayed a claim of client {client}: {fault}")


class EarlyMessages:
    """Messages of slots that have not begun here: of each neighbour the newest slot's, so the room is bounded.

    A neighbour cannot get past round 1 without us, so one belief message and one merged map are all there can be.
    What is not kept is sent again by its sender.
    """

    def __init__(self) -> None:
        self._beliefs: dict[int, BeliefMessage] = {}
        self._gossip: dict[int, GossipMessage] = {}

    def keep(self, message: Message) -> None:
        """Keep `message` for its slot."""
        sender = message.sender
        if isinstance(message, BeliefMessage):
            if message.round == 1 and (sender not in self._beliefs or self._beliefs[sender].slot < message.slot):
                self._beliefs[sender] = message
            return
        held = self._gossip.get(sender)
        if held is None or held.slot < message.slot:
            self._gossip[sender] = message
        elif held.slot == message.slot:
            self._gossip[sender] = GossipMessage(
                message.configuration,
                message.slot,
                sender,
                message.receiver,
                merge(held.values, message.values),
                wants_reply=held.wants_reply or message.wants_reply,
            )

    def take(self, slot: int) -> list[Message]:
        """Give out the messages of `slot`, in client order, and forget those of slots before."""
        taken: list[Message] = []
        for kept in (self._beliefs, self._gossip):
            for sender in sorted(kept):
                if kept[sender].slot == slot:
                    taken.append(kept[sender])
                if kept[sender].slot <= slot:
                    del kept[sender]
        return taken
