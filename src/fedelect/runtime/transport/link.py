"""One connection to a neighbour after the TLS handshake: greeting, frames, signs of life.

Everything on the wire is a kind (1 byte), a length (4 bytes, little-endian) and content. Each side first sends a
greeting, which names this format and the election. Only a certified neighbour that has greeted is linked. What is
longer than allowed, or out of place, ends the connection.
"""

import asyncio
import struct
from typing import Any, Protocol

from fedelect.runtime.transport.tls import certified_name

LEASE_S = 4.0
"""Silence, signs of life included, after which a neighbour is down, seconds."""

ALIVE_S = LEASE_S / 4
"""Interval of signs of life on a link that says nothing else, seconds."""

_HEADER = struct.Struct("<BI")
_GREETING, _FRAME, _ALIVE = 1, 2, 3
_NAME = b"fedelect link 1 "


class LinkOwner(Protocol):
    """What a link asks and tells its transport."""

    realm: str
    frame_limit: int

    def find_neighbour(self, name: str, link: "Link") -> int | None:
        """Return the neighbour of this certified name that may link here, or None."""

    def link_up(self, link: "Link") -> None:
        """The neighbour has greeted."""

    def link_down(self, link: "Link") -> None:
        """The connection has ended; it may never have been up."""

    def receive(self, neighbour: int, content: bytes) -> float:
        """Take a frame; return the seconds for which nothing more should be read."""


class Link(asyncio.Protocol):
    """One connection; all methods run in the transport's thread.

    Args:
        owner: The transport.
        called: The neighbour that was called; None if it called.
        loop: The loop of the transport's thread.

    Attributes:
        called: As given.
        neighbour: Who is at the other end; None until its certificate is known.
        greeted: Done when the link is up; fails if it ends before.
        ended: Done when the connection is over.
    """

    def __init__(self, owner: LinkOwner, called: int | None, loop: asyncio.AbstractEventLoop) -> None:
        self._owner, self.called, self._loop = owner, called, loop
        self._transport: Any = None
        self._buffer = bytearray()
        self._paused: asyncio.TimerHandle | None = None
        self._heard_s = self._said_s = loop.time()
        self.neighbour: int | None = None
        self.greeted: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()

    @property
    def connected(self) -> bool:
        """Whether the TLS handshake has been completed."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet a neighbour; end the connection of any other member."""
        self._transport = transport
        self._heard_s = self._loop.time()
        name = certified_name(transport)
        self.neighbour = None if name is None else self._owner.find_neighbour(name, self)
        if self.neighbour is None:
            self.abort()
        else:
            self._write(_GREETING, _NAME + self._owner.realm.encode())

    def data_received(self, data: bytes) -> None:
        """Take the complete parts of what has arrived."""
        self._heard_s = self._loop.time()
        self._buffer += data
        if self._paused is None:
            self._take_parts()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the transport."""
        if self._paused is not None:
            self._paused.cancel()
        if not self.greeted.done():
            self.greeted.set_exception(ConnectionError("the connection ended before the neighbour greeted"))
            self.greeted.exception()  # nobody need ask for it
        if not self.ended.done():
            self.ended.set_result(None)
            self._owner.link_down(self)

    def send(self, content: bytes, room: int) -> bool:
        """Send a frame if less than `room` bytes wait to be sent; return whether it was sent."""
        if self._transport.is_closing() or self._transport.get_write_buffer_size() > room:
            return False
        self._write(_FRAME, content)
        return True

    def tick(self) -> None:
        """End the connection after the lease; give a sign of life if it is time."""
        now = self._loop.time()
        if self._transport.is_closing():
            return
        if self._paused is None and now - self._heard_s > LEASE_S:
            self.abort()
        elif now - self._said_s >= 0.9 * ALIVE_S:
            self._write(_ALIVE, b"")

    def close(self) -> None:
        """End the connection after what waits to be sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _write(self, kind: int, content: bytes) -> None:
        self._said_s = self._loop.time()
        self._transport.write(_HEADER.pack(kind, len(content)) + content)

    def _take_parts(self) -> None:
        place, wait_s = 0, 0.0
        while wait_s <= 0.0 and len(self._buffer) - place >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer, place)
            if not self._allows(kind, length):
                self.abort()
                return
            end = place + _HEADER.size + length
            if len(self._buffer) < end:
                break
            content = bytes(memoryview(self._buffer)[place + _HEADER.size : end])
            place = end
            wait_s = self._take(kind, content)
        del self._buffer[:place]
        if wait_s > 0.0 and not self._transport.is_closing():
            self._transport.pause_reading()
            self._paused = self._loop.call_later(wait_s, self._resume)

    def _allows(self, kind: int, length: int) -> bool:
        if not self.greeted.done():
            return kind == _GREETING and length == len(_NAME) + len(self._owner.realm)
        return (kind == _FRAME and length <= self._owner.frame_limit) or (kind == _ALIVE and length == 0)

    def _take(self, kind: int, content: bytes) -> float:
        assert self.neighbour is not None
        if kind == _FRAME:
            return self._owner.receive(self.neighbour, content)
        if kind == _GREETING:
            if content != _NAME + self._owner.realm.encode():
                self.abort()
            elif not self._transport.is_closing():
                self.greeted.set_result(None)
                self._owner.link_up(self)
        return 0.0

    def _resume(self) -> None:
        self._paused = None
        self._heard_s = self._loop.time()
        if self._transport.is_closing():
            return
        self._take_parts()
        if self._paused is None:
            self._transport.resume_reading()
