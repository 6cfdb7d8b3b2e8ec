"""Real processes on this machine, and what goes wrong between them. Waits have deadlines; nothing is left behind."""

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.runtime.federation_kit import (
    MemoryPeers,
    dense_cohorts,
    hold_all,
    listening_federation,
    make_federation,
    opinions_of,
    place,
)
from tests.runtime.process_kit import QUICK, START_S, Real, real, votes_of

from fedelect.protocol import FRAME_LIMIT, encode
from fedelect.protocol.gossip import Relayed
from fedelect.protocol.messages import GossipMessage
from fedelect.protocol.statements import SignedValue
from fedelect.runtime.host_messages import SLOTS_NAME, Link, Missing, Notice, Ready, Trouble, decode_logs
from fedelect.runtime.identity import CA_NAME, CERTIFICATE_NAME, TLS_KEY_NAME, Authority, read_identity, renew
from fedelect.runtime.launch import PeerProcesses, ProcessEnded
from fedelect.runtime.process import transport_of
from fedelect.runtime.roster import Roster
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import Frame, Inbox, LinkUp, MemoryNetwork
from fedelect.runtime.transport.tls import TlsFiles
from fedelect.runtime.transport.tls_links import TlsTransport
from fedelect.seeds import stream

pytestmark = pytest.mark.integration


def test_dense_form_peers_in_memory_and_real_processes_elect_the_same_cohorts(tmp_path: Path) -> None:
    where = place(clients=5, budget=2)
    dense = dense_cohorts(where, 8)
    roster, folders = make_federation(tmp_path / "memory", where)
    memory = MemoryPeers(folders, MemoryNetwork())
    try:
        in_memory = hold_all(DirectElections(memory, ElectionServer(roster.config(), Ed25519Verifier())), where, 8)
    finally:
        memory.close()
    with real(tmp_path / "real", where) as fed:
        in_processes = hold_all(fed.server, where, 8)
    assert in_processes == in_memory == [cohort for cohort, _ in dense]
    for peers in (folders, fed.folders):
        logs = [decode_logs((folder / SLOTS_NAME).read_bytes()) for folder in peers.values()]
        for of_slot, (cohort, indices) in zip(zip(*logs, strict=True), dense, strict=True):
            assert {log.cohort for log in of_slot} == {cohort}
            voted = [log.indices for log in of_slot if log.indices]  # one may be told before it has voted itself
            assert set(voted) <= {indices}  # to the last bit
            assert not indices or len(voted) >= roster.config().quorum


def test_a_hung_peer_holds_nobody_up_for_long_and_catches_up_when_it_wakes(tmp_path: Path) -> None:
    with real(tmp_path / "fed", place(), **QUICK) as fed:
        fed.elect(1, [0, 1, 2, 3, 4])
        fed.peers.processes[2].signal(signal.SIGSTOP)
        fed.elect(2, [0, 1, 3, 4])
        fed.peers.processes[2].signal(signal.SIGCONT)
        fed.elect_until_voted(3, [2])  # the others need not wait for it while it catches up
    assert votes_of(fed.folders[2])[-1] >= 3


def test_a_peer_with_a_renewed_certificate_rejoins_and_its_neighbours_need_nothing(tmp_path: Path) -> None:
    with real(tmp_path / "fed", place(clients=3, steps=(1,))) as fed:
        fed.elect(1, [0, 1, 2])
        fed.peers.kill(1)
        renew("peer01", fed.folders[1], tmp_path / "fed" / "ca")
        fed.peers.start(1)
        fed.wait(Ready, 1)
        assert fed.elect(2, [0, 1, 2]) == {0, 1, 2}
    assert len(votes_of(fed.folders[1])) <= 2  # it may be told before it has voted itself


