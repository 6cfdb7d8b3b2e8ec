"""One chaos run: hosts that crash and restart, a server, links that fail, Byzantine clients."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedelect.errors import FedelectError
from fedelect.protocol import BLIND_BYTES, OPEN_STATES, Admission, CertificateChain, OwnRewards, Peer, prepare_claim
from fedelect.protocol.effects import BeliefSettled, CohortAgreed, Effect, Persist, Record, SlotSkipped
from fedelect.protocol.messages import Message
from fedelect.seeds import stream
from fedelect.simulator.network import Network
from fedelect.testing.chaos.byzantine import ByzantineClient, ByzantinePeer
from fedelect.testing.chaos.observer import Observer
from fedelect.testing.chaos.schedule import ChaosPlan, Crash, Schedule, draw_schedule


@dataclass(frozen=True, slots=True)
class ChaosResult:
    """Result of a chaos run.

    Attributes:
        seed: Its seed; the same plan and seed give the same run.
        decided: Slots for which some honest peer saw a certificate.
        skipped: Slots without one.
        split: Slots for which two certificates can be assembled; must be 0.
        violations: Other violations of safety, in words; must be empty.
        undecided: Slots in which some honest peer that was up from beginning to end saw no certificate in time.
        messages: Messages sent.
        refused: Messages that honest peers refused, as they should.
        proven: Byzantine clients that honest peers have proof against at the end.
    """

    seed: int
    decided: int
    skipped: int
    split: int
    violations: tuple[str, ...]
    undecided: tuple[int, ...]
    messages: int
    refused: int
    proven: tuple[int, ...]

    @property
    def sound(self) -> bool:
        """Whether safety held."""
        return self.split == 0 and not self.violations


def run_chaos(seed: int, plan: ChaosPlan) -> ChaosResult:
    """Run the schedule that `seed` draws."""
    return ChaosRun(draw_schedule(seed, plan)).play()


class ChaosRun:
    """The hosts of all clients, their stable storage, and the server, during one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._config = schedule.config
        self._observer = Observer(self._config, schedule.verifier, schedule.byzantine)
        self._server = CertificateChain(self._config, schedule.verifier)
        clients = range(self._config.clients)
        self._disks: list[list[Record]] = [[] for _ in clients]
        self._rewards = [OwnRewards(client) for client in clients]
        self._opinions = [(0, float("nan")) for _ in clients]  # (slot of the model, opinion)
        self._judged = [0 for _ in clients]  # slot of the model, in the open slot
        self._pending: dict[int, Crash] = {}  # crashes at a record or message to come
        self._counts = [0 for _ in clients]
        self._down: set[int] = set()
        self._blinds = stream(schedule.seed, "blinds")  # one stream for all, so that a restarted client gets fresh ones
        self._slot = 0
        self._missed: dict[int, set[int]] = {}  # slot -> honest clients that saw it skipped
        self._side: frozenset[int] = frozenset()  # clients that are cut off
        self._lost: set[tuple[int, int]] = set()  # (client, neighbour): last reported as lost
        self._byzantine = {client: self._make_byzantine(client) for client in schedule.byzantine}
        self._peers = [self._make(client) for client in clients]
        self._network = Network(
            self._peers,
            self._host,
            schedule.conditions,
            seed=schedule.seed,
            limit_s=schedule.slot_span_s * schedule.slots + 1.0,
            on_refusal=self._observer.note_refusal,
            relay=self._relay,
        )

    def play(self) -> ChaosResult:
        """Run the whole schedule."""
        schedule, network = self._schedule, self._network
        for slot in range(1, schedule.slots + 1):
            network.call_after(schedule.slot_span_s * (slot - 1), functools.partial(self._begin_slot, slot))
        for crash in schedule.crashes:
            network.call_after(crash.at_s, functools.partial(self._arm, crash))
        for cut in schedule.splits:
            network.call_after(cut.at_s, functools.partial(self._cut, cut.side))
            network.call_after(cut.heal_s, functools.partial(self._cut, frozenset()))
        for report in schedule.false_reports:
            network.call_after(
                report.at_s, functools.partial(self._report_link, report.client, report.neighbour, lost=report.lost)
            )
        violations = self._observer.violations
        messages = refused = 0
        try:
            traffic = network.run(lambda: False)
            messages, refused = traffic.sent, traffic.refused
        except (FedelectError, AssertionError) as error:
            violations.append(f"a peer failed: {type(error).__name__}: {error}")
        decided = len(self._observer.agreed)
        return ChaosResult(
            schedule.seed,
            decided,
            schedule.slots - decided,
            len(self._observer.split_slots()),
            tuple(dict.fromkeys(violations)),
            tuple(sorted(slot for slot, clients in self._missed.items() if clients)),
            messages,
            refused,
            tuple(sorted(self._observer.proven)),
        )

    def _make_byzantine(self, client: int) -> ByzantineClient:
        keys = {one: self._schedule.signers[one] for one in sorted(self._schedule.byzantine)}
        rng = stream(self._schedule.seed, "liar", client)
        return ByzantineClient(client, self._config, keys, rng=rng, behaviour=self._schedule.behaviour)

    def _make(self, client: int) -> Peer:
        signer = self._schedule.signers[client]
        make = ByzantinePeer if client in self._schedule.byzantine else Peer
        return make(self._config, client, signer, self._schedule.verifier, records=self._disks[client])

    def _begin_slot(self, slot: int) -> None:
        self._slot = slot
        for client in range(self._config.clients):
            self._network.call_after(self._schedule.start_delay_s[client], functools.partial(self._begin, client))

    def _begin(self, client: int) -> None:
        peer, slot = self._peers[client], self._slot
        if client in self._down or peer.state in OPEN_STATES or slot <= max(peer.slot, peer.chain.slot):
            return
        self._judged[client], opinion = self._opinions[client]
        self._network.carry_out(client, peer.begin_slot(slot, opinion))

    def _host(self, client: int, effect: Effect) -> list[Effect]:
        peer = self._peers[client]
        if isinstance(effect, BeliefSettled):
            mean, judged = self._rewards[client].claim(peer.chain), self._judged[client]
            rule = self._config.settings.rule
            claim = prepare_claim(peer.chain, rule=rule, mean=mean, belief=effect.belief, judged=judged)
            return peer.propose(*claim, self._blinds.bytes(BLIND_BYTES))
        if isinstance(effect, Persist):
            return self._store(client, effect.record)
        if isinstance(effect, CohortAgreed):
            self._observer.note_decision(client, effect)
            self._show_server(peer)
        elif isinstance(effect, SlotSkipped) and client not in self._schedule.byzantine:
            self._missed.setdefault(effect.slot, set()).add(client)
        return []

    def _store(self, client: int, record: Record) -> list[Effect]:
        if self._crashes_now(client, "before"):
            return []
        self._disks[client].append(record)
        self._observer.check_record(client, record, self._peers[client])
        return [] if self._crashes_now(client, "after") else self._peers[client].persisted(record)

    def _show_server(self, peer: Peer) -> None:
        """Give the server what it lacks. For each new head it trains; all clients that are up judge the model."""
        for certificate in peer.chain.after(self._server.locator()):
            if self._server.add(certificate) is not Admission.HEAD:
                continue
            rng = stream(self._schedule.seed, "opinions", certificate.slot)
            for client, opinion in enumerate(np.round(rng.random(self._config.clients), 2).tolist()):
                if client not in self._down:
                    self._opinions[client] = (certificate.slot, opinion)
                    self._rewards[client].give(certificate.slot, opinion)

    def _relay(self, message: Message) -> Iterable[Message]:
        if self._crashes_now(message.sender, "sending"):
            return ()
        speaker, listener = self._byzantine.get(message.sender), self._byzantine.get(message.receiver)
        altered = (message,) if speaker is None else tuple(speaker.alter(message))
        for one in altered:
            self._observer.see_message(one)
            if listener is not None:
                listener.observe(one)
        return altered

    def _arm(self, crash: Crash) -> None:
        if crash.point == "any":
            self._crash(crash)
        else:
            self._pending[crash.client] = crash
            self._counts[crash.client] = 0

    def _crashes_now(self, client: int, point: str) -> bool:
        """Whether the client crashes at this point; if so, crash it."""
        crash = self._pending.get(client)
        if crash is None or crash.point != point:
            return False
        self._counts[client] += 1
        if self._counts[client] < crash.count:
            return False
        self._crash(crash)
        return True

    def _crash(self, crash: Crash) -> None:
        client = crash.client
        self._pending.pop(client, None)
        if client not in self._down:
            self._down.add(client)
            self._network.crash(client)
            self._lost -= {(client, neighbour) for neighbour in self._config.neighbours[client]}
            self._network.call_after(crash.down_s, functools.partial(self._restart, client))
            self._report_links_later()

    def _restart(self, client: int) -> None:
        self._down.discard(client)
        self._peers[client] = self._make(client)
        self._network.restart(client, self._peers[client])
        self._report_links_later()
        self._begin(client)

    def _cut(self, side: frozenset[int]) -> None:
        self._side = side
        self._network.partition(*([side] if side else []))
        self._report_links_later()

    def _report_links_later(self) -> None:
        if self._schedule.report_delay_s is not None:
            self._network.call_after(self._schedule.report_delay_s, self._report_links)

    def _report_links(self) -> None:
        """Report the true state of each link where the last report was another."""
        for one, other in self._config.edges:
            for client, neighbour in ((one, other), (other, one)):
                lost = neighbour in self._down or (client in self._side) != (neighbour in self._side)
                if lost != ((client, neighbour) in self._lost):
                    self._report_link(client, neighbour, lost=lost)

    def _report_link(self, client: int, neighbour: int, *, lost: bool) -> None:
        if client in self._down:
            return
        (self._lost.add if lost else self._lost.discard)((client, neighbour))
        peer = self._peers[client]
        self._network.carry_out(client, peer.neighbour_lost(neighbour) if lost else peer.neighbour_back(neighbour))
