"""Many peers on this machine: one process each, watched, and none left behind.

A process is a fresh interpreter that ends when its standard input does, so peers do not outlive the process that
started them, `kill -9` included. `PeerProcesses.close` tells them to stop and kills, by process id, those that do not.
Peers write the log of their last slot when told to stop: to read it, call `PeerProcesses.stop_all` first, which gives
them the time that a busy machine needs.
"""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from fedelect._processes import ONE_THREAD
from fedelect.errors import ConfigurationError, RunError
from fedelect.runtime.host_messages import Command, Missing, Notice, Ready, Stop, Trouble, decode_notice, encode_line
from fedelect.runtime.process import END_S

LOG_NAME = "log.txt"
"""What a peer's process prints by accident, in its folder."""

_BOOT = "import sys; sys.path[:] = sys.argv[3:]; from fedelect.runtime.process import main; main()"


@contextlib.contextmanager
def reserve_addresses(count: int, host: str = "127.0.0.1") -> Iterator[tuple[str, ...]]:
    """Hold free addresses of this machine for peers to listen on, until the end of the `with` block.

    The ports stay bound here without listening, so that the system gives them to nobody else; zenoh, which sets
    SO_REUSEADDR, can listen on them all the same.

    Raises:
        ConfigurationError: There are not enough free ports.
    """
    with contextlib.ExitStack() as held:
        found = []
        for _ in range(count):
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, 0))
            except OSError as error:
                raise ConfigurationError(f"no free port on {host}: {error}; use fewer clients") from error
            found.append(f"{host}:{probe.getsockname()[1]}")
        yield tuple(found)


class ProcessEnded:
    """In place of a notice: the process is gone."""

    def __init__(self, code: int) -> None:
        self.code = code


Said = tuple[int, Notice | ProcessEnded]
"""(client, what it said)."""

OnNotice = Callable[[int, Notice | ProcessEnded], None]
"""Told (client, notice) of whatever a peer says, from the thread that listens to it; must not raise."""


