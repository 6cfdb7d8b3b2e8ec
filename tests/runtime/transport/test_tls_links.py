"""Real links on this machine: who gets one, what strangers can do, and what a neighbour must not do."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.federation_kit import LONG_S, listening_federation, make_federation, place

from fedelect.errors import ConfigurationError
from fedelect.runtime.identity import CERTIFICATE_NAME, TLS_KEY_NAME, Authority, read_identity
from fedelect.runtime.process import transport_of
from fedelect.runtime.transport import Frame, Inbox, LinkDown, LinkUp, listener, tls_links
from fedelect.runtime.transport.base import READ_BURST
from fedelect.runtime.transport.link import ALIVE_S, LEASE_S, Link, LinkOwner
from fedelect.runtime.transport.tls_links import TlsTransport

GREETING, FRAME, ALIVE = 1, 2, 3
Fed = dict[int, Path]


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    """Four on a ring: 0 and 2 are no neighbours, nor are 1 and 3."""
    with listening_federation(tmp_path / "fed", place(clients=4, steps=(1,))) as (_, folders):
        yield folders


@contextlib.contextmanager
def links(folder: Path, inbox: Inbox | None = None) -> Iterator[tuple[TlsTransport, Inbox]]:
    made, inbox = transport_of(read_identity(folder)), inbox or Inbox()
    made.start(inbox)
    try:
        yield made, inbox
    finally:
        made.close()


def wait_for(inbox: Inbox, wanted: Callable[[Any], bool]) -> Any:
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        event = inbox.get(0.1)
        if event is not None and wanted(event):
            return event
    raise AssertionError("it never came")


def address_of(folder: Path) -> tuple[str, int]:
    identity = read_identity(folder)
    host, _, port = identity.roster.members[identity.client].address.rpartition(":")
    return host, int(port)


class RawNeighbour:
    """A TLS connection with a member's files, by hand."""

    def __init__(self, folder: Path, to: Path, *, certificate: bytes | None = None, key: bytes | None = None) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(folder / "ca.pem")
        if certificate is not None and key is not None:
            (folder / "other.pem").write_bytes(certificate + key)
            context.load_cert_chain(folder / "other.pem")
        else:
            context.load_cert_chain(folder / CERTIFICATE_NAME, folder / TLS_KEY_NAME)
        self.realm = read_identity(folder).config.digest.hex()[:16].encode()
        self.socket = context.wrap_socket(
            socket.create_connection(address_of(to), timeout=LONG_S), server_hostname=address_of(to)[0]
        )

    def say(self, kind: int, content: bytes = b"", *, length: int | None = None) -> None:
        self.socket.sendall(struct.pack("<BI", kind, len(content) if length is None else length) + content)

    def greet(self) -> "RawNeighbour":
        self.say(GREETING, b"fedelect link 1 " + self.realm)
        return self

    def read_to_the_end(self) -> bytes:
        """All that comes until the other side ends the connection."""
        heard = b""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while more := self.socket.recv(65536):
                heard += more
        return heard

    def close(self) -> None:
        self.socket.close()


def garbage(to: Path, content: bytes = b"x" * 64) -> socket.socket:
    made = socket.create_connection(address_of(to), timeout=LONG_S)
    made.sendall(content)
    return made


def has_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_neighbours_link_and_carry_frames_of_any_size_up_to_the_limit_both_ways(fed: Fed) -> None:
    with links(fed[0]) as (one, at_one), links(fed[1]) as (other, at_other):
        assert wait_for(at_one, lambda event: True) == LinkUp(1) and wait_for(at_other, lambda event: True) == LinkUp(0)
        sent = [b"", b"x", bytes(1000), bytes(one.frame_limit)]
        one.send(1, bytes(one.frame_limit + 1))  # dropped
        for frame in sent:
            one.send(1, frame)
            other.send(0, frame)
        one.send(3, b"not up")
        one.send(2, b"no neighbour")
        assert [wait_for(at_other, lambda event: True) for _ in sent] == [Frame(0, frame) for frame in sent]
        assert [wait_for(at_one, lambda event: True) for _ in sent] == [Frame(1, frame) for frame in sent]
        other.close()
        assert wait_for(at_one, lambda event: True) == LinkDown(1)
        other.close()
        other.send(0, b"closed")


def test_a_neighbour_that_ends_and_comes_back_is_linked_again(fed: Fed) -> None:
    with links(fed[1]) as (_, inbox):
        for _ in range(3):
            with links(fed[0]):
                wait_for(inbox, lambda event: event == LinkUp(0))
            wait_for(inbox, lambda event: event == LinkDown(0))


def test_hundreds_that_send_garbage_do_not_stand_before_a_valid_neighbour(fed: Fed) -> None:
    with links(fed[0]) as (_, inbox), contextlib.ExitStack() as ends:
        strangers = [ends.enter_context(contextlib.closing(garbage(fed[0]))) for _ in range(400)]
        with links(fed[1]):  # a listener that spends 0.1 s on each of them would need 40 s
            wait_for(inbox, lambda event: event == LinkUp(1))
        for stranger in strangers:
            with contextlib.suppress(ConnectionError):
                while stranger.recv(1000):  # an alert, then the end
                    pass


