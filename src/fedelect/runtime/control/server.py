"""The peer's end: whoever may write into the peer's folder may talk to it, as by standard input and output.

The socket is the standard library's (`multiprocessing.connection`) and carries bytes, never pickles. Whoever connects
is greeted, then hears every notice from that moment on. One that does not read is dropped: a peer waits for nobody.
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
"""The socket in the peer's folder; only its owner can use it."""

LONGEST_LINE = 16 * 1024 * 1024
"""No command and no notice is longer, in bytes."""

_LONGEST_PATH = 107  # bytes, on Linux
_NOTICES_KEPT = 4096
_BACKLOG = 16
_END_S = 5.0
_PAUSE_S = 0.1


def socket_path(folder: Path) -> str:
    """Where the socket of the peer in `folder` is.

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
    """Connect to the socket of a peer, which may hang: neither this nor any later word to it takes longer than that.

    Raises:
        OSError: Nobody listens, or who listens does not answer.
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
    """Listens in a peer's folder until it is closed. The folder's lock must be held: an old socket is removed.

    Args:
        folder: The peer's folder.
        greeting: What everybody is told first.
        heard: Called with every line, from a thread of the connection's own; must not raise.

    Raises:
        ConfigurationError: The folder's path is too long for a socket.
        RunError: The socket cannot be made.
    """

    def __init__(self, folder: Path, greeting: Greeting, heard: Callable[[bytes], None]) -> None:
        self._path = socket_path(folder)
        self._greeting, self._heard = greeting, heard
        self._lock = threading.Lock()
        self._guests: set[_Connection] = set()
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
        """Tell everybody who is connected; never waits."""
        line = encode_line(notice)
        with self._lock:
            for guest in self._guests:
                guest.tell(line)

    def close(self) -> None:
        """Stop listening and let go of everybody."""
        with self._lock:
            self._closed = True
        with contextlib.suppress(OSError):
            dial(self._path, _END_S).close()  # wakes the thread that waits for somebody
        self._thread.join(_END_S)
        self._listener.close()
        with self._lock:
            guests = list(self._guests)
        for guest in guests:
            guest.dismiss()
        for guest in guests:
            guest.join(_END_S)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:  # too many open files, or somebody who hung up at once
                if self._closed:
                    return
                time.sleep(_PAUSE_S)
                continue
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                guest = _Connection(connection, encode_line(self._greeting), self._heard, self._gone)
                self._guests.add(guest)

    def _gone(self, guest: "_Connection") -> None:
        with self._lock:
            self._guests.discard(guest)


class _Connection:
    """One connection: a thread that listens to it, and one that speaks. The first closes it when both are done."""

    def __init__(
        self,
        connection: Connection,
        greeting: bytes,
        heard: Callable[[bytes], None],
        gone: Callable[["_Connection"], None],
    ) -> None:
        self._connection, self._heard, self._gone = connection, heard, gone
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_NOTICES_KEPT)
        self._waiting.put(greeting)
        self._speaks = threading.Thread(target=self._speak, daemon=True)
        self._listens = threading.Thread(target=self._listen, daemon=True)
        self._speaks.start()
        self._listens.start()

    def tell(self, line: bytes) -> None:
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self.dismiss()

    def dismiss(self) -> None:
        """End the connection, whatever either thread is doing; the number of the file stays taken until both know."""
        with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._connection.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    def join(self, within_s: float) -> None:
        self._listens.join(within_s)

    def _listen(self) -> None:
        try:
            with contextlib.suppress(OSError, EOFError):
                while True:
                    self._heard(self._connection.recv_bytes(LONGEST_LINE))
        finally:
            self._gone(self)
            self.dismiss()
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._speaks.join()
            self._connection.close()

    def _speak(self) -> None:
        with contextlib.suppress(OSError):
            while (line := self._waiting.get()) is not None:
                self._connection.send_bytes(line)