class PeerProcess:
    """A peer's process and the thread that listens to it.

    Args:
        client: Its number.
        folder: The peer's folder.
        said: Where its notices go.
        wrap: What to put before the command, for example ("ip", "netns", "exec", NAME).
        control: Whether it listens on its control socket, too.
        on_notice: Told of its notices too, at once.
    """

    def __init__(
        self,
        client: int,
        folder: Path,
        said: "queue.SimpleQueue[Said]",
        wrap: tuple[str, ...] = (),
        control: bool = False,
        on_notice: OnNotice | None = None,
    ) -> None:
        self.client = client
        self._on_notice = on_notice
        with open(folder / LOG_NAME, "ab") as log:
            try:
                self._process = subprocess.Popen(
                    [*wrap, sys.executable, "-c", _BOOT, str(folder), "control" if control else "", *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=os.environ | ONE_THREAD,
                    start_new_session=True,
                )
            except OSError as error:
                raise RunError(f"cannot start a peer: {error}; use fewer clients") from error
        self._said = said
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def number(self) -> int:
        """The process number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def tell(self, command: Command) -> None:
        """Give it a command; one that is gone does not mind."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(encode_line(command))
            self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def gone(self, until: float) -> bool:
        """Wait until it is gone, or the monotonic clock says `until`; whether it is."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, until - time.monotonic()))
        return not self.alive

    def end(self, until: float) -> None:
        """Wait until it is gone; kill it when the monotonic clock says `until`."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()
        if not self.gone(until):
            self._process.kill()
            self._process.wait(END_S)
        self._thread.join(END_S)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    self._pass_on(decode_notice(line))
                except ConfigurationError as error:
                    self._pass_on(Trouble(text=str(error)))
        self._pass_on(ProcessEnded(self._process.wait()))

    def _pass_on(self, notice: Notice | ProcessEnded) -> None:
        if self._on_notice is not None:
            self._on_notice(self.client, notice)
        self._said.put((self.client, notice))


class PeerProcesses:
    """The processes of some peers; use it in a `with` statement, which leaves none behind.

    Args:
        folders: By client, the peer's folder.
        wraps: By client, what to put before its command.
        on_notice: Told (client, notice) of whatever they say, at once, from other threads.
        control: Whether the peers listen on their control sockets, too.
    """

    def __init__(
        self,
        folders: Mapping[int, Path],
        wraps: Mapping[int, tuple[str, ...]] | None = None,
        on_notice: OnNotice | None = None,
        *,
        control: bool = False,
    ) -> None:
        self._on_notice = on_notice
        self._folders = dict(folders)
        self._wraps = dict(wraps or {})
        self._control = control
        self._said: queue.SimpleQueue[Said] = queue.SimpleQueue()
        self._running: dict[int, PeerProcess] = {}

    @property
    def processes(self) -> Mapping[int, PeerProcess]:
        """By client, its process; also one that has ended."""
        return dict(self._running)

    @property
    def alive(self) -> frozenset[int]:
        """The clients whose processes run."""
        return frozenset(client for client, process in self._running.items() if process.alive)

    def start(self, client: int) -> None:
        """Start a peer, for the first time or again after its process has ended."""
        before = self._running.get(client)
        if before is not None:
            if before.alive:
                raise RunError(f"peer {client} runs as process {before.number}; kill it before it is started again")
            before.end(time.monotonic())
        wrap = self._wraps.get(client, ())
        self._running[client] = PeerProcess(
            client, self._folders[client], self._said, wrap, self._control, self._on_notice
        )

    def tell(self, client: int, command: Command) -> None:
        """Give one peer a command."""
        self._running[client].tell(command)

    def kill(self, client: int) -> None:
        """SIGKILL: it stops in the middle of whatever it was doing."""
        self._running[client].signal(signal.SIGKILL)
        self._running[client].end(time.monotonic() + END_S)

    def hear(self, wait_s: float) -> Said | None:
        """What a peer says next, or None if nobody says anything for `wait_s` seconds."""
        try:
            return self._said.get(timeout=max(0.0, wait_s)) if wait_s > 0.0 else self._said.get_nowait()
        except queue.Empty:
            return None

    def listen(self, finished: Callable[[int, Notice | ProcessEnded], bool], within_s: float) -> bool:
        """Hear the peers until `finished` says so; returns False if that took longer than `within_s` seconds."""
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0.0:
            said = self.hear(left)
            if said is not None and finished(*said):
                return True
        return False

    def start_all(self, within_s: float) -> None:
        """Start all peers and wait until every link is up.

        Raises:
            RunError: Some did not get so far; the message says who and why.
        """
        for client in self._folders:
            self.start(client)
        waiting = set(self._folders)
        troubles: dict[int, str] = {}

        def ready(client: int, notice: Notice | ProcessEnded) -> bool:
            if isinstance(notice, Ready):
                waiting.discard(client)
            elif isinstance(notice, Trouble | Missing):
                troubles[client] = notice.text
            elif isinstance(notice, ProcessEnded):
                raise RunError(f"peer {client} ended at once: {troubles.get(client, self._last_words(client))}")
            return not waiting

        if not self.listen(ready, within_s):
            who = "; ".join(f"{client}: {troubles.get(client, 'no word')}" for client in sorted(waiting)[:3])
            raise RunError(f"{len(waiting)} peers were not ready within {within_s:g} s; {who}")

    def stop_all(self, within_s: float) -> frozenset[int]:
        """Tell all peers to stop, and wait until they have noted their last slot and are gone.

        Returns:
            The clients whose processes still run after `within_s` seconds; `close` kills them.
        """
        self._tell_to_stop()
        until = time.monotonic() + within_s
        return frozenset(client for client, process in self._running.items() if not process.gone(until))

    def close(self) -> None:
        """Stop all peers; those that do not go at once are killed, whatever they have not noted."""
        self._tell_to_stop()
        until = time.monotonic() + END_S
        for process in self._running.values():
            process.end(until)

    def _tell_to_stop(self) -> None:
        for process in self._running.values():
            process.signal(signal.SIGCONT)
            process.tell(Stop())

    def _last_words(self, client: int) -> str:
        lines = (self._folders[client] / LOG_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
