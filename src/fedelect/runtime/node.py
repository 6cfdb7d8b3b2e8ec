"""The host of a real peer: one thread that carries out the effects of the state machine, by a monotonic clock.

All events come through one inbox: frames, links up or down, commands. Records and opinions are on disk before anything
is sent. A restarted host builds its peer from the journal, and so never signs twice. Every wait ends at the peer's next
deadline or at the next event. A neighbour whose link stays down for `LOST_AFTER` resend intervals, or never comes up,
is reported to the peer as lost. Changes of one link are reported at most once per resend interval.
"""

import heapq
import math
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from fedelect.errors import LocalProtocolError, RemoteProtocolError
from fedelect.protocol import (
    BLIND_BYTES,
    OPEN_STATES,
    Certificate,
    Peer,
    PeerConfig,
    Signer,
    State,
    Verifier,
    decode_message,
    decode_record,
    encode,
    prepare_claim,
)
from fedelect.protocol.effects import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    MisbehaviourProven,
    Persist,
    Send,
    SetDeadline,
    SlotSkipped,
    Wait,
)
from fedelect.runtime.host_messages import (
    SLOTS_NAME,
    BeginSlot,
    Link,
    Missing,
    Notice,
    Phase,
    Ready,
    ReplayCertificates,
    Skipped,
    SlotLog,
    Stop,
    Trouble,
    agreed_notice,
    encode_line,
    replay,
)
from fedelect.runtime.journal import Journal, open_private
from fedelect.runtime.transport import Frame, Inbox, LinkDown, LinkUp, LinkWatch, Transport
from fedelect.runtime.transport.base import REFUSED_COST

REFUSALS_REPORTED = 5
"""Report at most this many refusals per neighbour; count the rest."""

LOST_AFTER = 2
"""Resend intervals for which a link may be down before the neighbour is lost."""

_LONGEST_WAIT_S = 60.0


