"""Worker processes of this machine, for whoever spreads work over its cores.

A worker process is a fresh interpreter, not a copy of this one (nothing of the caller's script is run again), with one
thread for numeric libraries. It is sent a host, an object with a method `play`, and then requests, the arguments of
`play`, one at a time: pickles over its standard input and output. A host whose `play` is a generator tells of its
progress on the way: what it yields comes ahead of its answer, the value that it returns. When a worker's input ends,
because the parent closed it or was killed, it exits at once, whatever it is doing.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from fedelect.errors import ConfigurationError, RunError

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR", "NUMBA")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""Environment under which numeric libraries use one thread; they read it when they are loaded."""

_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from fedelect._processes import serve; serve()"


class Host(Protocol):
    """What a worker process is sent; it must survive a journey between processes."""

    def play(self, *request: Any) -> Any:
        """The answer to a request, or a generator that returns it; what goes wrong is an answer too, see `Failed`."""


class Calling:
    """A host that calls a function; what that raises is told to the parent.

    Args:
        function: A function that can be found by its name, or `functools.partial` of one.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def play(self, *request: Any) -> Any:
        """What the function returns, or `Failed`."""
        try:
            return self._function(*request)
        except Exception as error:
            return failed(error)


@dataclass(frozen=True, slots=True)
class Failed:
    """A host's answer: an exception, to be raised where the user is."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """Ahead of an answer: what a host that is a generator has yielded."""

    value: Any


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """In place of an answer: the worker is gone, for the given reason."""

    reason: str


def failed(error: Exception) -> Failed:
    """The exception as an answer, with a note where it was raised; one that cannot travel is described by another."""
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RunError(f"{type(error).__name__} in a worker: {error}; run with one worker to see where")
    error.add_note(f"In the worker:\n{trace}")
    return Failed(error)


class WorkerProcess:
    """A worker process, and the thread of this process that talks to it.

    Args:
        host: What plays there.
        answers: Where answers are put, each as (this worker, answer); `WorkerLost` comes once, in place of an answer.
    """

    def __init__(self, host: Host, answers: "queue.SimpleQueue[tuple[WorkerProcess, Any]]") -> None:
        self._requests: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
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

    def ask(self, *request: Any) -> None:
        """Ask the host to play; it has answered all that it was asked before."""
        self._requests.put(request)

    def kill(self) -> None:
        """End the process; nothing is lost that the parent does not know."""
        self._process.kill()
        self._requests.put(None)

    def join(self) -> None:
        """Wait until process and thread have ended."""
        self._process.wait()
        self._thread.join()

    def _talk(self, host: Host) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._process.stdout as answers:
            try:
                _send(self._process.stdin, host)
                del host
                while (request := self._requests.get()) is not None:
                    _send(self._process.stdin, request)
                    while isinstance(answer := pickle.load(answers), TaskProgress):
                        self._answers.put((self, answer))
                    self._answers.put((self, answer))
            except (EOFError, OSError, pickle.UnpicklingError):
                self._answers.put((self, WorkerLost(_ended(self._process.wait()))))
            except Exception as error:  # the thread must not die in silence: somebody waits for an answer
                failure = RunError(f"a worker's answer cannot be read: {error}; run with one worker to see more")
                self._answers.put((self, Failed(failure)))
        with contextlib.suppress(OSError):  # what was not yet sent can no longer be
            self._process.stdin.close()


def run_tasks(
    host: Host,
    requests: Sequence[tuple[Any, ...]],
    *,
    workers: int,
    underway: Callable[[int, Any], None] = lambda place, value: None,
) -> Iterator[tuple[int, Any]]:
    """Play all requests, here or in worker processes that each get the host.

    Yields (place of the request, answer) as they come.

    Args:
        host: What plays; with one worker in this process.
        requests: The arguments of `play`; no answer may depend on the others.
        workers: How many processes; 1 is this one.
        underway: Told (place of the request, value) of what a host that is a generator yields.

    Raises:
        RunError: A worker was lost.
        Exception: What a host says has failed.
    """
    if min(workers, len(requests)) <= 1:
        for place, request in enumerate(requests):
            for message in _messages(host, request):
                if isinstance(message, TaskProgress):
                    underway(place, message.value)
                else:
                    yield place, _sound(message)
        return
    answers: queue.SimpleQueue[tuple[WorkerProcess, Any]] = queue.SimpleQueue()
    crew: list[WorkerProcess] = []
    at: dict[WorkerProcess, int] = {}
    waiting = iter(range(len(requests)))
    try:
        for place in [next(waiting) for _ in range(min(workers, len(requests)))]:
            crew.append(WorkerProcess(host, answers))
            at[crew[-1]] = place
            crew[-1].ask(*requests[place])
        while at:
            worker, answer = answers.get()
            if isinstance(answer, TaskProgress):
                underway(at[worker], answer.value)
                continue
            place = at.pop(worker)
            following = next(waiting, None)
            if following is not None and not isinstance(answer, WorkerLost | Failed):
                at[worker] = following
                worker.ask(*requests[following])
            yield place, _sound(answer)
    finally:
        for worker in crew:
            worker.kill()
        for worker in crew:
            worker.join()


def _sound(answer: Any) -> Any:
    if isinstance(answer, Failed):
        raise answer.error
    if isinstance(answer, WorkerLost):
        raise RunError(f"a worker process was lost: {answer.reason}; fewer workers need less memory")
    return answer


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _ended(code: int) -> str:
    if code < 0:
        return f"it was killed by signal {-code}" + (" (out of memory?)" if code == -9 else "")
    return f"it ended with exit code {code}"


def serve() -> None:
    """Be a worker process: read a host, then answer requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there are no sessions, Ctrl-C comes here too
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what selectors or opinion functions print must not get among the answers
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    host = waiting.get()
    while True:
        for message in _messages(host, waiting.get()):
            _send(answers, message)


def _messages(host: Host, request: tuple[Any, ...]) -> Iterator[Any]:
    """What the host says on the way, if anything, and its answer."""
    answer = host.play(*request)
    while isinstance(answer, Generator):
        try:
            value = next(answer)
        except StopIteration as end:
            answer = end.value
        else:
            yield TaskProgress(value)
    yield answer


def _read(requests: IO[bytes], waiting: "queue.SimpleQueue[Any]") -> None:
    """Pass messages on until the input ends, and then end the process, even in the middle of its work."""
    try:
        while True:
            waiting.put(pickle.load(requests))
    finally:
        os._exit(0)


def worker_count(workers: int | None) -> int:
    """How many processes to use: as many as asked for, or one for each core that this process may use.

    Raises:
        ConfigurationError: Fewer than one were asked for.
    """
    if workers is not None and workers < 1:
        raise ConfigurationError(f"workers must be at least 1, got {workers}")
    return workers or usable_cores()


def usable_cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
