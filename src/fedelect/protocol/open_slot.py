"""A peer's state of the open slot, and the messages that follow from it.

It does not check signatures and history; its input has been checked.

Time is counted in ticks, the resend intervals. A neighbour that is silent for `silent_intervals` ticks has gone. A lost
neighbour, which the host's links cannot reach, has gone at once; if all are lost, this peer itself is cut off and waits
as usual. Giving up wrongly costs a decision at worst, never agreement.

A neighbour may send messages but not the awaited one. Where peers only crash, it is waiting itself and is given up
later: after as long as an honest neighbour may have to wait for f others that have gone. A Byzantine one can do so in
every round; then the clock ends the exchange of beliefs and each window of the flood, for all peers alike.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np

from fedelect.equations.beliefs import evidence_belief
from fedelect.protocol.belief_exchange import BeliefExchange, Outgoing
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.effects import BeliefSettled, Deadline, Effect, Send, SetDeadline, SlotSkipped, Wait
from fedelect.protocol.election import CohortHistory, cohort_worth, elect_cohort
from fedelect.protocol.flood import Flood
from fedelect.protocol.gossip import Ballots, Entry, Relayed
from fedelect.protocol.messages import BeliefMessage, GossipMessage
from fedelect.protocol.proofs import Proof
from fedelect.protocol.statements import (
    Appraisal,
    Certificate,
    SignedValue,
    Statement,
    Vote,
    canonical_float,
    map_hash,
    relay_content,
    seal_map,
)
from fedelect.protocol.transitions import State
from fedelect.vocabulary import Ints


class Attendance:
    """One peer's neighbours in one slot.

    Args:
        neighbours: Their numbers.
        silent_intervals: Ticks of silence after which a neighbour has gone.
        limit: Ticks after which a neighbour that sends other messages than the awaited one has gone; None for never.
        lost: Neighbours that cannot be reached. Not copied: it outlives the slot.
    """

    def __init__(
        self, neighbours: Iterable[int], *, silent_intervals: int, limit: int | None, lost: set[int] | None = None
    ) -> None:
        self._silent = dict.fromkeys(neighbours, 0)
        self._owing = dict.fromkeys(self._silent, 0)
        self._silent_intervals = silent_intervals
        self._limit = math.inf if limit is None else limit
        self._lost = set() if lost is None else lost

    def hear(self, neighbour: int) -> None:
        """Note a message from `neighbour` in this slot; it is not lost either."""
        self._silent[neighbour] = 0
        self._lost.discard(neighbour)

    def tick(self, awaited: Iterable[int]) -> None:
        """Count a resend interval in which these neighbours were awaited."""
        waiting = set(awaited)
        for neighbour in self._silent:
            self._silent[neighbour] += 1
            if self._owing[neighbour] < self._limit:  # given up once is given up for the slot
                self._owing[neighbour] = self._owing[neighbour] + 1 if neighbour in waiting else 0

    def has_gone(self, neighbour: int) -> bool:
        """Whether to continue without `neighbour`."""
        if neighbour in self._lost and len(self._lost) < len(self._silent):
            return True
        return self._silent[neighbour] >= self._silent_intervals or self._owing[neighbour] >= self._limit


class OpenSlot:
    """One client's slot: belief exchange, flood, votes, and attendance of the neighbours.

    Args:
        config: What all peers share.
        client: This client.
        slot: The slot to elect for.
        previous: Identity of the certificate that it builds on.
        lost: Neighbours that cannot be reached; see `Attendance`.
        sign: Signs with this client's key.
    """

    def __init__(
        self,
        config: PeerConfig,
        client: int,
        slot: int,
        previous: bytes,
        lost: set[int],
        sign: Callable[[bytes], bytes],
    ) -> None:
        self._config = config
        self._settings = config.settings
        self._client = client
        self._slot = slot
        self._couplings = config.neighbours[client]
        self.exchange: BeliefExchange | None = None
        self._settled: BeliefSettled | None = None
        self.available: tuple[int, ...] | None = None  # clients that can train; None means all
        self.voted: tuple[Statement, tuple[float, ...]] | None = None  # statement and indices
        silent_intervals = self._settings.silent_intervals
        limit = None if self._settings.byzantine else (self._settings.max_faulty + 2) * silent_intervals
        self.attendance = Attendance(self._couplings, silent_intervals=silent_intervals, limit=limit, lost=lost)
        self._sign = sign
        self._ticks = 0
        self.rebase(previous)

    def rebase(self, previous: bytes) -> None:
        """Build on another certificate; values and votes on top of the former one are dropped."""
        self.previous = previous
        config = self._config
        self.flood = Flood(
            self._couplings, windows=config.windows, window_rounds=config.window_rounds, pass_on=self._pass_on
        )
        self._ticks = min(self._ticks, config.exchange_intervals)  # the windows begin anew
        self.ballots = Ballots(self._couplings, self._config.quorum)

    def _pass_on(self, entry: Entry) -> tuple[int, bytes]:
        value = entry if isinstance(entry, SignedValue) else None
        content = relay_content(self._config.digest, self._slot, self.previous, entry.client, value)
        return self._client, self._sign(content)

    def start(self, opinion: float) -> list[Effect]:
        """Set the deadlines and, unless the belief follows from the opinion alone, begin round 1 of the exchange."""
        waits = ((Wait.SLOT, self._settings.slot_s), (Wait.RESEND, self._settings.resend_s))
        effects: list[Effect] = [SetDeadline(Deadline(wait, self._slot), after_s) for wait, after_s in waits]
        if self._settings.reading == "evidence":
            self._settled = BeliefSettled(self._slot, float(evidence_belief(np.array(opinion))), 0.0)
            return effects
        return effects + self._start_exchange(opinion)

    @property
    def settled(self) -> BeliefSettled | None:
        """The settled belief; None while messages are awaited."""
        exchange = self.exchange
        if self._settled is None and exchange is not None and exchange.done:
            self._settled = BeliefSettled(self._slot, exchange.belief, exchange.residual)
        return self._settled

    def claim(self, mean: float, belief: float, blind: bytes) -> SignedValue:
        """This client's value, not signed yet."""
        numbers = canonical_float(mean), canonical_float(belief)
        return SignedValue(self._config.digest, self._slot, self.previous, self._client, *numbers, blind)

    def _start_exchange(self, opinion: float) -> list[Effect]:
        self.exchange = BeliefExchange(
            tuple(self._couplings),
            np.array(list(self._couplings.values())),
            rounds=self._settings.rounds,
            damping=self._settings.damping,
            opinion=opinion,
        )
        return [*self._beliefs(self.exchange.start()), *self.forgo_gone()]

    def receive_belief(self, message: BeliefMessage) -> list[Effect]:
        """Take in a neighbour's message of one round."""
        self.attendance.hear(message.sender)
        if self.exchange is None or self.exchange.done:
            return []
        outgoing = self.exchange.receive(message.round, message.sender, message.value)
        return [*self._beliefs(outgoing), *self.forgo_gone()]

    def begin_flood(self, value: SignedValue) -> None:
        """Allow round 1, with this client's own value in the map."""
        self.flood.learn([Relayed(value)], own=True)
        self.flood.begun = True

    def advance(self) -> list[Effect]:
        """End all rounds of flooding that can be ended now."""
        effects: list[Effect] = []
        while self.flood.advance(self.attendance.has_gone) and not self.flood.frozen:
            effects += [self._gossip(neighbour, self.flood.open_round(neighbour)) for neighbour in self._couplings]
        return effects

    def receive_gossip(
        self, message: GossipMessage, contradictions: Iterable[Proof]
    ) -> tuple[list[Proof], list[Effect]]:
        """Take in a neighbour's checked entries, votes and contradictions; returns all proofs, and votes to relay."""
        self.attendance.hear(message.sender)
        proofs = self.flood.learn(message.entries, source=message.sender, round_number=message.round)
        proofs += self.flood.learn(map(Relayed, contradictions))
        fresh, twice = self.ballots.learn(message.votes, source=message.sender)
        return [*proofs, *twice], self._spread(fresh)

    def elect(self, pulls: Ints, played: Callable[[float], CohortHistory]) -> tuple[Statement, list[Appraisal]]:
        """The statement to vote for, given the frozen map, and under "bp-gp" the appraisal behind it.

        Args:
            pulls: (N,) elections of each client.
            played: Statistics of the cohorts of history, given the worth of the last.

        Raises:
            AvailabilityError: Too few clients can be elected.
        """
        config, values = self._config, self.flood.frozen_values()
        hashed = map_hash(values, self.available)
        by_set = config.settings.rule == "bp-gp"
        worth = cohort_worth(values, config.clients) if by_set else math.nan
        past = played(worth) if by_set else None
        cohort, indices = elect_cohort(
            values, pulls=pulls, config=config, slot=self._slot, available=self.available, played=past
        )
        shown = seal_map(hashed, worth) if by_set else hashed
        statement = Statement(config.digest, self._slot, self.previous, cohort, shown)
        self.voted = (statement, indices)
        return statement, [Appraisal(statement.identity, hashed, worth)] if by_set else []

    def indices_of(self, certificate: Certificate) -> tuple[float, ...]:
        """The indices behind a certificate, if this client voted for its statement; else empty."""
        return self.voted[1] if self.voted is not None and self.voted[0] == certificate.statement else ()

    def cast(self, vote: Vote) -> list[Effect]:
        """Send this client's own vote to all neighbours, with the entries that they lack."""
        self.ballots.learn([vote])
        return [self._gossip(n, self.flood.open_round(n), (vote,)) for n in self._couplings]

    def tick(self) -> None:
        """Count a resend interval for the neighbours that are awaited and, with Byzantine ones, for the phase."""
        exchanging = self.exchange is not None and not self.exchange.done
        self.attendance.tick(self.exchange.missing() if self.exchange and exchanging else self.flood.missing())
        self._ticks += 1
        if self._settings.byzantine:
            spent = self._ticks - self._config.exchange_intervals
            self.flood.end_windows(max(spent, 0) // self._config.window_intervals)

    def forgo_gone(self) -> list[Effect]:
        """Stop waiting for belief messages of neighbours that have gone, and for all once the exchange is over."""
        effects: list[Effect] = []
        exchange = self.exchange
        over = self._settings.byzantine and self._ticks >= self._config.exchange_intervals
        while exchange is not None and (gone := [n for n in exchange.missing() if over or self.attendance.has_gone(n)]):
            effects += self._beliefs(exchange.forgo(gone[0]))
        return effects

    def resend(self) -> list[Effect]:
        """Send every neighbour what it has not acknowledged, and ask for a reply."""
        return [effect for neighbour in self._couplings for effect in self.resend_to(neighbour)]

    def resend_to(self, neighbour: int) -> list[Effect]:
        """Resend to one neighbour."""
        effects: list[Effect] = []
        if self.exchange is not None and not self.flood.latest_round(neighbour):
            effects += self._beliefs(self.exchange.unacknowledged(neighbour))
        entries, votes = self.flood.repeat(neighbour), self.ballots.unacknowledged(neighbour)
        return [*effects, self._gossip(neighbour, entries, votes, wants_reply=True)]

    def _gossip(
        self,
        neighbour: int,
        entries: tuple[Relayed, ...],
        votes: tuple[Vote, ...] = (),
        *,
        wants_reply: bool = False,
    ) -> Send:
        return Send(
            GossipMessage(
                self._config.digest,
                self._client,
                neighbour,
                self._slot,
                self.previous,
                self.flood.round,
                entries,
                votes,
                wants_reply=wants_reply,
            )
        )

    def explain_skip(self, was: State) -> SlotSkipped:
        """The reason for skipping the slot at its deadline."""
        if was is State.EXCHANGING:
            assert self.exchange is not None  # it is there as long as the state is EXCHANGING
            missing, what = self.exchange.missing(), f"belief messages of round {self.exchange.round} from neighbours"
        elif was is State.SETTLED:
            missing, what = (self._client,), "its own host to propose; that is client"
        elif was is State.FLOODING and self.flood.frozen:
            missing, what = tuple(self._couplings), "the worth of earlier cohorts, without which it does not vote, from"
        elif was is State.FLOODING:
            missing, what = self.flood.missing(), f"round {self.flood.round} of the flood from neighbours"
        else:
            voters = set(self.ballots.voters())
            missing = tuple(client for client in range(self._config.clients) if client not in voters)
            what = f"{self._config.quorum} equal votes, got {self.ballots.most()}; no vote came from clients"
        seconds = f"client {self._client} waited {self._settings.slot_s:g} s for"
        return SlotSkipped(self._slot, f"{seconds} {what} {', '.join(map(str, missing)) or 'none'}", missing)

    def _spread(self, votes: Iterable[Vote]) -> list[Effect]:
        effects: list[Effect] = []
        fresh = tuple(votes)
        for neighbour in self._couplings if fresh else ():
            lacking = self.ballots.missing_at(neighbour, fresh)
            if lacking:
                effects.append(self._gossip(neighbour, (), lacking))
        return effects

    def _beliefs(self, outgoing: Iterable[Outgoing]) -> list[Effect]:
        return [
            Send(BeliefMessage(self._config.digest, self._client, receiver, self._slot, self.previous, number, value))
            for number, receiver, value in outgoing
        ]