class Node:
    """One peer and its host.

    Args:
        config: The configuration that all peers share.
        client: This client's number.
        signer: Holds its secret.
        verifier: Checks signatures.
        transport: Its links, not started.
        journal: Its journal; an earlier process's is continued.
        folder: Folder for the slot logs (`SlotLog`).
        tell: Called with every notice; must not raise.
        inbox: Queue of frames, link events and commands.
        addresses: By neighbour, its name and address for messages to people.
        missing_after_s: Seconds after which to name the neighbours that are not up.
        clock: Seconds since any moment.
    """

    def __init__(
        self,
        *,
        config: PeerConfig,
        client: int,
        signer: Signer,
        verifier: Verifier,
        transport: Transport,
        journal: Journal,
        folder: Path,
        tell: Callable[[Notice], None],
        inbox: Inbox,
        addresses: dict[int, str] | None = None,
        missing_after_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._peer = Peer(config, client, signer, verifier, records=journal.records)
        self._rewards = journal.rewards(client, self._peer.chain)
        self._transport, self._journal, self._tell, self._inbox = transport, journal, tell, inbox
        self._log_path = folder / SLOTS_NAME
        self._addresses = addresses or {}
        self._missing_after_s, self._clock = missing_after_s, clock
        grace_s, quiet_s = LOST_AFTER * config.settings.resend_s, config.settings.resend_s
        self._links = LinkWatch(self._peer.neighbours, first_s=missing_after_s, grace_s=grace_s, quiet_s=quiet_s)
        self._deadlines: list[tuple[float, int, Deadline]] = []
        self._set = 0
        self._refusals: Counter[int] = Counter()
        self._asked: set[int] = set()  # neighbours that were asked for history
        self._reported_phase = (0, State.IDLE)
        self._log: SlotLog | None = None
        self._judged = 0
        self._sent = self._sent_bytes = self._received = self._refused = 0

    @property
    def peer(self) -> Peer:
        """The state machine; read only, and not while `run` is running."""
        return self._peer

    def run(self) -> None:
        """Run this peer until `Stop`."""
        self._transport.start(self._inbox)
        missing_at = self._clock() + self._missing_after_s
        self._links.start(self._clock())
        try:
            while True:
                event = self._inbox.get(self._wait_s(missing_at))
                if isinstance(event, Stop):
                    return
                if event is not None:
                    self._handle(event)
                now = self._clock()
                self._report_links(now)
                while self._deadlines and self._deadlines[0][0] <= now:
                    self._carry_out(self._peer.deadline_passed(heapq.heappop(self._deadlines)[2]))
                for neighbour in self._links.take_lost(now):
                    self._carry_out(self._peer.neighbour_lost(neighbour))
                if now >= missing_at:
                    missing_at = math.inf
                    self._name_missing()
        finally:
            self._write_log()
            self._transport.close()

    def _wait_s(self, missing_at: float) -> float:
        nearest = min(missing_at, self._links.due_s, self._deadlines[0][0] if self._deadlines else math.inf)
        return min(max(0.0, nearest - self._clock()), _LONGEST_WAIT_S)

    def _handle(self, event: object) -> None:
        if isinstance(event, Frame):
            self._receive(event)
        elif isinstance(event, LinkUp | LinkDown):
            if self._links.update(event.neighbour, isinstance(event, LinkUp), self._clock()):
                self._carry_out(self._peer.neighbour_back(event.neighbour))
            if isinstance(event, LinkUp) and event.neighbour not in self._asked:
                self._asked.add(event.neighbour)
                self._carry_out(self._peer.ask(event.neighbour))  # before it signs: it may have forgotten something
        elif isinstance(event, BeginSlot):
            self._begin(event)
        elif isinstance(event, ReplayCertificates):
            for notice in replay(self._peer.chain.certificates, event):
                self._tell(notice)

    def _receive(self, frame: Frame) -> None:
        self._received += 1
        try:
            message = decode_message(frame.content)
            if message.sender != frame.neighbour:
                raise RemoteProtocolError(f"it speaks for client {message.sender}")
            effects = self._peer.receive(message)
        except RemoteProtocolError as error:
            self._refused += 1
            self._refusals[frame.neighbour] += 1
            self._inbox.charge(frame.neighbour, REFUSED_COST)
            if self._refusals[frame.neighbour] <= REFUSALS_REPORTED:
                self._tell(Trouble(text=f"refused a message of neighbour {frame.neighbour}: {error}"))
            return
        self._carry_out(effects)

    def _report_links(self, now: float) -> None:
        changes = self._links.unreported_changes(now)
        for neighbour, up in changes:
            self._tell(Link(neighbour=neighbour, up=up))
        if changes and self._links.all_reported_up:
            self._tell(Ready())

    def _name_missing(self) -> None:
        missing = self._links.missing()
        if missing:
            names = {one: f"{one} ({self._addresses[one]})" if one in self._addresses else str(one) for one in missing}
            self._tell(Missing.after(self._missing_after_s, names))

    def _begin(self, begin: BeginSlot) -> None:
        self._learn(begin)
        if self._peer.state in OPEN_STATES and self._peer.slot == begin.slot:
            return  # repeated by a server that did not know: the election continues
        if self._peer.state in OPEN_STATES and begin.slot < self._peer.slot:
            self._decline(begin, f"slot {self._peer.slot} is being elected for")  # the open election continues
            return
        if self._peer.state in OPEN_STATES:
            self._carry_out(self._peer.deadline_passed(Deadline(Wait.SLOT, self._peer.slot)))
        self._write_log()
        opinion = math.nan if begin.opinion is None else begin.opinion
        self._judged = begin.judged
        now = self._clock()
        try:
            if begin.judged > 0 and self._rewards.give(begin.judged, opinion):
                self._journal.keep_opinion(begin.judged, opinion)
            effects = self._peer.begin_slot(begin.slot, opinion)
        except LocalProtocolError as error:
            self._decline(begin, str(error))
            return
        self._deadlines.clear()
        self._log = SlotLog(slot=begin.slot, judged=begin.judged, opinion=begin.opinion, began_s=now)
        self._carry_out(effects)

    def _decline(self, begin: BeginSlot, reason: str) -> None:
        self._tell(Skipped(slot=begin.slot, reason=f"client {self._peer.client} takes no part: {reason}"))

    def _learn(self, begin: BeginSlot) -> None:
        try:
            certificates = [decode_record(bytes.fromhex(text)) for text in begin.certificates]
            known = [one for one in certificates if isinstance(one, Certificate)]
            effects = self._peer.learn(known)
        except (RemoteProtocolError, ValueError) as error:
            self._tell(Trouble(text=f"was shown certificates that do not verify: {error}"))
            return
        self._carry_out(effects)

    def _carry_out(self, effects: list[Effect]) -> None:
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, Send):
                frame = encode(effect.message)
                self._sent += 1
                self._sent_bytes += len(frame)
                self._transport.send(effect.message.receiver, frame)
            elif isinstance(effect, SetDeadline):
                self._set += 1
                heapq.heappush(self._deadlines, (self._clock() + effect.after_s, self._set, effect.deadline))
            elif isinstance(effect, Persist):
                kept = [effect.record]
                while waiting and isinstance(following := waiting[0], Persist):
                    kept.append(following.record)
                    del waiting[0]
                self._journal.keep_records(kept)
                waiting = [one for record in kept for one in self._peer.persisted(record)] + waiting
            elif isinstance(effect, BeliefSettled):
                waiting = self._propose(effect) + waiting
            else:
                self._report(effect)
        self._report_phase()

    def _propose(self, settled: BeliefSettled) -> list[Effect]:
        chain, rule = self._peer.chain, self._peer.config.settings.rule
        own = self._rewards.claim(chain)
        mean, belief = prepare_claim(chain, rule=rule, mean=own, belief=settled.belief, judged=self._judged)
        self._amend(mean=_none_if_nan(mean), belief=_none_if_nan(settled.belief), residual=settled.residual)
        try:
            return self._peer.propose(mean, belief, os.urandom(BLIND_BYTES))
        except LocalProtocolError as error:
            self._tell(Trouble(text=str(error)))
            return []

    def _report(self, effect: Effect) -> None:
        if isinstance(effect, CohortAgreed):
            self._amend(cohort=effect.cohort, indices=effect.indices, ended_s=self._clock())
            self._tell(agreed_notice(effect.certificate))
        elif isinstance(effect, SlotSkipped):
            self._amend(reason=effect.reason, ended_s=self._clock())
            self._tell(Skipped(slot=effect.slot, reason=effect.reason))
        elif isinstance(effect, MisbehaviourProven):
            self._tell(
                Trouble(text=f"client {effect.proof.client} is proven to have lied: {type(effect.proof).__name__}")
            )

    def _report_phase(self) -> None:
        phase = self._peer.slot, self._peer.state
        if phase != self._reported_phase and self._peer.state not in (State.IDLE, State.SETTLED):
            self._reported_phase = phase
            self._tell(Phase(slot=phase[0], phase=phase[1].value, sent=self._sent, sent_bytes=self._sent_bytes))

    def _amend(self, **changes: object) -> None:
        if self._log is not None:
            self._log = msgspec.structs.replace(self._log, **changes)

    def _write_log(self) -> None:
        if self._log is None:
            return
        self._amend(sent=self._sent, sent_bytes=self._sent_bytes, received=self._received, refused=self._refused)
        with open(open_private(self._log_path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(encode_line(self._log))
        self._log = None
        self._sent = self._sent_bytes = self._received = self._refused = 0


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
