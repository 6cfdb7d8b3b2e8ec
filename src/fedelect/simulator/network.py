"""Peers in one process: a virtual clock, links that delay, lose and repeat messages, no waiting.

Events lie in a heap ordered by (virtual time, order of posting), and every link draws its luck from a stream of its
own, so a run is the same whenever it is repeated. Nothing can hang: delays are positive and the clock has a limit.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.protocol import Deadline, Effect, Message, Peer, Send, SetDeadline
from fedelect.seeds import stream

Host = Callable[[int, Effect], list[Effect]]
"""Told (client, effect) of whatever is not the network's business; returns the effects of what it did then."""


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
    """What went over the links.

    Attributes:
        sent: Messages that peers sent.
        lost: How many of them the links lost.
        delivered: Messages that arrived before the end, repetitions included.
        virtual_s: Virtual seconds until the end.
        timed_out: Whether the end was the limit of the clock.
    """

    sent: int
    lost: int
    delivered: int
    virtual_s: float
    timed_out: bool


class Network:
    """Carries out the effects of peers under a virtual clock that starts at 0.

    Args:
        peers: One for each client, in client order.
        host: What to do with effects that are for the host.
        conditions: How links treat messages.
        seed: With `name`, names the streams of the links.
        name: What this run is called, for example ("slot", 3).
        limit_s: Virtual seconds after which everything stops.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        host: Host,
        conditions: LinkConditions,
        *,
        seed: int,
        name: tuple[str | int, ...] = (),
        limit_s: float,
    ) -> None:
        self._peers = peers
        self._host = host
        self._conditions = conditions
        self._seed, self._name = seed, name
        self._limit_s = limit_s
        self._links: dict[tuple[int, int], np.random.Generator] = {}
        self._heap: list[tuple[float, int, int, Message | Deadline]] = []
        self._posted = 0
        self._now_s = 0.0
        self._sent = self._lost = self._delivered = 0

    def post(self, client: int, effects: Sequence[Effect]) -> None:
        """Carry out the effects of `client`, and those that the host answers with, in order."""
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, Send):
                self._send(effect.message)
            elif isinstance(effect, SetDeadline):
                self._schedule(effect.after_s, client, effect.deadline)
            else:
                waiting = self._host(client, effect) + waiting

    def run(self, finished: Callable[[], bool]) -> Traffic:
        """Let time pass until `finished()`, or nothing is left to happen, or the limit of the clock."""
        timed_out = False
        while self._heap and not finished():
            if self._heap[0][0] > self._limit_s:
                self._now_s, timed_out = self._limit_s, True
                break
            self._now_s, _, client, event = heapq.heappop(self._heap)
            if isinstance(event, Deadline):
                self.post(client, self._peers[client].deadline_passed(event))
            else:
                self._delivered += 1
                self.post(client, self._peers[client].receive(event))
        return Traffic(self._sent, self._lost, self._delivered, self._now_s, timed_out)

    def _send(self, message: Message) -> None:
        self._sent += 1
        luck = self._link(message.sender, message.receiver).random(4)
        if luck[0] < self._conditions.loss:
            self._lost += 1
            return
        shortest, longest = self._conditions.shortest_delay_s, self._conditions.longest_delay_s
        for delay in luck[2 : 4 if luck[1] < self._conditions.repetition else 3]:
            self._schedule(shortest + float(delay) * (longest - shortest), message.receiver, message)

    def _link(self, sender: int, receiver: int) -> np.random.Generator:
        link = self._links.get((sender, receiver))
        if link is None:
            link = stream(self._seed, "network", *self._name, sender, receiver)
            self._links[sender, receiver] = link
        return link

    def _schedule(self, after_s: float, client: int, event: Message | Deadline) -> None:
        self._posted += 1  # settles the order of events at one moment, and keeps the heap from comparing them
        heapq.heappush(self._heap, (self._now_s + after_s, self._posted, client, event))
