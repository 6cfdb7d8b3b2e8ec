"""The control socket of a peer: the same words as on standard input and output, to programs that come and go."""

import errno
import os
import queue
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.control.controlled_peers import ControlledPeers
from tests.runtime.federation_kit import dense_cohorts, listening_federation, make_federation, opinions_of, place

from fedelect.errors import ConfigurationError, RunError
from fedelect.protocol import Certificate, CertificateChain, decode_record
from fedelect.runtime.control import CONTROL_NAME, ControlClient, ControlServer, ElectionReply
from fedelect.runtime.control.server import dial
from fedelect.runtime.host_messages import (
    SLOTS_NAME,
    BeginSlot,
    Greeting,
    Skipped,
    Trouble,
    decode_logs,
    decode_notice,
    encode_line,
)
from fedelect.runtime.launch import PeerProcesses
from fedelect.runtime.signing import Ed25519Verifier

WHERE = place(clients=4, budget=2)
GREETING = Greeting(client=3, configuration="ab", slot_s=9.0)


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[ControlledPeers]:
    _, folders = make_federation(tmp_path / "fed", WHERE)
    running = ControlledPeers(folders)
    yield running
    running.close()


def elect(peers: ControlledPeers, slot: int, **others: Any) -> dict[int, ElectionReply]:
    return elect_with(peers.folders, slot, **others)


def elect_with(folders: dict[int, Path], slot: int, **others: Any) -> dict[int, ElectionReply]:
    """Everybody takes part by its control socket, as four programs would."""
    given = opinions_of(slot - 1, WHERE.clients) if slot > 1 else dict.fromkeys(range(WHERE.clients))
    heard: dict[int, ElectionReply] = {}

    def one(client: int) -> None:
        with ControlClient(folders[client]) as peer:
            assert peer.greeting.client == client
            heard[client] = peer.elect(slot, judged=slot - 1, opinion=given[client], within_s=30.0, **others)

    threads = [threading.Thread(target=one, args=(client,)) for client in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40.0)
    assert sorted(heard) == sorted(folders)
    return heard


def test_elections_by_control_sockets_are_those_of_the_dense_form(peers: ControlledPeers) -> None:
    chain = CertificateChain(peers.config, Ed25519Verifier())
    for slot in range(1, 6):
        for heard in elect(peers, slot, after=slot - 1).values():
            assert heard.decided and len(heard.certificates) == 1
            certificate = decode_record(bytes.fromhex(heard.certificates[0]))
            assert isinstance(certificate, Certificate)
            chain.add(certificate)
    assert [one.cohort for one in chain.certificates] == [cohort for cohort, _ in dense_cohorts(WHERE, 5)]


def test_who_asks_again_is_told_of_the_election_that_was_held_and_of_all_that_it_missed(peers: ControlledPeers) -> None:
    first = elect(peers, 1)
    elect(peers, 2)
    with ControlClient(peers.folders[0]) as peer:
        again = peer.elect(2, judged=1, opinion=0.9, after=0, within_s=30.0)
    with ControlClient(peers.folders[0]) as peer:
        only = peer.elect(2, judged=1, opinion=0.9, after=1, within_s=30.0)
    assert again.decided and len(again.certificates) == 2
    assert again.certificates[1:] == only.certificates
    assert decode_record(bytes.fromhex(again.certificates[0])) == decode_record(bytes.fromhex(first[0].certificates[0]))


