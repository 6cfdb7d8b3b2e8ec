"""One episode of a soak: a federation of real processes, its faults, and what must hold whatever they are."""

import contextlib
import os
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.strangers import Strangers
from tools.soak import byzantine_peer
from tools.soak.network import Network, missing_loss
from tools.soak.plan import NETWORK_KINDS, Episode, Fault

from fedelect.errors import FedelectError
from fedelect.protocol import Certificate, ElectionSettings
from fedelect.protocol.statements import SignedValue, Vote
from fedelect.runtime.host_messages import Link, Notice, Trouble
from fedelect.runtime.identity import create_federation, member_names
from fedelect.runtime.journal import JOURNAL_NAME, Journal
from fedelect.runtime.launch import LOG_NAME, PeerProcesses, ProcessEnded, reserve_addresses
from fedelect.runtime.roster import Roster
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.seeds import stream

START_S = 600.0
LINKS_S = 600.0  # a machine that is busy with other work starts processes slowly
MAX_FAULTY = 1
RECOVERY_SLOTS = 10
"""Slots within which all honest peers must decide together when everything is mended."""


class EpisodeRun:
    """One episode while it is played.

    Args:
        episode: What to play.
        out: A new folder.
        networked: Whether peers run in network namespaces; else on the loopback, without faults of the network.
        slot_s: Seconds after which peers give a slot up.

    Attributes:
        folders: Of the peers, while it is played.
        counts: What happened, by name.
        longest_mend_s: Longest time until all links were up again after a fault was mended.
        broken: What must not have happened, in words.
    """

    def __init__(self, episode: Episode, out: Path, *, networked: bool, slot_s: float = 10.0) -> None:
        self._episode, self._out, self._networked, self._slot_s = episode, out, networked, slot_s
        self._honest = frozenset(range(episode.clients)) - {episode.byzantine}
        self.folders: dict[int, Path] = {}
        self._network: Network | None = None
        self._strangers: list[tuple[Fault, Strangers]] = []
        self._may_end: set[int] = set()
        self._limited: set[int] = set()
        self._up: set[tuple[int, int]] = set()  # (client, neighbour) that this client last said is up
        self.longest_mend_s = 0.0
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []

    def play(self) -> None:
        """Play it; afterwards no process is left."""
        numbers: list[int] = []
        try:
            with self._federation() as (roster, folders, wraps), PeerProcesses(folders, wraps, self.hear) as peers:
                self._roster, self.folders, self._peers = roster, folders, peers
                self._server = DirectElections(peers, ElectionServer(roster.config(), Ed25519Verifier()))
                try:
                    peers.start_all(START_S)
                    for slot in range(1, self._episode.slots + 1):
                        self._play_slot(slot)
                    self._recover()
                    numbers = [process.number for process in peers.processes.values()]
                finally:
                    self._may_end = set(folders)
                    self._end_strangers()
                    peers.stop_all(START_S)
            honest = {client: folders[client] for client in self._honest}
            self.broken += find_signed_twice(honest, self._server.chain.certificates)
        except FedelectError as error:
            self.broken.append(f"{type(error).__name__}: {error}")
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, 0)
                self.broken.append(f"process {number} is left behind")

    @contextlib.contextmanager
    def _federation(self) -> Iterator[tuple[Roster, dict[int, Path], dict[int, tuple[str, ...]]]]:
        episode, wraps = self._episode, {}
        with contextlib.ExitStack() as ends:
            if self._networked:
                self._network = ends.enter_context(Network(episode.clients))
                addresses = self._network.addresses
                wraps = {client: self._network.wrap(client) for client in range(episode.clients)}
            else:
                addresses = ends.enter_context(reserve_addresses(episode.clients))
            if episode.byzantine is not None:
                wrap = (sys.executable, byzantine_peer.__file__, str(episode.seed))
                wraps[episode.byzantine] = (*wraps.get(episode.byzantine, ()), *wrap)
                self.counts["byzantine"] += 1
            fed = self._out / "fed"
            roster = create_federation(fed, addresses=addresses, **_election(episode, self._slot_s))
            yield roster, {client: fed / name for client, name in enumerate(member_names(episode.clients))}, wraps

    def hear(self, client: int, notice: Notice | ProcessEnded) -> None:
        """Judge a notice of a peer; called in the thread that reads it."""
        if isinstance(notice, ProcessEnded):
            self._up.difference_update([pair for pair in list(self._up) if pair[0] == client])
        elif isinstance(notice, Link):
            (self._up.add if notice.up else self._up.discard)((client, notice.neighbour))
        if client == self._episode.byzantine:
            return
        if isinstance(notice, ProcessEnded) and client not in self._may_end:
            log = (self.folders[client] / LOG_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
            self.broken.append(f"peer {client} ended by itself, code {notice.code}: {log[-1:]}")
        elif isinstance(notice, Trouble):
            self.counts["troubles"] += 1
            proven = re.match(r"client (\d+) is proven", notice.text)
            if proven is not None and int(proven[1]) != self._episode.byzantine:
                self.broken.append(f"peer {client} holds an honest one to have lied: {notice.text}")
            self.counts["proofs"] += proven is not None

    def _play_slot(self, slot: int) -> None:
        self._begin(slot)
        began = time.monotonic()
        for fault in self._episode.faults:
            if fault.slot == slot:
                time.sleep(max(0.0, began + fault.after_s - time.monotonic()))
                self._strike(fault)
        touched = {
            client
            for fault in self._episode.faults
            if fault.slot <= slot < fault.slot + fault.slots and fault.kind != "strangers"
            for client in fault.clients
        }
        held = self._server.hold(slot, within_s=self._slot_s + 10.0, all_of=self._honest - touched)
        self.counts["slots decided" if held.certificate is not None else "slots skipped"] += 1
        if held.certificate is None and self._episode.byzantine is None and len(touched) <= MAX_FAULTY:
            self.counts["slots skipped although no more than f peers failed"] += 1
        ending = [fault for fault in self._episode.faults if fault.slot + fault.slots - 1 == slot]
        for fault in ending:
            self._mend(fault)
        if any(fault.kind != "strangers" for fault in ending):
            self._wait_for_links()

    def _wait_for_links(self) -> None:
        began = time.monotonic()
        wanted = {pair for one, other in self._roster.edges for pair in ((one, other), (other, one))}
        while missing := {pair for pair in wanted - self._up if self._episode.byzantine not in pair}:
            if time.monotonic() - began > LINKS_S:
                self.broken.append(f"links that did not come back within {LINKS_S:g} s: {sorted(missing)}")
                break
            time.sleep(0.05)
        self.longest_mend_s = max(self.longest_mend_s, time.monotonic() - began)

    def _begin(self, slot: int) -> None:
        opinions = stream(self._episode.seed, "opinions", slot).random(self._episode.clients).tolist()
        certificates = self._server.chain.certificates
        judged = certificates[-1].slot if certificates else 0
        self._server.begin_with(
            slot, judged=judged, opinions={client: opinions[client] for client in sorted(self._peers.alive)}
        )

    def _strike(self, fault: Fault) -> None:
        needs_loss = fault.kind == "loss" and missing_loss()
        if fault.kind in NETWORK_KINDS and (self._network is None or needs_loss):
            self.counts[f"{fault.kind} left out"] += 1
            return
        self.counts[fault.kind] += 1
        if fault.kind == "kill":
            self._may_end.update(fault.clients)
            for client in fault.clients:
                self._peers.kill(client)
        elif fault.kind == "stop":
            for client in fault.clients:
                self._peers.processes[client].signal(signal.SIGSTOP)
        elif fault.kind == "disk":
            self._may_end.update(fault.clients)
            self._fill_disks(fault)
        elif fault.kind == "strangers":
            self._call_strangers(fault)
        elif self._network is not None:
            self._disturb(fault, self._network)

    def _fill_disks(self, fault: Fault) -> None:
        """No file of these peers may grow beyond their journal and a few bytes: a torn write, then none."""
        rng = stream(self._episode.seed, "disk", fault.slot)
        for client in fault.clients:
            journal = self.folders[client] / JOURNAL_NAME
            room = journal.stat().st_size + int(rng.integers(0, 200)) if journal.exists() else 0
            self._limited.add(client)
            with contextlib.suppress(ProcessLookupError):
                number = self._peers.processes[client].number
                resource.prlimit(number, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    def _call_strangers(self, fault: Fault) -> None:
        addresses = [member.address for member in self._roster.members]
        wrap = self._network.wrap(fault.clients[0]) if self._network is not None else ()
        made = Strangers(addresses, ("garbage", "hello", "idle", "slow"), rate=fault.strength, wrap=wrap)
        made.__enter__()
        self._strangers.append((fault, made))

    def _disturb(self, fault: Fault, network: Network) -> None:
        if fault.kind == "partition":
            network.part(fault.clients)
        elif fault.kind == "loss":
            network.lose(fault.strength)
        else:
            network.cut(fault.clients)
            time.sleep(0.2 + fault.after_s)
            network.mend()

    def _mend(self, fault: Fault) -> None:
        if fault.kind == "strangers":
            self._end_strangers(fault)
        elif fault.kind in NETWORK_KINDS and self._network is not None:
            self._network.mend()
        for client in fault.clients if fault.kind in ("kill", "stop", "disk") else ():
            process = self._peers.processes[client]
            process.signal(signal.SIGCONT)
            if client in self._limited and process.alive:
                self.counts["disks that were full and nobody noticed"] += 1
                self._peers.kill(client)  # whether it has noticed or not, it starts again from its disk
            self._limited.discard(client)
            if not process.alive:
                self._peers.start(client)
            self._may_end.discard(client)  # not when strangers leave: they may overlap with a full disk

    def _end_strangers(self, of: Fault | None = None) -> None:
        for fault, strangers in [one for one in self._strangers if of is None or one[0] is of]:
            self._strangers.remove((fault, strangers))
            strangers.__exit__(None, None, None)
            self.counts["strangers' connections"] += strangers.opened

    def _recover(self) -> None:
        """Mend all that is left; then all honest peers must decide together."""
        for fault in self._episode.faults:
            if fault.slot + fault.slots - 1 > self._episode.slots:
                self._mend(fault)
        self._wait_for_links()
        if self._episode.byzantine is not None:
            self._peers.kill(self._episode.byzantine)  # the others need not wait for it
        for slot in range(self._episode.slots + 1, self._episode.slots + 1 + RECOVERY_SLOTS):
            self._begin(slot)
            held = self._server.hold(slot, within_s=self._slot_s + 10.0, all_of=self._honest)
            self.counts["slots decided" if held.certificate is not None else "slots skipped"] += 1
            if held.certificate is not None and held.decided_by >= self._honest:
                return
            last = held.reason or f"decided by {sorted(held.decided_by)} only"
        self.broken.append(f"not all decide together within {RECOVERY_SLOTS} slots after all was mended: {last}")


def find_signed_twice(folders: Mapping[int, Path], shown: Iterable[Certificate]) -> list[str]:
    """Say where the disks of honest peers, and the certificates shown to the server, contradict each other.

    Args:
        folders: Of honest peers, by client; none of them runs.
        shown: What the server knows.
    """
    broken = []
    certified: dict[int, set[bytes]] = {}
    for client, folder in sorted(folders.items()):
        journal = Journal(folder)
        journal.close()
        signed: Counter[tuple[str, int]] = Counter()
        for record in journal.records:
            if isinstance(record, Certificate):
                certified.setdefault(record.slot, set()).add(record.identity)
            elif isinstance(record, SignedValue) and record.client == client:
                signed["value", record.slot] += 1
            elif isinstance(record, Vote) and record.client == client:
                signed["vote", record.statement.slot] += 1
        twice = [name for name, count in signed.items() if count > 1]
        if twice:
            broken.append(f"peer {client} has signed twice: {twice}")
    for certificate in shown:
        certified.setdefault(certificate.slot, set()).add(certificate.identity)
    split = sorted(slot for slot, names in certified.items() if len(names) > 1)
    return [*broken, *([f"two certificates for slots {split}"] if split else [])]


def _election(episode: Episode, slot_s: float) -> dict[str, Any]:
    """Graph and settings: a ring with chords, ready for one fault."""
    n = episode.clients
    edges = sorted({(min(i, j), max(i, j)) for i in range(n) for j in ((i + 1) % n, (i + 2) % n)})
    settings = ElectionSettings(
        budget=episode.budget,
        rule=episode.rule,
        seed=episode.seed % (1 << 31),
        max_faulty=MAX_FAULTY,
        byzantine=episode.byzantine is not None,
        resend_s=0.3,
        silent_intervals=8,
        slot_s=slot_s,
    )
    couplings = stream(episode.seed, "couplings").normal(0.0, 0.3, len(edges)).tolist()
    return {"edges": edges, "couplings": couplings, "settings": settings}
