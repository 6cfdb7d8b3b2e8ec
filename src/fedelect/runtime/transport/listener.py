"""The side of a peer that strangers can reach: it accepts callers and bounds what they cost.

A caller is nothing but a socket until its first byte has arrived, and only one that begins a TLS handshake is given
one. Whether it waits or shakes hands, it has a deadline, and how many there are is bounded, fairly between addresses
(`Handshakes`).
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from fedelect.errors import ConfigurationError
from fedelect.runtime.transport.handshakes import Handshakes

UNFINISHED = 256
"""Most callers at a time that are not linked."""

HANDSHAKE_S = 10.0
"""Longest time from a TCP connection to the neighbour's greeting, seconds."""

_TLS_HANDSHAKE = b"\x16"  # the first byte of every TLS connection
_BACKLOG = 1024
_ACCEPTS_AT_ONCE = 32  # then links have their turn
_NO_ROOM_S = 0.1
_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_log = logging.getLogger(__name__)

Admit = Callable[[socket.socket], Coroutine[Any, Any, None]]
"""Make a connection a link, or raise; then the connection is closed."""


class Listener:
    """Listens on one address. All but the constructor runs in the thread of the event loop.

    Args:
        address: Address to listen on, host:port.
        admit: Called with each connection that begins a TLS handshake; cancelled when it must make room.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """

    def __init__(self, address: str, admit: Admit) -> None:
        self.admit = admit
        self.callers: Handshakes[_Caller] = Handshakes(UNFINISHED)
        self._doors = _open_doors(address)

    def open(self) -> None:
        """Accept callers from now on."""
        for door in self._doors:
            asyncio.get_running_loop().add_reader(door, self._accept, door)

    def close(self) -> None:
        """Accept nobody any more, and end all that are not linked."""
        for door in self._doors:
            asyncio.get_running_loop().remove_reader(door)
            door.close()
        for caller in list(self.callers):
            caller.end()

    def _accept(self, door: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                connection, address = door.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no more open files or memory: let those that are open end first
                _log.debug("cannot accept: %s", error)
                loop.remove_reader(door)
                loop.call_later(_NO_ROOM_S, self._accept_again, door)
                return
            connection.setblocking(False)
            pushed_out = self.callers.add(_Caller(self, connection, loop), address[0])
            if pushed_out is not None:
                pushed_out.end()

    def _accept_again(self, door: socket.socket) -> None:
        if door.fileno() >= 0:
            asyncio.get_running_loop().add_reader(door, self._accept, door)


class _Caller:
    """A connection that is not linked: it waits for its first byte, or shakes hands."""

    def __init__(self, listener: Listener, connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._listener, self._connection, self._loop = listener, connection, loop
        self._task: asyncio.Task[None] | None = None
        self._deadline = loop.call_later(HANDSHAKE_S, self.end)
        loop.add_reader(connection, self._begin)

    def end(self) -> None:
        """End it at once."""
        self._listener.callers.discard(self)
        self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()
        elif self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection)
            self._connection.close()

    def _begin(self) -> None:
        """Shake hands, if that is what the first byte is for."""
        try:
            first = self._connection.recv(1, socket.MSG_PEEK)
        except OSError:
            first = b""
        if first != _TLS_HANDSHAKE:
            self.end()
            return
        self._loop.remove_reader(self._connection)
        self._task = self._loop.create_task(self._listener.admit(self._connection))
        self._task.add_done_callback(self._finish)

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._deadline.cancel()
        self._listener.callers.discard(self)
        if task.cancelled() or task.exception() is not None:  # whatever it was, a stranger caused it
            self._connection.close()


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address.

    >>> split_address("peer.example.org:7447"), split_address("[::1]:7447")
    (('peer.example.org', 7447), ('::1', 7447))
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _open_doors(address: str) -> list[socket.socket]:
    """Listen on every address of this machine that the name stands for."""
    host, port = split_address(address)
    doors: list[socket.socket] = []
    try:
        for family, _, _, _, where in dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)):
            try:
                doors.append(socket.create_server(where, family=family, backlog=_BACKLOG))
            except OSError as error:
                if error.errno not in _NO_SUCH_ADDRESS:
                    raise
        if not doors:
            raise OSError(errno.EADDRNOTAVAIL, "it is no address of this machine")
    except OSError as error:
        for door in doors:
            door.close()
        raise ConfigurationError(
            f"cannot listen on {address}: {error.strerror or error}; is the port taken, the address this machine's?"
        ) from error
    for door in doors:
        door.setblocking(False)
    return doors