@pytest.mark.parametrize("content", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["idle", "half a handshake"])
def test_strangers_that_wait_are_bounded_the_oldest_go_and_a_valid_neighbour_links_meanwhile(
    fed: Fed, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_S", 1000.0)
    monkeypatch.setattr(tls_links, "HANDSHAKE_S", 1000.0)
    over = 50
    with links(fed[0]) as (_, inbox), contextlib.ExitStack() as ends:
        strangers = [
            ends.enter_context(contextlib.closing(garbage(fed[0], content))) for _ in range(listener.UNFINISHED + over)
        ]
        with links(fed[1]):
            wait_for(inbox, lambda event: event == LinkUp(1))
            for stranger in strangers[:over]:
                assert stranger.recv(1) == b""  # ended; else this times out
            assert not any(has_ended(stranger) for stranger in strangers[over + 1 :])  # one made room for the neighbour


def test_a_stranger_that_only_waits_is_cut_off_after_the_deadline(fed: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_S", 0.2)
    with links(fed[0]):
        with contextlib.closing(garbage(fed[0], b"")) as idle:
            assert idle.recv(1) == b""
        monkeypatch.setattr(listener, "HANDSHAKE_S", 1.0)
        with (
            contextlib.suppress(ConnectionError, ssl.SSLError),  # on a slow machine it is cut off while it shakes hands
            contextlib.closing(RawNeighbour(fed[1], fed[0])) as silent,  # a member, that does not greet
        ):
            silent.read_to_the_end()


def test_without_a_certificate_of_the_federations_ca_nobody_is_greeted(fed: Fed) -> None:
    with links(fed[0]) as (_, inbox):
        certificate, key = Authority.generate().certify("peer01", "127.0.0.1")
        with contextlib.closing(RawNeighbour(fed[1], fed[0], certificate=certificate, key=key)) as rogue:
            assert rogue.read_to_the_end() == b""
        with links(fed[1]):
            wait_for(inbox, lambda event: event == LinkUp(1))
        assert inbox.get(0.0) in (None, LinkDown(1))


@pytest.mark.parametrize("name", ["peer02", "peer00", "peer09", "fedelect federation CA"])
def test_a_member_that_is_no_neighbour_is_not_greeted(fed: Fed, name: str) -> None:
    certificate, key = Authority.read(fed[0].parent / "ca").certify(name, "127.0.0.1")
    with (
        links(fed[0]) as (_, inbox),
        contextlib.closing(RawNeighbour(fed[1], fed[0], certificate=certificate, key=key)) as raw,
    ):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            raw.greet().say(FRAME, b"a word")
        assert raw.read_to_the_end() == b""
        assert inbox.get(0.0) is None


def test_a_lower_numbered_neighbour_is_called_and_may_not_call(fed: Fed) -> None:
    with links(fed[1]) as (_, inbox), contextlib.closing(RawNeighbour(fed[0], fed[1])) as raw:
        assert raw.read_to_the_end() == b""
        assert inbox.get(0.0) is None


@pytest.mark.parametrize(
    ("name", "host"), [("peer03", "127.0.0.1"), ("peer00", "127.0.0.9")], ids=["another member", "another host"]
)
def test_one_that_answers_in_place_of_a_called_neighbour_gets_no_greeting(fed: Fed, name: str, host: str) -> None:
    certificate, key = Authority.read(fed[0].parent / "ca").certify(name, host)
    (fed[0] / "other.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(fed[0] / "other.pem")
    with socket.create_server(address_of(fed[0])) as door, links(fed[1]) as (_, inbox):
        for _ in range(3):  # it calls again and again
            called, _ = door.accept()
            with contextlib.suppress(OSError), context.wrap_socket(called, server_side=True) as impostor:
                assert impostor.recv(100) == b""
        assert inbox.get(0.0) is None


def test_a_peer_of_another_election_gets_no_link(fed: Fed) -> None:
    with links(fed[0]) as (_, inbox), contextlib.closing(RawNeighbour(fed[1], fed[0])) as raw:
        raw.realm = b"0" * 16
        raw.greet()
        raw.say(FRAME, b"a word")
        raw.read_to_the_end()
        assert inbox.get(0.0) is None


@pytest.mark.parametrize(
    ("kind", "length"),
    [(FRAME, None), (FRAME, 2**32 - 1), (ALIVE, 1), (GREETING, 32), (9, 0)],
    ids=["over the limit", "4 GiB", "sign of life with content", "second greeting", "unknown"],
)
def test_what_is_too_long_or_out_of_place_ends_the_link(fed: Fed, kind: int, length: int | None) -> None:
    with links(fed[0]) as (made, inbox), contextlib.closing(RawNeighbour(fed[1], fed[0]).greet()) as raw:
        raw.say(FRAME, b"good")
        wait_for(inbox, lambda event: event == Frame(1, b"good"))
        raw.say(kind, length=made.frame_limit + 1 if length is None else length)
        raw.read_to_the_end()
        wait_for(inbox, lambda event: event == LinkDown(1))


def test_a_second_connection_of_a_neighbour_takes_the_place_of_the_first(fed: Fed) -> None:
    with links(fed[0]) as (made, inbox), contextlib.closing(RawNeighbour(fed[1], fed[0]).greet()) as first:
        wait_for(inbox, lambda event: event == LinkUp(1))
        with contextlib.closing(RawNeighbour(fed[1], fed[0]).greet()) as second:
            first.read_to_the_end()
            second.say(FRAME, b"from the second")
            heard: list[Any] = []
            while heard[-1:] != [Frame(1, b"from the second")]:
                heard.append(wait_for(inbox, lambda event: True))
            assert LinkDown(1) not in heard
            made.send(1, b"to the second")
            said = b""
            while b"to the second" not in said:
                said += second.socket.recv(1000)


@dataclass
class Clock:
    """Time that passes when a test says so."""

    now_s: float = 0.0


class TimedLoop:
    """A transport's loop with such a clock; what it waits for itself takes real time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop, self._clock = loop, clock

    def time(self) -> float:
        return self._clock.now_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


def test_silence_for_a_lease_ends_a_link_and_signs_of_life_keep_it(fed: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    def timed(owner: LinkOwner, called: int | None, loop: asyncio.AbstractEventLoop) -> Link:
        return Link(owner, called, TimedLoop(loop, clock))  # type: ignore[arg-type]

    monkeypatch.setattr(tls_links, "Link", timed)
    monkeypatch.setattr(tls_links, "ALIVE_S", 0.02)  # how often a link looks at its clock
    with links(fed[0]) as (_, inbox), contextlib.closing(RawNeighbour(fed[1], fed[0]).greet()) as raw:
        wait_for(inbox, lambda event: event == LinkUp(1))
        heard, greeting, sign = b"", 37, 5
        for signs in range(1, 2 * round(LEASE_S / ALIVE_S) + 1):  # for twice the lease both give signs of life
            clock.now_s += ALIVE_S
            raw.say(ALIVE)
            while len(heard) < greeting + signs * sign:
                heard += raw.socket.recv(1000) or b"ended".ljust(1000)
        assert b"ended" not in heard and inbox.get(0.0) is None
        raw.say(FRAME, b"the last word")
        wait_for(inbox, lambda event: event == Frame(1, b"the last word"))
        clock.now_s += 1.1 * LEASE_S
        raw.read_to_the_end()
        assert wait_for(inbox, lambda event: True) == LinkDown(1)


def test_a_neighbour_that_floods_is_read_at_its_pace_and_another_one_at_once(fed: Fed) -> None:
    clock = [0.0]
    inbox = Inbox(clock=lambda: clock[0])  # it stands still: after the burst each frame makes the next one wait longer
    size, burst = 65536, int(READ_BURST)
    with links(fed[0], inbox), contextlib.closing(RawNeighbour(fed[1], fed[0]).greet()) as raw:
        flood = threading.Thread(target=_flood, args=(raw, size, 2 * burst), daemon=True)
        flood.start()
        taken = 0
        while taken < burst // (size + 256):
            taken += isinstance(wait_for(inbox, lambda event: True), Frame)
        with contextlib.closing(RawNeighbour(fed[3], fed[0]).greet()) as other:
            other.say(FRAME, b"quiet")
            while wait_for(inbox, lambda event: isinstance(event, Frame)).neighbour != 3:
                taken += 1
        raw.close()
        flood.join(LONG_S)
    assert taken < 1.5 * burst / size  # the rest waits in TCP's queues, which slows the sender down


def _flood(raw: RawNeighbour, size: int, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        for _ in range(most // size):
            raw.say(FRAME, bytes(size))


def test_a_peer_does_not_start_without_tls_or_on_an_address_that_is_not_its_own(fed: Fed, tmp_path: Path) -> None:
    identity = read_identity(fed[0])
    with links(fed[0]), pytest.raises(ConfigurationError, match=r"cannot listen on 127\.0\.0\.1"):
        transport_of(identity).start(Inbox())
    _, folders = make_federation(tmp_path / "away", place(), at=tuple(f"192.0.2.1:{n}" for n in range(1000, 1005)))
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1:1000: it is no address"):
        transport_of(read_identity(folders[0])).start(Inbox())
    (fed[0] / TLS_KEY_NAME).write_bytes((fed[1] / TLS_KEY_NAME).read_bytes())
    with pytest.raises(ConfigurationError, match="is the key the certificate's"):
        transport_of(identity)
    (fed[0] / TLS_KEY_NAME).unlink()
    with pytest.raises(ConfigurationError, match="does not start unprotected"):
        transport_of(identity)
