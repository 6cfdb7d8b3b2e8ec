"""Small federations for tests: a ring with chords, opinions from a seed, and peers in threads over memory."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedelect.analytics import democratized_feedback
from fedelect.runtime.host_messages import Command, Notice, Stop
from fedelect.runtime.identity import create_federation, member_names, read_identity
from fedelect.runtime.journal import Journal
from fedelect.runtime.launch import ProcessEnded, reserve_addresses
from fedelect.runtime.node import Node
from fedelect.runtime.roster import Roster, couplings_for, settings_for
from fedelect.runtime.server import DirectElections
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import Inbox, MemoryNetwork, MemoryTransport
from fedelect.scenario.config import BeliefsConfig, DataConfig, ScenarioConfig
from fedelect.seeds import derive, stream
from fedelect.selectors import BpGp, BpUcb
from fedelect.vocabulary import Cohort, Feedback, Floats, Ints

LONG_S = 60.0
"""Longer than anything that is waited for takes, however busy the machine is."""


@dataclass(frozen=True)
class Place:
    """Clients on a ring with chords: without any one of them it stays connected."""

    config: ScenarioConfig
    clients: int
    edges: Ints
    edge_lengths_km: Floats


def place(clients: int = 5, budget: int = 2, rounds: int = 3, steps: tuple[int, ...] = (1, 2)) -> Place:
    pairs = {tuple(sorted((n, (n + step) % clients))) for n in range(clients) for step in steps}
    edges = np.array(sorted(pairs), dtype=np.int64)
    beliefs = BeliefsConfig(rounds=rounds, coupling_scale=0.3, coupling_exponent=1.0)
    config = ScenarioConfig(clients=clients, budget=budget, beliefs=beliefs, data=DataConfig(iid_clients=0))
    return Place(config, clients, edges, stream(3, "lengths").uniform(0.1, 1.0, len(edges)))


def opinions_of(slot: int, clients: int) -> dict[int, float | None]:
    rng = stream(77, "opinions", slot)
    opinions = np.clip(np.linspace(0.2, 0.9, clients) + 0.1 * rng.normal(size=clients), 0.0, 1.0)
    return {
        client: None if silent else value
        for client, (value, silent) in enumerate(
            zip(opinions.tolist(), (rng.random(clients) < 0.15).tolist(), strict=True)
        )
    }


def dense_cohorts(
    where: Place, slots: int, seed: int = 1, *, rule: str = "bp-ucb"
) -> list[tuple[Cohort, tuple[float, ...]]]:
    """What BP-UCB, or BP-GP, elects from dense beliefs, with the same opinions."""
    kind: type[BpUcb] | type[BpGp] = BpGp if rule == "bp-gp" else BpUcb
    dense = kind(clients=where.clients, budget=where.config.budget, seed=derive(seed, "selection", 0))
    elected = []
    for slot in range(1, slots + 1):
        selection = dense.ask()
        elected.append((selection.cohort, tuple(selection.indices)))
        given = opinions_of(slot, where.clients)
        opinions = np.array([np.nan if one is None else one for one in given.values()])
        feedback = democratized_feedback(where, opinions)[0]
        dense.tell(selection, Feedback(opinions=opinions, beliefs=feedback.beliefs))
    return elected


def make_federation(
    out: Path, where: Place, *, at: tuple[str, ...] | None = None, **settings: Any
) -> tuple[Roster, dict[int, Path]]:
    """Write the folders of a federation; without addresses to listen on, for peers over memory."""
    edges, couplings = couplings_for(where)
    usual: dict[str, Any] = {
        "rule": "bp-ucb",
        "resend_s": 0.2,
        "silent_intervals": 100,
        "slot_s": 20.0,
    }  # a machine that stalls makes nobody gone
    chosen = settings_for(where.config, seed=1, **(usual | settings))
    roster = create_federation(
        out,
        addresses=at or tuple(f"127.0.0.1:{7000 + client}" for client in range(where.clients)),
        edges=edges,
        couplings=couplings,
        settings=chosen,
    )
    return roster, {client: out / name for client, name in enumerate(member_names(where.clients))}


@contextlib.contextmanager
def listening_federation(out: Path, where: Place, **settings: Any) -> Iterator[tuple[Roster, dict[int, Path]]]:
    """Write the folders of a federation of real processes, and hold its ports for them."""
    with reserve_addresses(where.clients) as at:
        yield make_federation(out, where, at=at, **settings)


class MemoryPeers:
    """Peers in threads of this process over a memory network, behind the same interface as real processes.

    All links are up before any peer runs, and those of a peer that is started again before its `start` returns: no
    neighbour is lost because its thread is slow to start.
    """

    def __init__(self, folders: Mapping[int, Path], network: MemoryNetwork) -> None:
        self._folders, self.network = dict(folders), network
        self.said: queue.SimpleQueue[tuple[int, Notice | ProcessEnded]] = queue.SimpleQueue()
        self.heard: list[tuple[int, Notice | ProcessEnded]] = []
        self._running: dict[int, tuple[threading.Thread, Inbox]] = {}
        for thread in [self._prepare(client, LONG_S) for client in folders]:
            thread.start()

    @property
    def alive(self) -> frozenset[int]:
        return frozenset(client for client, (thread, _) in self._running.items() if thread.is_alive())

    def start(self, client: int, missing_after_s: float = LONG_S) -> None:
        self._prepare(client, missing_after_s).start()

    def _prepare(self, client: int, missing_after_s: float) -> threading.Thread:
        identity = read_identity(self._folders[client])
        self.config = identity.config
        inbox, journal = Inbox(), Journal(self._folders[client])
        links = MemoryTransport(self.network, client, frozenset(identity.config.neighbours[client]))
        node = Node(
            config=identity.config,
            client=client,
            signer=identity.signer,
            verifier=Ed25519Verifier(),
            transport=links,
            journal=journal,
            folder=self._folders[client],
            tell=lambda notice: self.said.put((client, notice)),
            inbox=inbox,
            missing_after_s=missing_after_s,
        )

        def run() -> None:
            try:
                node.run()
            finally:
                journal.close()

        thread = threading.Thread(target=run, daemon=True)
        self._running[client] = (thread, inbox)
        links.start(inbox)  # the node does it once more, which changes nothing
        return thread

    def stop(self, client: int) -> None:
        thread, inbox = self._running[client]
        inbox.put(Stop())
        thread.join(LONG_S)
        assert not thread.is_alive()

    def inbox(self, client: int) -> Inbox:
        return self._running[client][1]

    def tell(self, client: int, command: Command) -> None:
        self._running[client][1].put(command)

    def listen(self, finished: Callable[[int, Notice | ProcessEnded], bool], within_s: float) -> bool:
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0.0:
            try:
                said = self.said.get(timeout=left)
            except queue.Empty:
                return False
            self.heard.append(said)
            if finished(*said):
                return True
        return False

    def close(self) -> None:
        for client in list(self._running):
            self.stop(client)


def hold_all(
    server: DirectElections, where: Place, slots: int, *, first: int = 1, within_s: float = 60.0
) -> list[Cohort]:
    """Hold the elections of these slots with the opinions of `opinions_of`; each must be decided by everybody."""
    everybody = frozenset(range(where.clients))
    cohorts = []
    for slot in range(first, first + slots):
        before = opinions_of(slot - 1, where.clients) if slot > 1 else dict.fromkeys(everybody)
        server.begin_with(slot, judged=slot - 1, opinions=before)
        held = server.hold(slot, within_s=within_s, all_of=everybody)
        assert held.certificate is not None, f"slot {slot}: {held.reason}"
        assert held.decided_by == everybody, f"slot {slot} was decided by {sorted(held.decided_by)} only"
        cohorts.append(held.certificate.cohort)
    return cohorts
