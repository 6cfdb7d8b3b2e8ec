"""Server of a peer's control socket, open to processes that may write into the peer's folder.

The socket is the standard library's (`multiprocessing.connection`) and carries bytes, never pickles. A client gets a
greeting, then every notice from that moment on. A client that does not read is disconnected: a peer never waits.
"""

import contextlib
import errno
import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from fedelect.errors import ConfigurationError, RunError
from fedelect.runtime.host_messages import Greeting, Notice, encode_line

CONTROL_NAME = "control"
"""Name of the socket in the peer's folder; only its owner can use it."""

LONGEST_LINE = 16 * 1024 * 1024
"""Largest command or notice, bytes."""

_LONGEST_PATH = 107  # bytes, on Linux
_NOTICES_KEPT = 4096
_BACKLOG = 16
_END_S = 5.0
_PAUSE_S = 0.1


def socket_path(folder: Path) -> str:
    """Return the path of the control socket in `folder`.

    Raises:
        ConfigurationError: The path is longer than a socket's may be.
    """
    path = str(folder.absolute() / CONTROL_NAME)
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise ConfigurationError(
            f"the path of the control socket {path} has more than {_LONGEST_PATH} bytes; use a shorter folder"
        )
    return path


def dial(path: str, within_s: float) -> Connection:
    """Connect to a peer's socket; neither this nor any later read or write takes longer than `within_s`.

    Raises:
        OSError: No peer listens, or it does not answer.
    """
    until = time.monotonic() + within_s
    with socket.socket(socket.AF_UNIX) as line:
        line.setblocking(False)
        while True:
            try:
                line.connect(path)
                break
            except BlockingIOError:  # more than it accepts are waiting
                if time.monotonic() > until:
                    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
                time.sleep(_PAUSE_S)
        line.setblocking(True)
        limit = struct.pack("ll", int(within_s), int(within_s % 1.0 * 1e6))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        return Connection(line.detach())


class ControlServer:
    """Listens on a peer's control socket. Hold the folder's lock: an old socket is removed.

    Args:
        folder: The peer's folder.
        greeting: First notice to every client.
        on_line: Called with every line, from a thread of its connection; must not raise.

    Raises:
        ConfigurationError: The folder's path is too long for a socket.
        RunError: The socket cannot be made.
    """

    def __init__(self, folder: Path, greeting: Greeting, on_line: Callable[[bytes], None]) -> None:
        self._path = socket_path(folder)
        self._greeting, self._on_line = greeting, on_line
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        self._closed = False
        try:
            Path(self._path).unlink(missing_ok=True)
            self._listener = Listener(self._path, family="AF_UNIX", backlog=_BACKLOG)
            os.chmod(self._path, 0o600)
        except OSError as error:
            raise RunError(f"cannot listen on {self._path}: {error}; check the folder's permissions") from error
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def tell(self, notice: Notice) -> None:
        """Send a notice to all connected clients; never waits."""
        line = encode_line(notice)
        with self._lock:
            for connection in self._connections:
                connection.send(line)

    def close(self) -> None:
        """Stop listening and disconnect all clients."""
        with self._lock:
            self._closed = True
        with contextlib.suppress(OSError):
            dial(self._path, _END_S).close()  # wakes the accepting thread
        self._thread.join(_END_S)
        self._listener.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.disconnect()
        for connection in connections:
            connection.join(_END_S)

    def _accept(self) -> None:
        while True:
            try:
                accepted = self._listener.accept()
            except OSError:  # too many open files, or a client that disconnected at once
                if self._closed:
                    return
                time.sleep(_PAUSE_S)
                continue
            with self._lock:
                if self._closed:
                    accepted.close()
                    return
                greeting = encode_line(self._greeting)
                self._connections.add(_Connection(accepted, greeting, self._on_line, self._on_end))

    def _on_end(self, connection: "_Connection") -> None:
        with self._lock:
            self._connections.discard(connection)


class _Connection:
    """One client: a thread that reads and one that writes. The reader closes the connection when both are done."""

    def __init__(
        self,
        connection: Connection,
        greeting: bytes,
        on_line: Callable[[bytes], None],
        on_end: Callable[["_Connection"], None],
    ) -> None:
        self._connection, self._on_line, self._on_end = connection, on_line, on_end
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_NOTICES_KEPT)
        self._waiting.put(greeting)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._writer.start()
        self._reader.start()

    def send(self, line: bytes) -> None:
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self.disconnect()

    def disconnect(self) -> None:
        """Shut the connection down; its file descriptor stays open until both threads have seen that."""
        with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._connection.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    def join(self, within_s: float) -> None:
        self._reader.join(within_s)

    def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, EOFError):
                while True:
                    self._on_line(self._connection.recv_bytes(LONGEST_LINE))
        finally:
            self._on_end(self)
            self.disconnect()
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._writer.join()
            self._connection.close()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (line := self._waiting.get()) is not None:
                self._connection.send_bytes(line)
