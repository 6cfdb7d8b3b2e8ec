"""One client's side of the decentralised election: events in, effects out.

A peer knows its neighbours, its own opinion and what it is told. It has no clock, no sockets and no chance: the host
calls it when something happens and carries out the effects it returns. Every slot it settles its belief with its
neighbours, is told by the host what to claim, spreads claims until it knows all N, and computes the cohort of
the next slot from them. It never learns how a mean came about, and never sends an index.

Every wait ends: at the RESEND deadline it says again what a neighbour has not shown to have, so that a lost message
costs time only; at the SLOT deadline it gives the slot up and says whom it waited for.

Rule: whatever raises has changed nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fedelect.equations.beliefs import evidence_belief
from fedelect.equations.cold_start import ColdStart
from fedelect.errors import AvailabilityError, LocalProtocolError
from fedelect.protocol.belief_exchange import BeliefExchange, Outgoing
from fedelect.protocol.cohort_gossip import CohortGossip, decide
from fedelect.protocol.configuration import History, PeerConfig, couplings_by_neighbour
from fedelect.protocol.inbox import EarlyMessages, check_message
from fedelect.protocol.messages import (
    BeliefMessage,
    BeliefSettled,
    Claim,
    CohortAgreed,
    Deadline,
    Effect,
    Entry,
    GossipMessage,
    Message,
    Send,
    SetDeadline,
    SlotSkipped,
    Values,
    Wait,
)
from fedelect.protocol.transitions import OPEN, Event, State, next_state
from fedelect.vocabulary import as_cohort


class Peer:
    """The state machine of one client.

    Args:
        config: What all peers share.
        client: This client's number.
        neighbours: The clients it is linked to.
        couplings: J of the link to each neighbour, in the same order.
        history: What an earlier peer of this client remembered; None to start afresh.
    """

    def __init__(
        self,
        config: PeerConfig,
        client: int,
        neighbours: Sequence[int],
        couplings: Sequence[float],
        *,
        history: History | None = None,
    ) -> None:
        by_neighbour = couplings_by_neighbour(config, client, neighbours, couplings)
        self.config = config
        self.client = client
        self.neighbours = tuple(by_neighbour)
        self._couplings = np.array(list(by_neighbour.values()))
        self._state = State.IDLE
        self._early = EarlyMessages()
        self._exchange: BeliefExchange | None = None
        self._gossip = CohortGossip(self.neighbours)
        self._past: tuple[int, Values] = (0, {})  # the slot before, for neighbours that still need it
        self._cold_start = ColdStart(config.clients, config.budget, config.seed)
        if history is None:
            history = History(0, (0,) * config.clients, self._cold_start.group(0))
        history.check(config)
        self._slot = history.slot
        self._pulls = np.array(history.pulls, dtype=np.int64)
        self._elected = history.elected
        self._cold_start.mark_tried(tuple(np.flatnonzero(self._pulls).tolist()))

    @property
    def state(self) -> State:
        """Where the peer stands."""
        return self._state

    @property
    def slot(self) -> int:
        """The last slot begun; 0 before the first."""
        return self._slot

    @property
    def values(self) -> Mapping[int, Entry]:
        """All that is known of who claims what in this slot, as a copy."""
        return dict(self._gossip.values)

    @property
    def history(self) -> History:
        """What must not be forgotten between slots."""
        return History(self._slot, tuple(self._pulls.tolist()), self._elected)

    def begin_slot(self, slot: int, opinion: float) -> list[Effect]:
        """The model trained in `slot` has been judged by this client: exchange opinions of it.

        Args:
            slot: Higher than any before; the very next number if a cohort was agreed for it.
            opinion: In [0, 1], or nan if the client has none.
        """
        state = next_state(self._state, Event.BEGIN_SLOT)
        if slot <= self._slot:
            raise LocalProtocolError(f"slot {slot} cannot begin after slot {self._slot}; slot numbers only grow")
        if self._elected is not None and slot != self._slot + 1:
            raise LocalProtocolError(
                f"slot {slot} cannot begin: a cohort was agreed for slot {self._slot + 1}; begin that or withdraw()"
            )
        if not (math.isnan(opinion) or 0.0 <= opinion <= 1.0):
            raise LocalProtocolError(f"an opinion must be in [0, 1], or nan if there is none, got {opinion!r}")
        if self._elected is not None:
            self._pulls[list(self._elected)] += 1
            self._cold_start.mark_tried(self._elected)
            self._elected = None
        self._past = (self._slot, self._gossip.values)
        self._slot, self._state = slot, state
        self._gossip = CohortGossip(self.neighbours)
        waits = ((Wait.SLOT, self.config.slot_s), (Wait.RESEND, self.config.resend_s))
        effects: list[Effect] = [SetDeadline(Deadline(wait, slot), after_s) for wait, after_s in waits]
        effects += self._start_exchange(opinion)
        for message in self._early.take(slot):
            effects += self.receive(message)
        return effects

    def receive(self, message: Message) -> list[Effect]:
        """A neighbour said something. What belongs to a slot to come is kept until that begins.

        Raises:
            RemoteProtocolError: The message breaks the protocol; it was not taken in. Drop it.
        """
        check_message(message, config=self.config, client=self.client, neighbours=self.neighbours)
        if message.slot > self._slot:
            self._early.keep(message)
            return []
        if message.slot < self._slot:
            return self._answer_past(message)
        if isinstance(message, GossipMessage):
            return self._receive_gossip(message)
        if self._state is not State.EXCHANGING:
            return []
        assert self._exchange is not None  # it is there as long as the state is EXCHANGING
        outgoing = self._exchange.receive(message.round, message.sender, message.value)
        return [*self._belief_messages(outgoing), *self._conclude_exchange()]

    def propose(self, mean: float, belief: float) -> list[Effect]:
        """Claim these for this client. Once all clients' claims are known, the cohort follows.

        Args:
            mean: Mean of the client's own opinions while elected, in [0, 1]; nan if it has none.
            belief: As given by `BeliefSettled`.
        """
        state = next_state(self._state, Event.PROPOSE)
        claim = Claim.of(mean, belief)
        fault = claim.fault()
        if fault is not None:
            raise LocalProtocolError(f"client {self.client} cannot claim this: {fault}")
        self._state = state
        fresh = self._gossip.learn({self.client: claim})
        return [*self._spread(fresh), *self._conclude_gossip()]

    def deadline_passed(self, deadline: Deadline) -> list[Effect]:
        """A moment asked for by `SetDeadline` has come. One of a slot gone by changes nothing."""
        if deadline.slot < self._slot:
            return []
        if deadline.slot > self._slot:
            raise LocalProtocolError(f"slot {deadline.slot} has not begun, so this peer has set no deadline in it")
        if deadline.wait is Wait.SLOT:
            was, self._state = self._state, next_state(self._state, Event.SLOT_DEADLINE)
            return [self._gave_up(was)] if was in OPEN else []
        self._state = next_state(self._state, Event.RESEND_DEADLINE)
        if self._state not in OPEN:
            return []
        return [*self._resend(), SetDeadline(deadline, self.config.resend_s)]

    def reconsider(self, available: Iterable[int]) -> list[Effect]:
        """Only these clients can train in the coming slot: elect again among them, from the same map.

        Every host must say the same. AvailabilityError if they are fewer than K; then nothing changes.
        """
        next_state(self._state, Event.RECONSIDER)
        here = as_cohort(available, clients=self.config.clients, what="available")
        if self._slot == 0:
            values: Values = {client: Claim(math.nan, math.nan) for client in range(self.config.clients)}
        elif self._state is State.AGREED:
            values = self._gossip.values
        else:
            raise LocalProtocolError("a peer that went on from its history holds no map; begin a slot first")
        return [self._elect(values, here)]

    def withdraw(self) -> None:
        """The agreed cohort will not train after all, because others have not agreed; it is not counted as elected."""
        self._state = next_state(self._state, Event.WITHDRAW)
        self._elected = None

    def _start_exchange(self, opinion: float) -> list[Effect]:
        if self.config.reading == "evidence":
            self._state = next_state(self._state, Event.ROUNDS_DONE)
            return [BeliefSettled(self._slot, float(evidence_belief(np.array(opinion))), 0.0)]
        rounds, damping = self.config.rounds, self.config.damping
        self._exchange = BeliefExchange(
            self.neighbours, self._couplings, rounds=rounds, damping=damping, opinion=opinion
        )
        return [*self._belief_messages(self._exchange.start()), *self._conclude_exchange()]

    def _conclude_exchange(self) -> list[Effect]:
        assert self._exchange is not None  # set when the exchange starts
        if not self._exchange.done:
            return []
        self._state = next_state(self._state, Event.ROUNDS_DONE)
        return [BeliefSettled(self._slot, self._exchange.belief, self._exchange.residual)]

    def _belief_messages(self, outgoing: Iterable[Outgoing]) -> list[Effect]:
        return [
            Send(BeliefMessage(self.config.digest, self._slot, number, self.client, receiver, value))
            for number, receiver, value in outgoing
        ]

    def _receive_gossip(self, message: GossipMessage) -> list[Effect]:
        fresh = self._gossip.learn(message.values, source=message.sender)
        effects = self._spread(fresh)
        if message.wants_reply:
            # Nothing fresh goes back to its source, so this is the only message to the sender.
            effects += self._gossip_to(message.sender, self._gossip.unshown(message.sender), self._slot)
        return [*effects, *self._conclude_gossip()]

    def _spread(self, fresh: Values) -> list[Effect]:
        effects: list[Effect] = []
        for neighbour in self.neighbours:
            effects += self._gossip_to(neighbour, self._gossip.unshown(neighbour, fresh), self._slot)
        return effects

    def _gossip_to(self, neighbour: int, values: Values, slot: int) -> list[Effect]:
        return [Send(GossipMessage(self.config.digest, slot, self.client, neighbour, values))] if values else []

    def _answer_past(self, message: Message) -> list[Effect]:
        slot, known = self._past
        if not (isinstance(message, GossipMessage) and message.wants_reply and message.slot == slot):
            return []
        lacking = {client: entry for client, entry in known.items() if client not in message.values}
        return self._gossip_to(message.sender, lacking, slot)

    def _conclude_gossip(self) -> list[Effect]:
        if self._state is not State.GOSSIPING or self._gossip.unknown(self.config.clients):
            return []
        try:
            agreed = self._elect(self._gossip.values, None)
        except AvailabilityError as error:
            self._state = next_state(self._state, Event.TOO_FEW)
            return [SlotSkipped(self._slot, str(error))]
        self._state = next_state(self._state, Event.ALL_KNOWN)
        return [agreed]

    def _elect(self, values: Values, available: Iterable[int] | None) -> CohortAgreed:
        cohort, indices = decide(
            values,
            pulls=self._pulls,
            cold_start=self._cold_start,
            config=self.config,
            slot=self._slot + 1,
            available=available,
        )
        self._elected = cohort
        return CohortAgreed(self._slot, cohort, indices)

    def _resend(self) -> list[Effect]:
        effects: list[Effect] = []
        for neighbour in self.neighbours:
            # A neighbour that has made its claim has had all rounds from us.
            if self._exchange is not None and neighbour not in self._gossip.values:
                effects += self._belief_messages(self._exchange.unshown(neighbour))
            if self._state is State.GOSSIPING:
                told = self._gossip.unshown(neighbour)
                effects.append(
                    Send(GossipMessage(self.config.digest, self._slot, self.client, neighbour, told, wants_reply=True))
                )
        return effects

    def _gave_up(self, was: State) -> SlotSkipped:
        if was is State.EXCHANGING:
            assert self._exchange is not None  # it is there as long as the state is EXCHANGING
            missing, what = self._exchange.missing(), f"belief messages of round {self._exchange.round} from neighbours"
        elif was is State.SETTLED:
            missing, what = (self.client,), "its own host to propose; that is client"
        else:
            missing, what = self._gossip.unknown(self.config.clients), "the claims of clients"
        return SlotSkipped(
            self._slot,
            f"client {self.client} waited {self.config.slot_s:g} s for {what} {', '.join(map(str, missing))}",
            missing,
        )
