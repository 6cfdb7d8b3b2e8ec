"""Run tasks in worker processes on this machine.

A worker process is a fresh interpreter, not a copy of this one (nothing of the caller's script is run again), with one
thread for numeric libraries. It is sent a function, then tasks, the function's arguments, one at a time: pickles over
its standard input and output. A function that is a generator reports progress: what it yields comes ahead of its
result, the value that it returns. When a worker's input ends, because the parent closed it or was killed, it exits at
once, whatever it is doing.
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
from typing import IO, Any

from fedelect.errors import ConfigurationError, RunError

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR", "NUMBA")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""Environment under which numeric libraries use one thread; they read it when they are loaded."""

_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from fedelect._processes import serve; serve()"


TaskFunction = Callable[..., Any]
"""What a worker is sent: a function found by its name, a `functools.partial` of one, or a bound method; picklable."""


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of a result: an exception, to be raised in the parent."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """Ahead of a result: a value that a generator has yielded."""

    value: Any


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """In place of a result: the worker is gone, for the given reason."""

    reason: str


def as_failure(error: Exception) -> Failed:
    """Return the exception with a note where it was raised; describe one that cannot be pickled by another."""
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
        function: What it calls.
        results: Where results are put, each as (this worker, result); `WorkerLost` comes once, in place of a result.
    """

    def __init__(self, function: TaskFunction, results: "queue.SimpleQueue[tuple[WorkerProcess, Any]]") -> None:
        self._tasks: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._results = results
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
        self._thread = threading.Thread(target=self._talk, args=(function,), daemon=True)
        self._thread.start()

    def submit(self, *task: Any) -> None:
        """Let it call the function with these arguments; all earlier tasks must have a result."""
        self._tasks.put(task)

    def kill(self) -> None:
        """End the process; what it has not yet sent is lost."""
        self._process.kill()
        self._tasks.put(None)

    def join(self) -> None:
        """Wait until process and thread have ended."""
        self._process.wait()
        self._thread.join()

    def _talk(self, function: TaskFunction) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._process.stdout as results:
            try:
                _send(self._process.stdin, function)
                del function
                while (task := self._tasks.get()) is not None:
                    _send(self._process.stdin, task)
                    while isinstance(result := pickle.load(results), TaskProgress):
                        self._results.put((self, result))
                    self._results.put((self, result))
            except (EOFError, OSError, pickle.UnpicklingError):
                self._results.put((self, WorkerLost(_describe_end(self._process.wait()))))
            except Exception as error:  # the thread must not die in silence: the parent waits for a result
                failure = RunError(f"a worker's answer cannot be read: {error}; run with one worker to see more")
                self._results.put((self, Failed(failure)))
        with contextlib.suppress(OSError):  # what was not yet sent can no longer be
            self._process.stdin.close()


def run_tasks(
    function: TaskFunction,
    tasks: Sequence[tuple[Any, ...]],
    *,
    workers: int,
    progress: Callable[[int, Any], None] = lambda index, value: None,
) -> Iterator[tuple[int, Any]]:
    """Call a function with the arguments of each task, here or in worker processes.

    Yields (index of the task, result) as results come.

    Args:
        function: What to call; with one worker, in this process.
        tasks: Arguments of each call; no result may depend on the others.
        workers: How many processes; 1 is this one.
        progress: Called with (index of the task, value) for what a generator yields.

    Raises:
        RunError: A worker was lost.
        Exception: What the function raises, with a note of where.
    """
    if min(workers, len(tasks)) <= 1:
        for index, task in enumerate(tasks):
            for message in _call(function, task):
                if isinstance(message, TaskProgress):
                    progress(index, message.value)
                else:
                    yield index, _raise_failure(message)
        return
    results: queue.SimpleQueue[tuple[WorkerProcess, Any]] = queue.SimpleQueue()
    processes: list[WorkerProcess] = []
    running: dict[WorkerProcess, int] = {}
    waiting = iter(range(len(tasks)))
    try:
        for index in [next(waiting) for _ in range(min(workers, len(tasks)))]:
            processes.append(WorkerProcess(function, results))
            running[processes[-1]] = index
            processes[-1].submit(*tasks[index])
        while running:
            worker, result = results.get()
            if isinstance(result, TaskProgress):
                progress(running[worker], result.value)
                continue
            index = running.pop(worker)
            following = next(waiting, None)
            if following is not None and not isinstance(result, WorkerLost | Failed):
                running[worker] = following
                worker.submit(*tasks[following])
            yield index, _raise_failure(result)
    finally:
        for worker in processes:
            worker.kill()
        for worker in processes:
            worker.join()


def _raise_failure(result: Any) -> Any:
    if isinstance(result, Failed):
        raise result.error
    if isinstance(result, WorkerLost):
        raise RunError(f"a worker process was lost: {result.reason}; fewer workers need less memory")
    return result


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _describe_end(code: int) -> str:
    if code < 0:
        return f"it was killed by signal {-code}" + (" (out of memory?)" if code == -9 else "")
    return f"it ended with exit code {code}"


def serve() -> None:
    """Be a worker process: read a function, then call it with each task until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there are no sessions, Ctrl-C comes here too
    tasks, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what selectors or opinion functions print must not get among the results
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(tasks, waiting), daemon=True).start()
    function = waiting.get()
    while True:
        for message in _call(function, waiting.get()):
            _send(results, message)


def _call(function: TaskFunction, task: tuple[Any, ...]) -> Iterator[Any]:
    """Yield a generator's progress, if any, and then the result or `Failed`."""
    try:
        result = function(*task)
        while isinstance(result, Generator):
            try:
                value = next(result)
            except StopIteration as end:
                result = end.value
            else:
                yield TaskProgress(value)
    except Exception as error:
        result = as_failure(error)
    yield result


def _read(tasks: IO[bytes], waiting: "queue.SimpleQueue[Any]") -> None:
    """Pass messages on until the input ends, and then end the process, even in the middle of its work."""
    try:
        while True:
            waiting.put(pickle.load(tasks))
    finally:
        os._exit(0)


def worker_count(workers: int | None) -> int:
    """Number of processes to use: `workers`, or one for each core that this process may use.

    Raises:
        ConfigurationError: Fewer than one were asked for.
    """
    if workers is not None and workers < 1:
        raise ConfigurationError(f"workers must be at least 1, got {workers}")
    return workers or usable_cores()


def usable_cores() -> int:
    """Number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
