"""Where shards are played: in this process, or in worker processes of this machine.

An `Executor` begins shards, passes requests on to them and hands their answers back, in whatever order they come. The
driver (`run.py`) asks each shard for a slice of work at a time, so a shard whose driver is gone has nothing to do.
"""

import queue
from collections.abc import Mapping, Sequence
from typing import Protocol

from fedelect._processes import Failed, WorkerLost, WorkerProcess
from fedelect.simulator.plan import TrainingSource
from fedelect.simulator.shard import Played, Shard, ShardHost, TrialSave, Work

SLICE_S = 0.1
"""Seconds of work between two answers of a worker process (at least one slot)."""


Answer = Played | Failed | WorkerLost


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

    def __init__(self, work: Work, ground: TrainingSource) -> None:
        self._work, self._ground = work, ground
        self._workers: dict[int, WorkerProcess] = {}
        self._answers: queue.SimpleQueue[tuple[WorkerProcess, Answer]] = queue.SimpleQueue()

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """See `Executor`."""
        self.end(number)
        host = ShardHost(self._work, self._ground, trials, saves)
        self._workers[number] = WorkerProcess(host, self._answers)

    def ask(self, number: int, *, save: bool) -> None:
        """See `Executor`."""
        self._workers[number].ask(SLICE_S, save)

    def answer(self) -> tuple[int, Answer]:
        """See `Executor`."""
        while True:
            worker, answer = self._answers.get()
            for number, current in self._workers.items():
                if current is worker:
                    return number, answer

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
