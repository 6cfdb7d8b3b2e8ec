"""Executors play shards: in this process, or in worker processes of this machine (`ray_cluster.py`: on Ray).

An executor begins shards, passes requests on to them and returns their answers in any order. The driver (`run.py`)
asks for a slice of work at a time, so a shard without a driver has nothing to do.
"""

import queue
from collections.abc import Mapping, Sequence
from typing import Protocol

from fedelect._processes import Failed, WorkerLost, WorkerProcess
from fedelect.federation import Engine
from fedelect.simulator.plan import Plan, TrainingSource
from fedelect.simulator.shard import Played, Shard, TrialSave, WorkerCheck

SLICE_S = 0.1
"""Seconds of work between two answers of a worker process (at least one slot)."""


Answer = Played | Failed | WorkerLost


class Executor(Protocol):
    """Plays shards, which the caller numbers."""

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """Begin a shard of `trials` where `saves` say they stand; it replaces an older one of the same number."""

    def ask(self, number: int, *, save: bool) -> None:
        """Ask a shard to play on; it must have answered before."""

    def answer(self) -> tuple[int, Answer]:
        """Wait for the next answer of any shard that was asked."""

    def end(self, number: int) -> None:
        """Give up what a shard occupies."""

    def close(self) -> None:
        """End all shards."""


class InThisProcess:
    """Plays shards here, one slot at a time; exceptions are raised as they are."""

    def __init__(self, plan: Plan, source: TrainingSource, engine: Engine) -> None:
        self._plan, self._source, self._engine = plan, source, engine
        self._shards: dict[int, Shard] = {}
        self._asked: list[tuple[int, bool]] = []

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """See `Executor`."""
        self._shards[number] = Shard(self._plan, self._source, trials, saves, engine=self._engine)

    def ask(self, number: int, *, save: bool) -> None:
        """See `Executor`."""
        self._asked.append((number, save))

    def answer(self) -> tuple[int, Answer]:
        """See `Executor`; plays one slot."""
        number, save = self._asked.pop(0)
        return number, self._shards[number].advance(save=save)

    def end(self, number: int) -> None:
        """See `Executor`."""
        self._shards.pop(number, None)

    def close(self) -> None:
        """See `Executor`."""
        self._shards.clear()


class WorkerProcesses:
    """Plays each shard in a process of its own on this machine."""

    def __init__(self, plan: Plan, source: TrainingSource, check: WorkerCheck) -> None:
        self._plan, self._source, self._check = plan, source, check
        self._workers: dict[int, WorkerProcess] = {}
        self._answers: queue.SimpleQueue[tuple[WorkerProcess, Answer]] = queue.SimpleQueue()

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """See `Executor`."""
        self.end(number)
        shard = Shard(self._plan, self._source, trials, saves, check=self._check)
        self._workers[number] = WorkerProcess(shard.play, self._answers)

    def ask(self, number: int, *, save: bool) -> None:
        """See `Executor`."""
        self._workers[number].submit(SLICE_S, save)

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
