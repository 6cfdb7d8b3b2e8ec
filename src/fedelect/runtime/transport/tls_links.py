"""Real links: mutual TLS over TCP, by the standard library alone.

Every peer listens on one address and calls its lower-numbered neighbours, again and again while a link is down. A
thread of its own runs an event loop. Handshakes go on beside each other, each with a deadline, and their number is
bounded (`Listener`): strangers that send garbage, or nothing, delay nobody. TLS admits members that the federation's CA
has certified; of these only a neighbour, by its certificate's common name, is linked. A full queue drops: the protocol
repeats messages, and no send ever blocks. A neighbour that sends too much is read more slowly (`Inbox.charge`), and TCP
slows it down.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Mapping

from fedelect.protocol import FRAME_LIMIT
from fedelect.runtime.transport.base import FRAME_COST, Frame, Inbox, LinkDown, LinkUp
from fedelect.runtime.transport.link import ALIVE_S, Link
from fedelect.runtime.transport.listener import HANDSHAKE_S, Listener, split_address
from fedelect.runtime.transport.tls import TlsFiles, make_contexts

CONNECT_S = 3.0
"""Longest time for a TCP connection to a neighbour, seconds."""

RETRY_S = (0.1, 1.0)
"""First and longest pause before a neighbour is called again, seconds; it doubles each time."""

_CLOSE_S = 1.0  # for what waits to be sent when links are closed
_log = logging.getLogger(__name__)


class TlsTransport:
    """One peer's links to its neighbours.

    Args:
        realm: Name of the election, so that two never mix; letters and digits.
        client: The client whose links these are.
        address: Address to listen on, host:port.
        neighbours: By number, their names (as in their certificates) and addresses.
        tls: Keys and certificates; required.
        frame_limit: Largest frame in bytes, sent or received.

    Raises:
        ConfigurationError: A TLS file is missing or cannot be used.
    """

    def __init__(
        self,
        *,
        realm: str,
        client: int,
        address: str,
        neighbours: Mapping[int, tuple[str, str]],
        tls: TlsFiles,
        frame_limit: int = FRAME_LIMIT,
    ) -> None:
        self.realm, self.frame_limit = realm, frame_limit
        self._client, self._address = client, address
        self._numbers = {name: number for number, (name, _) in neighbours.items()}
        self._called = {number: where for number, (_, where) in neighbours.items() if number < client}
        self._listening, self._calling = make_contexts(tls)
        self._links: dict[int, Link] = {}
        self._queued = dict.fromkeys(neighbours, 0)  # bytes on their way to the loop's thread
        self._lock = threading.Lock()
        self._inbox: Inbox | None = None
        self._listener: Listener | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, inbox: Inbox) -> None:
        """See `Transport`.

        Raises:
            ConfigurationError: The address cannot be listened on.
        """
        listener = Listener(self._address, self._admit)
        self._inbox = inbox
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: _log.debug("%s", context))
        self._loop.call_soon(self._open, listener)
        self._listener = listener
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def send(self, neighbour: int, frame: bytes) -> None:
        """See `Transport`."""
        cost = len(frame) + FRAME_COST
        with self._lock:
            loop = self._loop
            if loop is None or len(frame) > self.frame_limit or neighbour not in self._queued:
                return
            if self._queued[neighbour] + cost > self._room:
                return
            self._queued[neighbour] += cost
            loop.call_soon_threadsafe(self._send, neighbour, frame, cost)

    def close(self) -> None:
        """See `Transport`."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), loop).result(5.0 * _CLOSE_S)
        self._inbox = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()

    def find_neighbour(self, name: str, link: Link) -> int | None:
        """See `LinkOwner`: the neighbour that was called, or one that may call."""
        number = self._numbers.get(name)
        if link.called is None:
            return number if number is not None and number > self._client else None
        return number if number == link.called else None

    def link_up(self, link: Link) -> None:
        """See `LinkOwner`: an earlier link to the same neighbour ends."""
        assert link.neighbour is not None
        before, self._links[link.neighbour] = self._links.get(link.neighbour), link
        if before is not None:
            before.abort()
        if self._inbox is not None:
            self._inbox.put(LinkUp(link.neighbour))

    def link_down(self, link: Link) -> None:
        """See `LinkOwner`."""
        if link.neighbour is not None and self._links.get(link.neighbour) is link:
            del self._links[link.neighbour]
            if self._inbox is not None:
                self._inbox.put(LinkDown(link.neighbour))

    def receive(self, neighbour: int, content: bytes) -> float:
        """See `LinkOwner`."""
        if self._inbox is None:
            return 0.0
        self._inbox.offer(Frame(neighbour, content))
        return self._inbox.charge(neighbour, len(content) + FRAME_COST)

    @property
    def _room(self) -> int:
        """Bytes that may wait to be sent to a neighbour."""
        return 2 * self.frame_limit

    def _send(self, neighbour: int, frame: bytes, cost: int) -> None:
        with self._lock:
            self._queued[neighbour] -= cost
        link = self._links.get(neighbour)
        if link is not None:
            link.send(frame, self._room)

    def _open(self, listener: Listener) -> None:
        """Listen and call; in the loop's thread."""
        loop = asyncio.get_running_loop()
        listener.open()
        self._tasks = [loop.create_task(self._keep_calling(*called)) for called in self._called.items()]
        self._tasks.append(loop.create_task(self._watch()))

    async def _admit(self, connection: socket.socket) -> None:
        """Make a caller's connection a link, or raise."""
        link = Link(self, None, asyncio.get_running_loop())
        try:
            await self._greet(link, connection, self._listening, None)
        except BaseException:
            link.abort()
            raise

    async def _greet(self, link: Link, sock: socket.socket, context: ssl.SSLContext, host: str | None) -> None:
        """Make a TCP connection a link, or fail in time."""
        loop = asyncio.get_running_loop()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does not for accepted sockets
        async with asyncio.timeout(HANDSHAKE_S):
            if host is None:
                await loop.connect_accepted_socket(lambda: link, sock, ssl=context, ssl_handshake_timeout=HANDSHAKE_S)
            else:
                await loop.create_connection(
                    lambda: link, sock=sock, ssl=context, server_hostname=host, ssl_handshake_timeout=HANDSHAKE_S
                )
            await asyncio.shield(link.greeted)

    async def _keep_calling(self, neighbour: int, address: str) -> None:
        """Call a neighbour whenever the link to it is down."""
        host, port = split_address(address)
        pause_s = RETRY_S[0]
        while True:
            link = Link(self, neighbour, asyncio.get_running_loop())
            try:
                await self._greet(link, await _connect(host, port), self._calling, host)
                pause_s = RETRY_S[0]
                await asyncio.shield(link.ended)
            except (OSError, TimeoutError) as error:
                _log.debug("no link to neighbour %d at %s: %s", neighbour, address, error)
            finally:
                link.abort()
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, RETRY_S[1])

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_S)
            for link in list(self._links.values()):
                link.tick()

    async def _end(self) -> None:
        if self._listener is not None:
            self._listener.close()
        links = list(self._links.values())
        for link in links:
            link.close()
        if links:
            await asyncio.wait([link.ended for link in links], timeout=_CLOSE_S)
        for link in links:
            link.abort()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # connections that were aborted are closed


async def _connect(host: str, port: int) -> socket.socket:
    """Return a TCP connection to the first address of `host` that answers in time."""
    loop = asyncio.get_running_loop()
    failure: Exception = OSError(f"{host} has no address")
    for family, kind, protocol, _, where in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.sock_connect(sock, where)
            return sock
        except (OSError, TimeoutError) as error:
            failure = error
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise
    raise failure
