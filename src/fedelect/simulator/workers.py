"""Where shards are played: in this process, or in worker processes of this machine.

An `Executor` begins shards, passes requests on to them and hands their answers back, in whatever order they come. The
driver (`run.py`) asks each shard for a slice of work at a time, so a shard whose driver is gone has nothing to do.

A worker process is a fresh interpreter, not a copy of this one (nothing of the caller's script is run again), with one
BLAS thread. It is spoken to in pickles over its standard input and output. When its input ends, because the parent
closed it or was killed, it exits at once, whatever it is doing.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from fedelect.errors import RunError
from fedelect.scenario import Dataset
from fedelect.simulator.shard import Failed, Played, Shard, ShardHost, TrialSave, Work

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR", "NUMBA")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""Environment under which numeric libraries use one thread; they read it when they are loaded."""

SLICE_S = 0.1
"""Seconds of work between two answers of a worker process (at least one slot)."""

_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from fedelect.simulator.workers import serve; serve()"


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of a shard's answer: whoever played it is gone, for the given reason."""

    reason: str


Answer = Played | Failed | Lost


class Executor(Protocol):
    """Plays shards somewhere. Shards have numbers, given by whoever begins them."""

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """Begin a shard of `trials` where `saves` say they stand; under a number in use, in place of the old one."""

    def ask(self, number: int, *, save: bool) -> None:
        """Ask a shard to play on; it has answered all that it was asked before."""

    def answer(self) -> tuple[int, Answer]:
        """Wait for the next answer of any shard that was asked."""

    def end(self, number: int) -> None:
        """Give up what a shard occupies."""

    def close(self) -> None:
        """End all shards."""


class InThisProcess:
    """One shard at a time, played here; exceptions come as they are."""

    def __init__(self, make: "MakeShard") -> None:
        self._make = make
        self._shards: dict[int, Shard] = {}
        self._asked: list[tuple[int, bool]] = []

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """See `Executor`."""
        self._shards[number] = self._make(trials, saves)

    def ask(self, number: int, *, save: bool) -> None:
        """See `Executor`."""
        self._asked.append((number, save))

    def answer(self) -> tuple[int, Answer]:
        """See `Executor`; plays one slot."""
        number, save = self._asked.pop(0)
        return number, self._shards[number].play(save=save)

    def end(self, number: int) -> None:
        """See `Executor`."""
        self._shards.pop(number, None)

    def close(self) -> None:
        """See `Executor`."""
        self._shards.clear()


class MakeShard(Protocol):
    """Makes the shard of some trials."""

    def __call__(self, trials: Sequence[int], saves: Mapping[int, TrialSave], /) -> Shard:
        """See `Shard`."""


class WorkerProcesses:
    """Each shard in a process of its own on this machine."""

    def __init__(self, work: Work, dataset: Dataset) -> None:
        self._work, self._dataset = work, dataset
        self._workers: dict[int, _Worker] = {}
        self._answers: queue.SimpleQueue[tuple[_Worker, Answer]] = queue.SimpleQueue()

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """See `Executor`."""
        self.end(number)
        host = ShardHost(self._work, self._dataset, trials, saves)
        self._workers[number] = _Worker(number, host, self._answers)

    def ask(self, number: int, *, save: bool) -> None:
        """See `Executor`."""
        self._workers[number].requests.put((SLICE_S, save))

    def answer(self) -> tuple[int, Answer]:
        """See `Executor`."""
        while True:
            worker, answer = self._answers.get()
            if self._workers.get(worker.number) is worker:
                return worker.number, answer

    def end(self, number: int) -> None:
        """See `Executor`."""
        worker = self._workers.pop(number, None)
        if worker is not None:
            worker.kill()
            worker.join()

    def close(self) -> None:
        """See `Executor`."""
        for worker in self._workers.values():
            worker.kill()
        for number in list(self._workers):
            self.end(number)


class _Worker:
    """A worker process, and the thread of this process that talks to it."""

    def __init__(self, number: int, host: ShardHost, answers: "queue.SimpleQueue[tuple[_Worker, Answer]]") -> None:
        self.number = number
        self.requests: queue.SimpleQueue[tuple[float, bool] | None] = queue.SimpleQueue()
        self._answers = answers
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | ONE_THREAD,
                start_new_session=True,  # Ctrl-C is for the parent, which then ends its workers
            )
        except OSError as error:
            raise RunError(f"cannot start a worker process: {error}; use fewer workers") from error
        self._thread = threading.Thread(target=self._talk, args=(host,), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """End the process; nothing is lost that the parent does not know."""
        self._process.kill()
        self.requests.put(None)

    def join(self) -> None:
        """Wait until process and thread have ended."""
        self._process.wait()
        self._thread.join()

    def _talk(self, host: ShardHost) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._process.stdout as answers:
            try:
                _send(self._process.stdin, host)
                del host
                while (request := self.requests.get()) is not None:
                    _send(self._process.stdin, request)
                    self._answers.put((self, pickle.load(answers)))
            except (EOFError, OSError, pickle.UnpicklingError):
                self._answers.put((self, Lost(_ended(self._process.wait()))))
            except Exception as error:  # the thread must not die in silence: somebody waits for an answer
                failure = RunError(f"a worker's answer cannot be read: {error}; run with one worker to see more")
                self._answers.put((self, Failed(failure)))
        with contextlib.suppress(OSError):  # what was not yet sent can no longer be
            self._process.stdin.close()


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _ended(code: int) -> str:
    if code < 0:
        return f"it was killed by signal {-code}" + (" (out of memory?)" if code == -9 else "")
    return f"it ended with exit code {code}"


def serve() -> None:
    """Be a worker process: read a `ShardHost`, then answer requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there are no sessions, Ctrl-C comes here too
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what selectors or opinion functions print must not get among the answers
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    host = waiting.get()
    while True:
        _send(answers, host.play(*waiting.get()))


def _read(requests: IO[bytes], waiting: "queue.SimpleQueue[Any]") -> None:
    """Pass messages on until the input ends, and then end the process, even in the middle of a slot."""
    try:
        while True:
            waiting.put(pickle.load(requests))
    finally:
        os._exit(0)


def usable_cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
