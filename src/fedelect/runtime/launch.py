"""Many peers on this machine: one process each, none left behind.

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
"""File in a peer's folder for what its process prints."""

_BOOT = "import sys; sys.path[:] = sys.argv[3:]; from fedelect.runtime.process import main; main()"


@contextlib.contextmanager
def reserve_addresses(count: int, host: str = "127.0.0.1") -> Iterator[tuple[str, ...]]:
    """Hold free addresses of this machine for peers to listen on, until the end of the `with` block.

    The ports stay bound here without listening, so that the system gives them to nobody else; peers, which set
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
    """In place of a notice: the process has ended."""

    def __init__(self, code: int) -> None:
        self.code = code


Said = tuple[int, Notice | ProcessEnded]
"""(client, notice)."""

OnNotice = Callable[[int, Notice | ProcessEnded], None]
"""Called with (client, notice) from the thread that reads a peer's output; must not raise."""


class PeerProcess:
    """A peer's process and the thread that reads its output.

    Args:
        client: Its number.
        folder: The peer's folder.
        said: Queue for its notices.
        wrap: Prefix of the command, for example ("ip", "netns", "exec", NAME).
        control: Whether it opens its control socket.
        on_notice: Called with its notices too, at once.
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
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def tell(self, command: Command) -> None:
        """Send a command; nothing happens if the process has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(encode_line(command))
            self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def wait(self, until: float) -> bool:
        """Wait for its end until the monotonic clock reads `until`; return whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, until - time.monotonic()))
        return not self.alive

    def end(self, until: float) -> None:
        """Wait for its end; kill it when the monotonic clock reads `until`."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()
        if not self.wait(until):
            self._process.kill()
            self._process.wait(END_S)
        self._thread.join(END_S)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    self._deliver(decode_notice(line))
                except ConfigurationError as error:
                    self._deliver(Trouble(text=str(error)))
        self._deliver(ProcessEnded(self._process.wait()))

    def _deliver(self, notice: Notice | ProcessEnded) -> None:
        if self._on_notice is not None:
            self._on_notice(self.client, notice)
        self._said.put((self.client, notice))


class PeerProcesses:
    """Processes of peers; use it in a `with` statement, which leaves none behind.

    Args:
        folders: By client, the peer's folder.
        wraps: By client, prefix of its command.
        on_notice: Called with (client, notice) at once, from other threads.
        control: Whether the peers open their control sockets.
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
        """Processes by client, also those that have ended."""
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
        """Send SIGKILL and wait for the end."""
        self._running[client].signal(signal.SIGKILL)
        self._running[client].end(time.monotonic() + END_S)

    def hear(self, wait_s: float) -> Said | None:
        """Return the next notice of any peer, or None after `wait_s` seconds."""
        try:
            return self._said.get(timeout=max(0.0, wait_s)) if wait_s > 0.0 else self._said.get_nowait()
        except queue.Empty:
            return None

    def listen(self, finished: Callable[[int, Notice | ProcessEnded], bool], within_s: float) -> bool:
        """Pass notices to `finished` until it returns True; return False after `within_s` seconds."""
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0.0:
            said = self.hear(left)
            if said is not None and finished(*said):
                return True
        return False

    def start_all(self, within_s: float) -> None:
        """Start all peers and wait until every link is up.

        Raises:
            RunError: Some are not up in time; the message says which and why.
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
        """Tell all peers to stop, and wait until they have written their last log and ended.

        Returns:
            The clients whose processes still run after `within_s` seconds; `close` kills them.
        """
        self._tell_to_stop()
        until = time.monotonic() + within_s
        return frozenset(client for client, process in self._running.items() if not process.wait(until))

    def close(self) -> None:
        """Stop all peers, and kill those that do not end at once, without their last log."""
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
