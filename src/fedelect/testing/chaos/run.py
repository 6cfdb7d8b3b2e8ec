"""One chaotic run: hosts that crash and come back, a server, links that fail, clients that lie; all from one seed."""

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
from fedelect.testing.chaos.byzantine import ByzantineClient
from fedelect.testing.chaos.schedule import ChaosPlan, Crash, Schedule, draw
from fedelect.testing.chaos.watch import Watch


@dataclass(frozen=True, slots=True)
class ChaosOutcome:
    """How a chaotic run went.

    Attributes:
        seed: Its seed; the same plan and seed give the same run.
        decided: Slots for which some honest peer saw a certificate.
        skipped: Slots without one.
        split: Slots for which two certificates can be put together; must be 0.
        violations: What else must never happen and did, in words.
        undecided: Slots in which some honest peer that was up from beginning to end saw no certificate in time.
        messages: Messages sent.
        refused: Messages that honest peers refused, as they should.
    """

    seed: int
    decided: int
    skipped: int
    split: int
    violations: tuple[str, ...]
    undecided: tuple[int, ...]
    messages: int
    refused: int

    @property
    def sound(self) -> bool:
        """Whether nothing happened that never must."""
        return self.split == 0 and not self.violations


def run_chaos(seed: int, plan: ChaosPlan) -> ChaosOutcome:
    """Play the schedule that `seed` stands for."""
    return ChaosRun(draw(seed, plan)).play()