def test_a_peer_with_a_certificate_of_another_ca_gets_no_link_and_the_others_go_on(tmp_path: Path) -> None:
    rogue = Authority.generate()
    certificate, key = rogue.certify("peer04", "127.0.0.1")

    def prepare(fed: Real) -> None:
        for name, content in ((CA_NAME, rogue.certificate_pem), (CERTIFICATE_NAME, certificate), (TLS_KEY_NAME, key)):
            (fed.folders[4] / name).write_bytes(content)

    with real(tmp_path / "fed", place(), prepare=prepare, all_up=False, **QUICK) as fed:
        fed.wait(Missing, 4, neighbours=(0, 1, 2, 3))
        fed.elect(1, [0, 1, 2, 3])
    links = [notice for _, notice in fed.heard if isinstance(notice, Link) and notice.neighbour == 4]
    assert not links


def outsider(roster: Roster, folder: Path, *, claims: tuple[int, ...]) -> TlsTransport:
    """Links of a member that calls these its neighbours, whatever the roster says."""
    me = read_identity(folder)
    return TlsTransport(
        realm=me.config.digest.hex()[:16],
        client=me.client,
        address=roster.members[me.client].address,
        neighbours={one: (roster.members[one].name, roster.members[one].address) for one in claims},
        tls=TlsFiles(ca=folder / CA_NAME, certificate=folder / CERTIFICATE_NAME, key=folder / TLS_KEY_NAME),
    )


def test_a_member_that_is_no_neighbour_cannot_say_or_hear_a_word(tmp_path: Path) -> None:
    where = place(clients=6, steps=(1,))  # a ring: 0 and 3 are not linked
    down = {(one, other) for pair in ((0, 1), (0, 5), (1, 2), (4, 5)) for one, other in (pair, pair[::-1])}

    def all_up(client: int, notice: Notice | ProcessEnded) -> bool:
        if isinstance(notice, Link) and notice.up:
            down.discard((client, notice.neighbour))
        return not down

    with real(tmp_path / "fed", where, without=(3,), **QUICK | {"silent_intervals": 15}) as fed:
        assert fed.peers.listen(all_up, START_S), f"links that did not come up: {sorted(down)}"
        links, inbox = outsider(fed.roster, fed.folders[3], claims=(0, 2, 4)), Inbox()
        links.start(inbox)
        try:
            up: set[int] = set()
            until = time.monotonic() + START_S
            while up < {2, 4} and time.monotonic() < until:
                event = inbox.get(0.5)
                up |= {event.neighbour} if isinstance(event, LinkUp) else set()
            for _ in range(20):
                links.send(0, b"not your neighbour")
            fed.elect(1, [0, 1, 2, 4, 5])
            heard = []
            while (event := inbox.get(0.2)) is not None:
                heard.append(event)
            assert up == {2, 4}
            assert {event.neighbour for event in heard if isinstance(event, Frame)} == {2, 4}
        finally:
            links.close()
    (log,) = decode_logs((fed.folders[0] / SLOTS_NAME).read_bytes())
    assert log.refused == 0  # not even delivered


def forgery(fed: Real, receiver: int) -> GossipMessage:
    """In the name of client 4 itself, a value that client 2 never signed."""
    config, head = fed.roster.config(), fed.server.chain.head
    value = SignedValue(config.digest, 2, head, 2, float("nan"), 0.9, bytes(16), bytes(64))
    return GossipMessage(config.digest, 4, receiver, 2, head, 1, entries=(Relayed(value),))


def insist(fed: Real, links: TlsTransport, frames: tuple[bytes, ...], refusals: int) -> None:
    """Send the frames to clients 0 to 3 until each has reported `refusals` refusals: a link that is busy drops some."""
    told = Counter(client for client, notice in fed.heard if isinstance(notice, Trouble))

    def hear(client: int, notice: Notice | ProcessEnded) -> bool:
        fed.heard.append((client, notice))
        told[client] += isinstance(notice, Trouble)
        return min(told[n] for n in range(4)) >= refusals

    until = time.monotonic() + START_S
    while min(told[n] for n in range(4)) < refusals and time.monotonic() < until:
        for neighbour in range(4):
            for frame in frames:
                links.send(neighbour, frame)
        fed.peers.listen(hear, 1.0)