def test_who_is_behind_the_peers_is_shown_what_they_elected_since_page_by_page(
    peers: ControlledPeers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [elect(peers, slot, after=slot - 1)[0].certificates[0] for slot in range(1, 6)]
    monkeypatch.setattr("fedelect.runtime.control.client.PAGE", 2)
    for after in (0, 1):
        with ControlClient(peers.folders[0]) as peer:
            heard = peer.elect(2, judged=1, opinion=0.9, after=after, within_s=30.0)
        assert heard == ElectionReply(tuple(shown[after:]), True)


def test_an_election_that_goes_on_is_not_disturbed_by_a_second_begin(peers: ControlledPeers) -> None:
    with ControlClient(peers.folders[0]) as first, ControlClient(peers.folders[0]) as second:
        for peer in (first, second):  # as when a server has restarted
            peer.tell(BeginSlot(slot=1))
            assert peer._replay(0, {}, time.monotonic() + 30.0)  # is answered after it has begun
        assert all(heard.decided for heard in elect(peers, 1).values())
        for peer in (first, second):
            assert peer.elect(1, judged=0, opinion=None, within_s=30.0).decided


def test_a_peer_that_cannot_decide_says_so_in_time(peers: ControlledPeers) -> None:
    with ControlClient(peers.folders[0]) as peer:
        heard = peer.elect(1, judged=0, opinion=None, within_s=0.5)
    assert not heard.decided and heard.certificates == () and "0.5 s" in heard.reason
    elect(peers, 2)
    with ControlClient(peers.folders[0]) as peer:
        late = peer.elect(1, judged=0, opinion=None, after=0, within_s=30.0)
    assert not late.decided and "cannot begin" in late.reason


def test_a_late_begin_for_an_earlier_slot_leaves_the_open_election_alone(peers: ControlledPeers) -> None:
    first = elect(peers, 1)[0].certificates
    with ControlClient(peers.folders[0]) as new, ControlClient(peers.folders[0]) as old:
        new.tell(BeginSlot(slot=4, judged=1, opinion=0.25))
        assert new._replay(1, {}, time.monotonic() + 30.0)  # is answered after it has begun
        late = old.elect(3, judged=2, opinion=0.75, after=1, within_s=30.0)
        assert not late.decided and "slot 4 is being elected for" in late.reason
        assert old.elect(1, judged=0, opinion=None, within_s=30.0) == ElectionReply(first, True)
        heard = elect(peers, 4, after=1)
    assert all(one.decided for one in heard.values())
    peers.close()
    noted = decode_logs((peers.folders[0] / SLOTS_NAME).read_bytes())
    assert [(log.slot, log.judged, log.opinion) for log in noted][1:] == [(4, 1, 0.25)]


def test_nobody_else_can_reach_the_socket_and_it_goes_with_the_peer(peers: ControlledPeers) -> None:
    socket = peers.folders[1] / CONTROL_NAME
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    with ControlClient(peers.folders[1]) as peer:
        peers.stop(1)
        with pytest.raises(RunError, match="went away"):
            peer.elect(1, judged=0, opinion=None, within_s=5.0)
    assert not socket.exists()
    with pytest.raises(RunError, match="--control"):
        ControlClient(peers.folders[1])


NO_COMMANDS = (
    b'{"type":"begin","slot":"x"}',
    b'{"type":"\xff"}',
    b"\xff\xfe\x00",
    b"[" * 200_000,
    b'{"type":"stop","x":' + b"[" * 200_000,
    b'{"type":"begin","slot":%d}' % 2**63,
    b'{"type":"begin","slot":%d}' % 2**70,
    b'{"type":"begin","slot":-1}',
    b'{"type":"begin","slot":2,"judged":%d}' % 2**70,
    b'{"type":"replay","after":-1}',
    b'{"type":"replay","most":-1}',
)


def test_words_that_are_none_are_trouble_and_the_peer_goes_on(peers: ControlledPeers) -> None:
    for line in NO_COMMANDS:
        assert "no command" in answer_to(peers.folders[2], line)
    model = peers.folders[2] / "empty.npy"
    model.write_bytes(b"")
    np.savez(peers.folders[2] / "share.npz", inputs=np.zeros((2, 2)), labels=np.zeros(2, dtype=int))
    assert "cannot judge" in answer_to(peers.folders[2], encode_line(BeginSlot(slot=2, judged=1, model=str(model))))
    odd = encode_line(BeginSlot(slot=2, judged=1, model="a\0b"))
    assert "cannot judge" in answer_to(peers.folders[2], odd)
    with ControlClient(peers.folders[2]) as peer:
        peer.tell(BeginSlot(slot=1))
    assert all(heard.decided for heard in elect(peers, 1).values())


def answer_to(folder: Path, line: bytes) -> str:
    """What trouble a line makes, said to who sent it."""
    with Client(str(folder / CONTROL_NAME), family="AF_UNIX") as rude:
        assert isinstance(decode_notice(rude.recv_bytes()), Greeting)
        rude.send_bytes(line)
        while rude.poll(60.0):
            notice = decode_notice(rude.recv_bytes())
            if isinstance(notice, Trouble):
                return notice.text
    raise AssertionError(f"nothing was said of {line[:60]!r}")


def test_a_listener_that_fails_lets_go_of_its_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda hooked: failed.set())

    def fails(line: bytes) -> None:
        raise KeyError(line)

    control = ControlServer(tmp_path, GREETING, fails)
    with Client(str(tmp_path / CONTROL_NAME), family="AF_UNIX") as guest:
        guest.send_bytes(b"anything")
        assert guest.poll(60.0) and ends(guest.recv_bytes)
    assert failed.wait(60.0)
    control.close()


