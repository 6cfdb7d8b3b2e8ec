"""One client's side of the decentralised election: events in, effects out.

A peer has no clock, sockets, files or randomness: the host calls it on every event and carries out, in order, the
effects it returns. In every slot it settles its belief with its neighbours, gets from the host the value to claim,
floods signed values for a fixed number of rounds, votes for the cohort that follows, and decides when a quorum has cast
the same vote. Nothing it signs is sent before the host has stored it; restored from its records it never votes twice.

Rule: a call that raises has changed nothing.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence

from fedelect.errors import AvailabilityError, ConfigurationError, LocalProtocolError, RemoteProtocolError
from fedelect.protocol.chain import CertificateChain
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.effects import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    HistoryAdvanced,
    MisbehaviourProven,
    Persist,
    Record,
    SetDeadline,
    SlotSkipped,
    Wait,
)
from fedelect.protocol.gossip import Entry, Relayed
from fedelect.protocol.history import HistoryExchange
from fedelect.protocol.inbox import EarlyMessages, check_message
from fedelect.protocol.memory import Memory
from fedelect.protocol.messages import BeliefMessage, GossipMessage, HistoryMessage, Message, Reply, Request
from fedelect.protocol.open_slot import OpenSlot
from fedelect.protocol.proofs import Proof
from fedelect.protocol.signing import Signer, Verifier
from fedelect.protocol.statements import Certificate, SignedValue, Vote
from fedelect.protocol.transitions import OPEN_STATES, Event, State, next_state
from fedelect.vocabulary import as_cohort


class Peer:
    """The state machine of one client.

    Args:
        config: What all peers share.
        client: This client's number.
        signer: Holds the secret to the client's key in `config`.
        verifier: Checks the signatures of all clients.
        records: Records that the host stored for this client, in order; empty for a new one.

    Attributes:
        state: State of the slot; read only, like all attributes.
        neighbours: Its neighbours, in order.
    """

    def __init__(
        self, config: PeerConfig, client: int, signer: Signer, verifier: Verifier, *, records: Iterable[Record] = ()
    ) -> None:
        as_cohort([client], clients=config.clients, what="client")
        if signer.key != config.keys[client]:
            raise ConfigurationError(f"the signer does not hold client {client}'s key; give it the one in `keys`")
        self.config = config
        self.client = client
        self.neighbours = tuple(config.neighbours[client])
        self._signer = signer
        self._memory = Memory(config, client, verifier, records)
        self._history = HistoryExchange(config, client, self._memory.chain, self._memory.appraisals)
        self._early = EarlyMessages()
        self.state = State.IDLE
        self._slot = self._memory.signed_slot
        self._lost: set[int] = set()  # neighbours that the host's links cannot reach
        self._now = OpenSlot(config, client, self._slot, self.chain.head, self._lost, signer.sign)
        self._unsent: SignedValue | Vote | None = None  # signed, but not yet in stable storage

    @property
    def slot(self) -> int:
        """The last slot begun or signed in; 0 before the first."""
        return self._slot

    @property
    def chain(self) -> CertificateChain:
        """Certified history as this peer knows it. Read only."""
        return self._memory.chain

    @property
    def entries(self) -> Mapping[int, Entry]:
        """A copy of the map: client -> its value, or the proof that it misbehaved."""
        return dict(self._now.flood.entries)

    @property
    def proofs(self) -> Mapping[int, Proof]:
        """A copy of: client -> proof that it misbehaved."""
        return dict(self._memory.proofs)

    def begin_slot(self, slot: int, opinion: float) -> list[Effect]:
        """Elect who trains in `slot`.

        Args:
            slot: Higher than any begun, signed in or certified before.
            opinion: This client's opinion of the model trained last, in [0, 1]; nan if it has none.
        """
        state = next_state(self.state, Event.BEGIN_SLOT)
        last = max(self._slot, self.chain.slot)
        if slot <= last:
            raise LocalProtocolError(f"slot {slot} cannot begin after slot {last}; slot numbers only grow")
        if self._has_forgotten():
            raise LocalProtocolError(self._explain_forgotten())
        if not (math.isnan(opinion) or 0.0 <= opinion <= 1.0):
            raise LocalProtocolError(f"an opinion must be in [0, 1], or nan if there is none, got {opinion!r}")
        self._slot, self.state, self._unsent = slot, state, None
        self._now = OpenSlot(self.config, self.client, slot, self.chain.head, self._lost, self._signer.sign)
        self._now.flood.learn(map(Relayed, self._memory.standing_proofs()))
        effects = [*self._now.start(opinion), *self._history.ask_again(), *self._conclude_exchange()]
        for message in self._early.take(slot):
            with contextlib.suppress(RemoteProtocolError):  # it is refused when its sender repeats it
                effects += self.receive(message)
        return self._drop_late_question(effects)

    def receive(self, message: Message) -> list[Effect]:
        """Take in a neighbour's message. Messages of later slots are kept until their slot begins.

        Raises:
            RemoteProtocolError: The message breaks the protocol; it was not taken in. Drop it.
        """
        check_message(message, config=self.config, client=self.client)
        if isinstance(message, Request):
            return self._history.answer(message)
        if isinstance(message, Reply):
            if isinstance(message, HistoryMessage):
                return [*self.learn(message.certificates), *self._history.ask_further(message)]
            fresh = map(Persist, self._memory.appraise(message.appraisals))
            return [*fresh, *self._progress(), *self._history.ask_further(message)]
        effects = self._history.catch_up(message)
        if message.slot > self._slot:
            self._early.keep(message)
            self._lost.discard(message.sender)
        elif message.slot == self._slot and self.state in OPEN_STATES:
            if isinstance(message, BeliefMessage):
                effects += [*self._now.receive_belief(message), *self._conclude_exchange()]
            elif message.previous == self._now.previous:
                effects += self._receive_gossip(message)
            else:
                self._now.attendance.hear(message.sender)
        return effects

    def propose(self, mean: float, belief: float, blind: bytes, available: Iterable[int] | None = None) -> list[Effect]:
        """Claim a mean and a belief; the value is signed now and sent once it is `persisted`.

        Args:
            mean: Mean of the client's own opinions in the slots of `chain` in which it was elected; nan if it has
                none. See `OwnRewards`.
            belief: As given by `BeliefSettled`.
            blind: 16 unpredictable bytes, fresh for every call; see `SignedValue`.
            available: Clients that can train in this slot; None means all. All hosts must give the same.
        """
        state = next_state(self.state, Event.PROPOSE)
        here = None if available is None else as_cohort(available, clients=self.config.clients, what="available")
        signed = self._memory.sign_claim(self._now.claim(mean, belief, blind), self._signer)
        self.state, self._unsent, self._now.available = state, signed, here
        return [Persist(signed)]

    def persisted(self, record: Record) -> list[Effect]:
        """The host has stored `record`. Only now a value or vote of this client is sent."""
        if record is not self._unsent or self.state not in (State.FLOODING, State.CERTIFYING):
            return []
        self._unsent = None
        if isinstance(record, SignedValue):
            self._now.begin_flood(record)
            return self._progress()
        assert isinstance(record, Vote)  # nothing else waits for storage
        return [*self._now.cast(record), *self._progress()]

    def learn(self, certificates: Sequence[Certificate]) -> list[Effect]:
        """Take in certificates, oldest first, from a neighbour or from the federation's server.

        Raises:
            RemoteProtocolError: One of them does not verify; none was taken in.
        """
        head = self.chain.head
        new = self.chain.extend(certificates)
        self._memory.notice_forgotten(new)
        if self._has_forgotten():
            return self._stop_signing()  # nothing is stored, so that it is noticed again after a restart
        effects: list[Effect] = [Persist(certificate) for certificate in new]
        if self.chain.head != head:
            effects += self._follow_history()
        return effects

    def ask(self, neighbour: int) -> list[Effect]:
        """Ask `neighbour` for the certificates that this peer lacks, as a host should when a link comes up.

        Among them may be some that this client signed and has forgotten: then it signs nothing more.
        """
        self._check_link(neighbour, Event.NEIGHBOUR_BACK)
        return self._history.ask(neighbour)

    def deadline_passed(self, deadline: Deadline) -> list[Effect]:
        """A deadline set by `SetDeadline` has passed. Deadlines of earlier slots change nothing.

        A host may report the slot deadline early, to give a slot up.
        """
        if deadline.slot < self._slot:
            return []
        if deadline.slot > self._slot:
            raise LocalProtocolError(f"slot {deadline.slot} has not begun, so this peer has set no deadline in it")
        was = self.state
        if deadline.wait is Wait.SLOT:
            self.state = next_state(was, Event.SLOT_DEADLINE)
            return [self._now.explain_skip(was)] if was in OPEN_STATES else []
        self.state = next_state(was, Event.RESEND_DEADLINE)
        if was not in OPEN_STATES:
            return []
        self._now.tick()
        effects = self._continue()
        if self.state in OPEN_STATES:
            again = SetDeadline(deadline, self.config.settings.resend_s)
            effects += [*self._now.resend(), *self._history.ask_again(), again]
        return self._drop_late_question(effects)

    def neighbour_lost(self, neighbour: int) -> list[Effect]:
        """The link to `neighbour` is down: do not wait for it until it is back or sends a message.

        A wrong report costs a decision at worst, never agreement.
        """
        self.state = self._check_link(neighbour, Event.NEIGHBOUR_LOST)
        self._lost.add(neighbour)
        return self._drop_late_question(self._continue()) if self.state in OPEN_STATES else []

    def neighbour_back(self, neighbour: int) -> list[Effect]:
        """The link to `neighbour` is up again: resend at once what it may have missed."""
        self.state = self._check_link(neighbour, Event.NEIGHBOUR_BACK)
        self._lost.discard(neighbour)
        return self._now.resend_to(neighbour) if self.state in OPEN_STATES else []

    def _check_link(self, neighbour: int, event: Event) -> State:
        if neighbour not in self.neighbours:
            raise LocalProtocolError(f"client {neighbour!r} is no neighbour; those are {self.neighbours}")
        return next_state(self.state, event)

    def _continue(self) -> list[Effect]:
        """Continue without the neighbours that have gone."""
        return [*self._now.forgo_gone(), *self._conclude_exchange(), *self._progress()]

    def _conclude_exchange(self) -> list[Effect]:
        settled = self._now.settled
        if self.state is not State.EXCHANGING or settled is None:
            return []
        self.state = next_state(self.state, Event.ROUNDS_DONE)
        return [settled]

    def _drop_late_question(self, effects: list[Effect]) -> list[Effect]:
        """Drop `BeliefSettled` if the slot was decided in this step."""
        if self.state is State.SETTLED:
            return effects
        return [effect for effect in effects if not isinstance(effect, BeliefSettled)]

    def _receive_gossip(self, message: GossipMessage) -> list[Effect]:
        entries, votes = self._now.flood.filter_new(message.entries), self._now.ballots.filter_new(message.votes)
        contradictions = self._memory.verify(entries, votes, message.slot, message.previous)
        self._memory.notice_own(entries, votes, self._now.voted[0] if self._now.voted is not None else None)
        if self._has_forgotten():
            return self._stop_signing()
        proofs, relayed = self._now.receive_gossip(message, contradictions)
        new = self._memory.note_proofs(proofs)
        told = [effect for proof in new for effect in (Persist(proof), MisbehaviourProven(proof))]
        return [*told, *relayed, *self._progress()]

    def _has_forgotten(self) -> bool:
        """Whether others have shown what this client signed and does not remember."""
        return self._memory.forgotten > 0

    def _stop_signing(self) -> list[Effect]:
        """Give the open slot up, for good: a peer that has forgotten what it signed could sign twice."""
        if self.state not in OPEN_STATES:
            return []
        self.state, self._unsent = next_state(self.state, Event.SLOT_DEADLINE), None
        return [SlotSkipped(self._slot, self._explain_forgotten())]

    def _explain_forgotten(self) -> str:
        return (
            f"client {self.client} signed in slot {self._memory.forgotten}, as others can show, and its records do not "
            f"hold that; it signs nothing more: restore the records, or enrol the client anew with a fresh key"
        )

    def _progress(self) -> list[Effect]:
        """Take all steps that are possible now: further rounds, a vote, a decision."""
        effects: list[Effect] = []
        if self.state is State.FLOODING:
            effects += self._now.advance()
            if self._now.flood.frozen and not self._memory.appraisals.missing():
                effects += self._vote()
        certificate = self._now.ballots.certificate() if self.state in OPEN_STATES else None
        if certificate is not None:
            self.chain.add(certificate)
            effects += [Persist(certificate), self._decide(certificate)]
        return effects

    def _vote(self) -> list[Effect]:
        self._memory.note_claims(self._now.flood.frozen_values())
        try:
            statement, appraisals = self._now.elect(self.chain.pulls, self._memory.appraisals.statistics)
        except AvailabilityError as error:
            self.state = next_state(self.state, Event.TOO_FEW)
            return [SlotSkipped(self._slot, str(error))]
        self.state = next_state(self.state, Event.FROZEN)
        self._unsent = vote = self._memory.sign_vote(statement, self._signer, appraisals)
        return [*map(Persist, appraisals), Persist(vote)]

    def _decide(self, certificate: Certificate) -> CohortAgreed:
        self.state = next_state(self.state, Event.CERTIFIED)
        return CohortAgreed(certificate, self._now.indices_of(certificate))

    def _follow_history(self) -> list[Effect]:
        head = self.chain.certificates[-1]
        if self.state not in OPEN_STATES or head.slot < self._slot:
            return [HistoryAdvanced(head), *self._rebase()]
        own = self.chain.at(self._slot)
        if own is not None:
            later: list[Effect] = [] if own is head else [HistoryAdvanced(head)]
            return [self._decide(own), *later]
        self.state = next_state(self.state, Event.PASSED_OVER)
        return [SlotSkipped(self._slot, f"the others went on to slot {head.slot}"), HistoryAdvanced(head)]

    def _rebase(self) -> list[Effect]:
        if self.state not in OPEN_STATES:
            return []
        was, self.state = self.state, next_state(self.state, Event.CAUGHT_UP)
        if was is State.CERTIFYING:
            return []  # it has voted in this slot, and does not vote again
        self._unsent = None
        self._now.rebase(self.chain.head)
        self._now.flood.learn(map(Relayed, self._memory.standing_proofs()))
        settled = self._now.settled
        return [settled] if settled is not None and was is State.FLOODING else []
