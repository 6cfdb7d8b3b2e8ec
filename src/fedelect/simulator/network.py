"""A simulated network: a virtual clock, links that delay, lose, repeat or cut messages, and peers that crash.

Events are in a heap ordered by (virtual time, order of scheduling), and every link draws from a stream of its own, so
runs repeat exactly. Nothing can hang: delays are positive and the clock has a limit.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedelect.errors import ConfigurationError, RemoteProtocolError
from fedelect.protocol import Peer
from fedelect.protocol.effects import Deadline, Effect, Send, SetDeadline
from fedelect.protocol.messages import Message
from fedelect.seeds import stream

EffectHandler = Callable[[int, Effect], list[Effect]]
"""Carries out (client, effect) for all effects but messages and deadlines; returns the effects that follow."""

RefusalHandler = Callable[[int, Message, RemoteProtocolError], None]
"""Called with (client, message, reason) when a peer refuses a message."""

Relay = Callable[[Message], Iterable[Message]]
"""Maps a message that a peer sends to the messages that go out; for observers and Byzantine clients."""

Action = Callable[[], None]
"""A call at a moment of virtual time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkConditions:
    """How links treat messages. Messages overtake each other when delays differ.

    Attributes:
        shortest_delay_s: Least delay of a message, > 0.
        longest_delay_s: Greatest delay; each message's is uniform in between.
        loss: Probability that a message is lost, in [0, 1].
        repetition: Probability that a message that is not lost arrives twice, in [0, 1].
    """

    shortest_delay_s: float = 0.01
    longest_delay_s: float = 0.05
    loss: float = 0.0
    repetition: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.shortest_delay_s <= self.longest_delay_s < float("inf"):
            raise ConfigurationError(
                f"delays must satisfy 0 < shortest <= longest, got {self.shortest_delay_s!r} and "
                f"{self.longest_delay_s!r} seconds"
            )
        for name, probability in (("loss", self.loss), ("repetition", self.repetition)):
            if not 0.0 <= probability <= 1.0:
                raise ConfigurationError(f"{name} must be a probability in [0, 1], got {probability!r}")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counts of messages in one run.

    Attributes:
        sent: Messages that peers sent.
        lost: How many of them the links lost.
        delivered: Messages that arrived before the end, repetitions included.
        virtual_s: Virtual seconds until the end.
        timed_out: Whether the end was the limit of the clock.
        refused: Messages that their receiver refused.
    """

    sent: int
    lost: int
    delivered: int
    virtual_s: float
    timed_out: bool
    refused: int = 0


class Network:
    """Carries out the effects of peers under a virtual clock that starts at 0.

    Args:
        peers: One for each client, in client order; the list may be changed, see `restart`.
        host: Carries out the effects that are for the host.
        conditions: How links treat messages.
        seed: With `name`, names the streams of the links.
        name: Name of this run, for example ("slot", 3).
        limit_s: Virtual seconds after which everything stops.
        on_refusal: Called for each refused message; None raises, for honest peers send none.
        relay: Replaces messages between peers and links; None sends them as they are.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        host: EffectHandler,
        conditions: LinkConditions,
        *,
        seed: int,
        name: tuple[str | int, ...] = (),
        limit_s: float,
        on_refusal: RefusalHandler | None = None,
        relay: Relay | None = None,
    ) -> None:
        self._peers = list(peers)
        self._host = host
        self._conditions = conditions
        self._seed, self._name = seed, name
        self._limit_s = limit_s
        self._on_refusal = on_refusal
        self._relay = relay
        self._links: dict[tuple[int, int], np.random.Generator] = {}
        self._heap: list[tuple[float, int, int, int, Message | Deadline | Action]] = []
        self._lives = [0] * len(self._peers)  # restarts; deadlines from before a restart are void
        self._down: set[int] = set()
        self._sides: tuple[frozenset[int], ...] = ()
        self._posted = 0
        self._now_s = 0.0
        self._sent = self._lost = self._delivered = self._refused = 0

    @property
    def now_s(self) -> float:
        """Virtual seconds since the start."""
        return self._now_s

    def carry_out(self, client: int, effects: Sequence[Effect]) -> None:
        """Carry out the effects of `client`, and those that the host returns, in order."""
        waiting = list(effects)
        while waiting and client not in self._down:
            effect = waiting.pop(0)
            if isinstance(effect, Send):
                for message in (effect.message,) if self._relay is None else self._relay(effect.message):
                    self.send(message)
            elif isinstance(effect, SetDeadline):
                self._schedule(effect.after_s, client, effect.deadline)
            else:
                waiting = self._host(client, effect) + waiting

    def send(self, message: Message) -> None:
        """Put a message on its link, which may delay, lose or repeat it."""
        self._sent += 1
        luck = self._link(message.sender, message.receiver).random(4)
        if luck[0] < self._conditions.loss or self._cut(message.sender, message.receiver):
            self._lost += 1
            return
        shortest, longest = self._conditions.shortest_delay_s, self._conditions.longest_delay_s
        for delay in luck[2 : 4 if luck[1] < self._conditions.repetition else 3]:
            self._schedule(shortest + float(delay) * (longest - shortest), message.receiver, message)

    def call_after(self, after_s: float, action: Action) -> None:
        """Call `action` after `after_s` virtual seconds."""
        self._schedule(after_s, -1, action)

    def crash(self, client: int) -> None:
        """Stop the peer of `client` at once; messages to it are lost."""
        self._down.add(client)

    def restart(self, client: int, peer: Peer) -> None:
        """Replace the crashed peer by `peer`, made from its records."""
        self._down.discard(client)
        self._lives[client] += 1
        self._peers[client] = peer

    def partition(self, *sides: frozenset[int]) -> None:
        """Cut the links between these sets of clients; without any, restore all links."""
        self._sides = sides

    def run(self, finished: Callable[[], bool]) -> Traffic:
        """Let time pass until `finished()`, or nothing is left to happen, or the limit of the clock."""
        timed_out = False
        while self._heap and not finished():
            if self._heap[0][0] > self._limit_s:
                self._now_s, timed_out = self._limit_s, True
                break
            self._now_s, _, client, life, event = heapq.heappop(self._heap)
            if callable(event):
                event()
            elif isinstance(event, Deadline):
                if client not in self._down and life == self._lives[client]:
                    self.carry_out(client, self._peers[client].deadline_passed(event))
            else:
                self._deliver(client, event)
        return Traffic(self._sent, self._lost, self._delivered, self._now_s, timed_out, self._refused)

    def _deliver(self, client: int, message: Message) -> None:
        if client in self._down:
            self._lost += 1
            return
        self._delivered += 1
        try:
            effects = self._peers[client].receive(message)
        except RemoteProtocolError as error:
            if self._on_refusal is None:
                raise
            self._refused += 1
            self._on_refusal(client, message, error)
            return
        self.carry_out(client, effects)

    def _cut(self, sender: int, receiver: int) -> bool:
        return any((sender in side) != (receiver in side) for side in self._sides)

    def _link(self, sender: int, receiver: int) -> np.random.Generator:
        link = self._links.get((sender, receiver))
        if link is None:
            link = stream(self._seed, "network", *self._name, sender, receiver)
            self._links[sender, receiver] = link
        return link

    def _schedule(self, after_s: float, client: int, event: Message | Deadline | Action) -> None:
        self._posted += 1  # order of simultaneous events; the heap never compares the events
        life = self._lives[client] if client >= 0 else 0
        heapq.heappush(self._heap, (self._now_s + after_s, self._posted, client, life, event))