def test_garbage_oversized_replayed_and_forged_frames_of_a_neighbour_are_refused_and_the_others_decide(
    tmp_path: Path,
) -> None:
    with real(tmp_path / "fed", place(), without=(4,), **QUICK) as fed:
        links, inbox = transport_of(read_identity(fed.folders[4])), Inbox()
        links.start(inbox)
        try:
            until = time.monotonic() + START_S
            up: set[int] = set()
            kept: list[bytes] = []
            while up < {0, 1, 2, 3} and time.monotonic() < until:
                event = inbox.get(0.5)
                up |= {event.neighbour} if isinstance(event, LinkUp) else set()
            fed.elect(1, [0, 1, 2, 3])
            while (event := inbox.get(0.2)) is not None:
                kept += [event.content] if isinstance(event, Frame) else []
            fed.server.begin_with(2, judged=1, opinions={n: one for n, one in opinions_of(1, 5).items() if n != 4})
            certificate = encode(fed.server.chain.certificates[-1])  # a record is no message
            garbage = (b"", b"\0" * 50, stream(1, "garbage").bytes(5000), bytes(FRAME_LIMIT + 1000), certificate)
            frames = (*kept[:1], *garbage, *kept[1:50])  # one of others first: only the first refusals are reported
            for neighbour in range(4):
                for frame in frames:
                    links.send(neighbour, frame)  # what others said to it, handed on as its own
                links.send(neighbour, encode(forgery(fed, neighbour)))
            links.send(0, bytes(3 * FRAME_LIMIT))  # more than the links themselves take
            fed.finish(2, [0, 1, 2, 3])
            insist(fed, links, (*kept[:1], b"", certificate), refusals=4)
        finally:
            links.close()
    refused = [sum(log.refused for log in decode_logs((fed.folders[n] / SLOTS_NAME).read_bytes())) for n in range(4)]
    assert min(refused) >= 4
    troubles = " ".join(notice.text for _, notice in fed.heard if isinstance(notice, Trouble))
    assert "no frame of a fedelect peer" in troubles and "speaks for client" in troubles
    assert "proven" not in troubles  # nobody was framed
    assert not fed.peers.alive


def test_peers_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    with listening_federation(tmp_path / "fed", place(clients=3, steps=(1,))):
        check_that_peers_end_with_their_starter(tmp_path / "fed")


def check_that_peers_end_with_their_starter(fed: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from fedelect.runtime.launch import PeerProcesses\n"
        f"peers = PeerProcesses({{n: Path({str(fed)!r}) / f'peer{{n:02d}}' for n in range(3)}})\n"
        f"peers.start_all({START_S}); print(*[one.number for one in peers.processes.values()], flush=True)\n"
        "sys.stdin.read()"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None and starter.stdin is not None
    numbers = list(map(int, starter.stdout.readline().split()))
    assert len(numbers) == 3
    starter.kill()
    starter.wait(10.0)
    starter.stdin.close()
    starter.stdout.close()
    until = time.monotonic() + START_S
    while any(running(number) for number in numbers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [number for number in numbers if running(number)]


def running(number: int) -> bool:
    """Whether it runs; one that has ended and waits to be counted does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_folder_that_is_in_use_cannot_be_run_twice_and_a_lone_copy_says_who_is_missing(tmp_path: Path) -> None:
    with real(tmp_path / "fed", place(clients=3, steps=(1,))) as fed:
        twin = PeerProcesses({0: fed.folders[0]})
        with twin, pytest.raises(Exception, match="is being written by"):
            twin.start_all(START_S)
        copy = tmp_path / "copy"
        shutil.copytree(fed.folders[0], copy)
        with PeerProcesses({0: copy}) as second, pytest.raises(Exception, match="cannot listen"):
            second.start_all(START_S)
