"""One peer's belief propagation in synchronous rounds, for messages in any order.

In round r a peer sends each neighbour the message computed from the messages of round r - 1 (all 0 in round 0), then
waits for round r from all neighbours. A neighbour can be at most one round ahead, for it waits too; that message is
kept until its round. Sums run in order of the sending client, so arrival order cannot change a float and the result
equals `fedelect.equations.beliefs.settle` to the bit.

A message of round r + 1 acknowledges ours of round r; there is no other acknowledgement. The messages of a neighbour
that has gone are 0 from then on. Beliefs need no agreement, so peers may differ about when a neighbour has gone.
"""

import math
from collections.abc import Sequence

import numpy as np

from fedelect.equations.beliefs import belief_up, local_field, message_change, outgoing_messages
from fedelect.vocabulary import Floats

Outgoing = tuple[int, int, float]
"""(round, receiver, value)."""


class BeliefExchange:
    """The rounds of one slot, as seen by one client.

    Args:
        neighbours: Sorted client numbers.
        couplings: (degree,) J of the link to each neighbour.
        rounds: Number of rounds, the same for all.
        damping: Share of the old message that is kept.
        opinion: The client's own opinion; nan if it has none.
    """

    def __init__(
        self, neighbours: Sequence[int], couplings: Floats, *, rounds: int, damping: float, opinion: float
    ) -> None:
        self._neighbours = tuple(neighbours)
        self._place = {neighbour: place for place, neighbour in enumerate(neighbours)}
        self._strengths = np.tanh(couplings)
        self._rounds = rounds
        self._damping = damping
        self._field = float(local_field(np.array(opinion)))
        degree = len(self._neighbours)
        self._gone: set[int] = set()
        self._received = [0] * degree  # latest round from each neighbour
        self._now = [math.nan] * degree  # messages of the present round
        self._ahead = [math.nan] * degree  # messages of the next round
        self._previous = np.zeros(degree)
        self._sent = np.zeros(degree)
        self.round = 0
        self.done = False

    def start(self) -> list[Outgoing]:
        """Begin round 1; without neighbours all rounds are done at once."""
        return [*self._next_round([0.0] * len(self._neighbours)), *self._advance()]

    def receive(self, round_number: int, sender: int, value: float) -> list[Outgoing]:
        """Take in a message; returns the messages to send.

        The first message of a round counts; repetitions, past rounds and rounds too far ahead (from a neighbour that
        went on without us) change nothing.
        """
        place = self._place[sender]
        if sender in self._gone or not self.round <= round_number <= self.round + 1:
            return []
        slots = self._now if round_number == self.round else self._ahead
        if not math.isnan(slots[place]):
            return []
        slots[place] = value
        self._received[place] = max(self._received[place], round_number)
        return self._advance()

    def forgo(self, neighbour: int) -> list[Outgoing]:
        """Stop waiting for `neighbour`: its missing messages are 0."""
        self._gone.add(neighbour)
        return self._advance()

    def missing(self) -> tuple[int, ...]:
        """The neighbours whose message of the present round is awaited."""
        arrived = zip(self._neighbours, self._now, strict=True)
        return tuple(n for n, value in arrived if math.isnan(value) and n not in self._gone)

    def unacknowledged(self, neighbour: int) -> list[Outgoing]:
        """Messages to `neighbour` that it has not acknowledged: at most the last two rounds."""
        place = self._place[neighbour]
        first = max(self._received[place], self.round - 1, 1)
        rounds = range(first, self.round + 1)
        values = {self.round - 1: self._previous, self.round: self._sent}
        return [(number, neighbour, float(values[number][place])) for number in rounds]

    @property
    def belief(self) -> float:
        """P(up), once all rounds are done."""
        return float(belief_up(np.array(self._field), np.array(_in_order(_fill(self._now)))))

    @property
    def residual(self) -> float:
        """Change of this peer's messages in its last round."""
        return message_change(self._sent, self._previous, damping=self._damping)

    def _advance(self) -> list[Outgoing]:
        outgoing: list[Outgoing] = []
        while not self.done and not self.missing():
            if self.round == self._rounds:
                self.done = True
            else:
                outgoing += self._next_round(_fill(self._now))
                self._now, self._ahead = self._ahead, [math.nan] * len(self._neighbours)
        return outgoing

    def _next_round(self, incoming: list[float]) -> list[Outgoing]:
        cavities = self._field + (_in_order(incoming) - np.array(incoming))
        self._previous, self._sent = (
            self._sent,
            outgoing_messages(cavities, self._strengths, self._sent, damping=self._damping),
        )
        self.round += 1
        return [(self.round, n, value) for n, value in zip(self._neighbours, self._sent.tolist(), strict=True)]


def _fill(messages: list[float]) -> list[float]:
    return [0.0 if math.isnan(message) else message for message in messages]


def _in_order(messages: list[float]) -> float:
    # Left to right from 0.0, as np.bincount adds them; sum() would compensate from Python 3.12 on.
    total = 0.0
    for message in messages:
        total += message
    return total
