"""SIGKILL of as many real peers as may fail, in every phase of a slot: the phase triggers it, the disk proves it."""

import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.faults import stopping_peer
from tests.runtime.faults.relay_kit import Relays, reroute
from tests.runtime.faults.stopping_peer import STOP_NAME
from tests.runtime.federation_kit import place
from tests.runtime.process_kit import START_S, Real, real, votes_of

from fedelect.protocol import Certificate
from fedelect.protocol.statements import SignedValue, Vote
from fedelect.runtime.host_messages import Link, Notice, Phase
from fedelect.runtime.journal import Journal
from fedelect.runtime.launch import ProcessEnded

pytestmark = pytest.mark.integration

CLIENTS = 7
EVERYBODY = list(range(CLIENTS))
PHASES = ("exchanging", "flooding", "certifying", "decided")
VICTIMS = ((0, 1), (2, 5), (3, 4), (6, 0), (1, 4), (2, 3))
TRIES = 20  # a peer that goes through several phases in one step says only the last
WRAP = (sys.executable, stopping_peer.__file__)


def phase_on_disk(folder: Path, slot: int) -> str:
    """How far a peer that is dead had got in a slot."""
    journal = Journal(folder)
    journal.close()
    if any(isinstance(record, Certificate) and record.slot == slot for record in journal.records):
        return "decided"
    if any(isinstance(record, Vote) and record.statement.slot == slot for record in journal.records):
        return "certifying"
    signed = any(isinstance(record, SignedValue) and record.slot == slot for record in journal.records)
    return "flooding" if signed else "exchanging"


def kill_in(fed: Real, slot: int, phase: str, victims: tuple[int, ...]) -> dict[int, str]:
    """Hold the election of `slot`, and kill each victim when it has stopped itself in `phase`.

    All others must decide. Returns in which phase each victim died.
    """
    for client in victims:
        (fed.folders[client] / STOP_NAME).write_text(f"{slot} {phase}")

    def watch(client: int, notice: Notice | ProcessEnded) -> None:
        if client in victims and isinstance(notice, Phase) and (notice.slot, notice.phase) == (slot, phase):
            fed.peers.processes[client].signal(signal.SIGKILL)

    fed.on_notice = watch
    fed.begin(slot, EVERYBODY)
    rest = set(EVERYBODY) - set(victims)
    assert fed.finish(slot, sorted(rest)) >= rest
    for client in victims:  # one that went through several phases in one step is still there
        fed.peers.kill(client)
        (fed.folders[client] / STOP_NAME).unlink()
    return {client: phase_on_disk(fed.folders[client], slot) for client in victims}


def rejoin(fed: Real, victims: tuple[int, ...]) -> None:
    waiting = {(n, client) for client in victims for n in fed.roster.config().neighbours[client]}

    def up(client: int, notice: Notice | ProcessEnded) -> bool:
        if isinstance(notice, Link) and notice.up:
            waiting.discard((client, notice.neighbour))
        return not waiting

    for client in victims:
        fed.peers.start(client)
    assert fed.peers.listen(up, START_S), f"links that did not come back: {sorted(waiting)}"


def test_two_peers_killed_in_any_phase_hold_nobody_up_split_nothing_and_rejoin(tmp_path: Path) -> None:
    where = place(clients=CLIENTS, budget=2, rounds=5)
    settings: dict[str, Any] = {"max_faulty": 2, "resend_s": 0.3, "silent_intervals": 40, "slot_s": 90.0}
    struck: dict[str, int] = {}
    slot = 0
    with Relays() as relays:  # over slow links phases follow one by one

        def prepare(fed: Real) -> None:
            address = {client: member.address for client, member in enumerate(fed.roster.members)}
            reroute(fed.folders, [(max(edge), min(edge), relays.to(address[min(edge)])) for edge in fed.roster.edges])

        with real(tmp_path / "fed", where, prepare=prepare, wraps=dict.fromkeys(EVERYBODY, WRAP), **settings) as fed:
            for number, phase in enumerate(PHASES):
                for attempt in range(TRIES):
                    slot += 1
                    victims = VICTIMS[(number + attempt) % len(VICTIMS)]
                    found = kill_in(fed, slot, phase, victims)
                    rejoin(fed, victims)
                    if set(found.values()) == {phase}:
                        struck[phase] = attempt + 1
                        break
            fed.on_notice = lambda client, notice: None
            rejoined = slot + 1
            fed.elect_until_voted(rejoined, EVERYBODY)
    print(f"slots until both were struck in their phase: {struck}")
    assert set(struck) == set(PHASES)
    check_disks(fed)
    for folder in fed.folders.values():
        assert votes_of(folder)[-1] >= rejoined  # those that were killed vote again


def check_disks(fed: Real) -> None:
    """No slot has two certificates, nor votes for two."""
    certified: dict[int, set[bytes]] = {}
    voted: Counter[tuple[int, bytes]] = Counter()
    for folder in fed.folders.values():
        journal = Journal(folder)
        journal.close()
        for record in journal.records:
            if isinstance(record, Certificate):
                certified.setdefault(record.slot, set()).add(record.identity)
            elif isinstance(record, Vote):
                voted[record.statement.slot, record.statement.identity] += 1
    for (slot, identity), votes in voted.items():
        if votes >= fed.roster.config().quorum:
            certified.setdefault(slot, set()).add(identity)
    assert certified and all(len(names) == 1 for names in certified.values())
    assert {one.slot: {one.identity} for one in fed.server.chain.certificates} == certified