def test_a_listener_goes_on_when_it_could_not_accept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Listener.accept, []

    def accept(self: Listener) -> Any:
        calls.append(1)
        if len(calls) <= 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(self)

    monkeypatch.setattr(Listener, "accept", accept)
    control = ControlServer(tmp_path, GREETING, lambda line: None)
    with ControlClient(tmp_path) as peer:
        assert peer.greeting == GREETING
    control.close()
    assert len(calls) > 2


def test_a_peer_that_hangs_is_given_up_also_when_too_many_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedelect.runtime.control.client._GREETING_S", 0.3)
    with Listener(str(tmp_path / CONTROL_NAME), family="AF_UNIX", backlog=2):  # as one that is stopped: accepts nobody
        said = []
        for _ in range(5):
            with pytest.raises(RunError, match="hangs") as told:
                ControlClient(tmp_path)
            said.append(str(told.value))
    assert "did not greet within 0.3 s" in said[0] and "takes no connection" in said[-1]


def test_a_peer_that_stops_in_the_middle_of_a_word_is_given_up(tmp_path: Path) -> None:
    with Listener(str(tmp_path / CONTROL_NAME), family="AF_UNIX") as listener:
        connection = dial(str(tmp_path / CONTROL_NAME), 0.2)
        with listener.accept() as peer, connection:
            os.write(peer.fileno(), struct.pack("!i", 100) + b"{")  # says that a hundred bytes come
            with pytest.raises(OSError):
                connection.recv_bytes()
            with pytest.raises(OSError):
                while True:
                    connection.send_bytes(bytes(1 << 16))


def test_a_path_too_long_for_a_socket_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="shorter"):
        ControlServer(tmp_path / ("x" * 100), GREETING, lambda line: None)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[ControlServer]:
    listening = ControlServer(tmp_path, GREETING, lambda line: None)
    yield listening
    listening.close()


def test_a_guest_that_does_not_read_is_let_go_and_the_others_hear_on(tmp_path: Path, control: ControlServer) -> None:
    path, read = str(tmp_path / CONTROL_NAME), threading.Semaphore(0)
    heard: queue.SimpleQueue[Skipped] = queue.SimpleQueue()
    with Client(path, family="AF_UNIX") as deaf, Client(path, family="AF_UNIX") as reading:

        def hear() -> None:
            while not isinstance(notice := decode_notice(reading.recv_bytes()), Skipped):
                read.release()
            heard.put(notice)

        assert isinstance(decode_notice(reading.recv_bytes()), Greeting)  # both are guests now
        thread = threading.Thread(target=hear, daemon=True)
        thread.start()

        def tell() -> None:
            for number in range(6000):
                if number >= 2000 and not read.acquire(timeout=60.0):  # it is never too far behind to be kept
                    return
                control.tell(Trouble(text="x" * 2000))
            control.tell(Skipped(slot=5, reason="enough"))

        telling = threading.Thread(target=tell, daemon=True)
        telling.start()  # would wait for the deaf one for ever
        assert heard.get(timeout=120.0).reason == "enough"
        assert ends(deaf.recv_bytes)
        for one in (thread, telling):
            one.join(60.0)


def ends(hear: Callable[[], bytes]) -> bool:
    """Whether a connection that was dropped ends, after what was on its way."""
    try:
        while True:
            hear()
    except (EOFError, OSError):
        return True


@pytest.mark.integration
def test_real_processes_elect_by_their_control_sockets(tmp_path: Path) -> None:
    with (
        listening_federation(tmp_path / "fed", WHERE) as (roster, folders),
        PeerProcesses(folders, control=True) as peers,
    ):
        peers.start_all(120.0)
        shown = [elect_with(folders, slot) for slot in (1, 2, 3)]
        assert peers.stop_all(120.0) == frozenset()  # one that is killed leaves its socket
    chain = CertificateChain(roster.config(), Ed25519Verifier())
    for heard in shown:
        certificates = [decode_record(bytes.fromhex(one.certificates[-1])) for one in heard.values()]
        chain.extend([one for one in certificates if isinstance(one, Certificate)])
    assert [one.cohort for one in chain.certificates] == [cohort for cohort, _ in dense_cohorts(WHERE, 3)]
    assert not [folder for folder in folders.values() if (folder / CONTROL_NAME).exists()]