class ChaosRun:
    """The hosts of all clients, their disks, and the server, while one schedule is played."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._config = schedule.config
        self._watch = Watch(self._config, schedule.verifier, schedule.byzantine)
        self._server = CertificateChain(self._config, schedule.verifier)
        clients = range(self._config.clients)
        self._disks: list[list[Record]] = [[] for _ in clients]
        self._rewards = [OwnRewards(client) for client in clients]
        self._opinions = [(0, float("nan")) for _ in clients]  # of which slot's model, and what
        self._judged = [0 for _ in clients]  # ... in the slot under way
        self._pending: dict[int, Crash] = {}  # crashes that wait for a record or message
        self._counts = [0 for _ in clients]
        self._down: set[int] = set()
        self._blinds = stream(schedule.seed, "blinds")  # one for all, so that a client made again gets fresh ones
        self._slot = 0
        self._missed: dict[int, set[int]] = {}  # slot -> honest clients that saw it skipped
        self._side: frozenset[int] = frozenset()  # who is cut off from the rest
        self._lost: set[tuple[int, int]] = set()  # (client, neighbour): what links have said last
        self._byzantine = {client: self._make_byzantine(client) for client in schedule.byzantine}
        self._peers = [self._make(client) for client in clients]
        self._network = Network(
            self._peers,
            self._host,
            schedule.conditions,
            seed=schedule.seed,
            limit_s=schedule.span_s * schedule.slots + 1.0,
            on_refusal=self._watch.refused,
            relay=self._relay,
        )

    def play(self) -> ChaosOutcome:
        """Let everything happen."""
        schedule, network = self._schedule, self._network
        for slot in range(1, schedule.slots + 1):
            network.at(schedule.span_s * (slot - 1), functools.partial(self._begin_slot, slot))
        for crash in schedule.crashes:
            network.at(crash.at_s, functools.partial(self._arm, crash))
        for cut in schedule.partitions:
            network.at(cut.at_s, functools.partial(self._cut, cut.side))
            network.at(cut.heal_s, functools.partial(self._cut, frozenset()))
        for rumour in schedule.rumours:
            network.at(
                rumour.at_s, functools.partial(self._tell_link, rumour.client, rumour.neighbour, lost=rumour.lost)
            )
        violations = self._watch.violations
        messages = refused = 0
        try:
            traffic = network.run(lambda: False)
            messages, refused = traffic.sent, traffic.refused
        except (FedelectError, AssertionError) as error:
            violations.append(f"a peer failed: {type(error).__name__}: {error}")
        decided = len(self._watch.agreed)
        return ChaosOutcome(
            schedule.seed,
            decided,
            schedule.slots - decided,
            len(self._watch.splits()),
            tuple(dict.fromkeys(violations)),
            tuple(sorted(slot for slot, clients in self._missed.items() if clients)),
            messages,
            refused,
        )

    def _make_byzantine(self, client: int) -> ByzantineClient:
        return ByzantineClient(
            client,
            self._schedule.signers[client],
            clients=self._config.clients,
            flood_rounds=self._config.flood_rounds,
            rng=stream(self._schedule.seed, "liar", client),
        )

    def _make(self, client: int) -> Peer:
        signer = self._schedule.signers[client]
        return Peer(self._config, client, signer, self._schedule.verifier, records=self._disks[client])

    def _begin_slot(self, slot: int) -> None:
        self._slot = slot
        for client in range(self._config.clients):
            self._network.at(self._schedule.late_s[client], functools.partial(self._begin, client))

    def _begin(self, client: int) -> None:
        peer, slot = self._peers[client], self._slot
        if client in self._down or peer.state in OPEN_STATES or slot <= max(peer.slot, peer.chain.slot):
            return
        self._judged[client], opinion = self._opinions[client]
        self._network.post(client, peer.begin_slot(slot, opinion))

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
            self._watch.decided(client, effect)
            self._show_server(peer)
        elif isinstance(effect, SlotSkipped) and client not in self._schedule.byzantine:
            self._missed.setdefault(effect.slot, set()).add(client)
        return []

    def _store(self, client: int, record: Record) -> list[Effect]:
        if self._due(client, "before"):
            return []
        self._disks[client].append(record)
        self._watch.stored(client, record, self._peers[client])
        return [] if self._due(client, "after") else self._peers[client].persisted(record)

    def _show_server(self, peer: Peer) -> None:
        """The server gets what it lacks, trains on what extends its history, and everybody up judges the model."""
        for certificate in peer.chain.after(self._server.locator()):
            if self._server.add(certificate) is not Admission.HEAD:
                continue
            rng = stream(self._schedule.seed, "opinions", certificate.slot)
            for client, opinion in enumerate(np.round(rng.random(self._config.clients), 2).tolist()):
                if client not in self._down:
                    self._opinions[client] = (certificate.slot, opinion)
                    self._rewards[client].give(certificate.slot, opinion)

    def _relay(self, message: Message) -> Iterable[Message]:
        if self._due(message.sender, "sending"):
            return ()
        speaker, listener = self._byzantine.get(message.sender), self._byzantine.get(message.receiver)
        bent = (message,) if speaker is None else tuple(speaker.bend(message))
        for one in bent:
            self._watch.message(one)
            if listener is not None:
                listener.overhear(one)
        return bent

    def _arm(self, crash: Crash) -> None:
        if crash.stage == "any":
            self._crash(crash)
        else:
            self._pending[crash.client] = crash
            self._counts[crash.client] = 0

    def _due(self, client: int, stage: str) -> bool:
        """Whether the client crashes here; then it has."""
        crash = self._pending.get(client)
        if crash is None or crash.stage != stage:
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
            self._network.at(crash.down_s, functools.partial(self._restart, client))
            self._links_moved()

    def _restart(self, client: int) -> None:
        self._down.discard(client)
        self._peers[client] = self._make(client)
        self._network.restart(client, self._peers[client])
        self._links_moved()
        self._begin(client)

    def _cut(self, side: frozenset[int]) -> None:
        self._side = side
        self._network.partition(*([side] if side else []))
        self._links_moved()

    def _links_moved(self) -> None:
        if self._schedule.noticed_s is not None:
            self._network.at(self._schedule.noticed_s, self._tell_links)

    def _tell_links(self) -> None:
        """Everybody's links say what is true by now, where they said something else before."""
        for one, other in self._config.edges:
            for client, neighbour in ((one, other), (other, one)):
                lost = neighbour in self._down or (client in self._side) != (neighbour in self._side)
                if lost != ((client, neighbour) in self._lost):
                    self._tell_link(client, neighbour, lost=lost)

    def _tell_link(self, client: int, neighbour: int, *, lost: bool) -> None:
        if client in self._down:
            return
        (self._lost.add if lost else self._lost.discard)((client, neighbour))
        peer = self._peers[client]
        self._network.post(client, peer.neighbour_lost(neighbour) if lost else peer.neighbour_back(neighbour))
