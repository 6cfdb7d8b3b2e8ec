"""From requests to blocks on disk: which are missing, how long they will take, and processes that play them."""

import functools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from fedelect._processes import run_tasks
from fedelect.errors import RunMismatchError
from fedelect.federation import DEFAULT_ENGINE, Job
from fedelect.measurement import opinions_on
from fedelect.records.files import make_folder
from fedelect.records.lock import FolderLock
from fedelect.records.run_folder import LOCK_NAME
from fedelect.scenario import ScenarioConfig
from fedelect.seeds import stream
from fedelect.simulator import TrainingSource
from fedelect.simulator.plan import build_world, make_engine_for
from paper.blocks import Block, Curves, join_blocks, read_block
from paper.player import BlockTask, block_key, play_slots
from paper.series import RunRequest, Series

PROBE_JOBS = 25

TELL_EVERY_S = 1.0
"""Seconds between two progress reports of a block."""


@dataclass(frozen=True, kw_only=True)
class AbstractResultStore(ABC):
    """Results in a folder, with their scenario and seed.

    Attributes:
        folder: Where they are.
        base: The scenario of which worlds are variants.
        seed: Seed of the runs.
        block: Trials in a block.
    """

    folder: Path
    base: ScenarioConfig
    seed: int = 1
    block: int = 25

    @property
    @abstractmethod
    def data_digest(self) -> str:
        """Hash of the data that the results were made with."""

    def curves(self, request: RunRequest) -> Curves | None:
        """What is on file for a request: the trials of all its blocks that are there; None if there is none."""
        blocks = [self._read(task) for task in self.tasks([request]) if task.path.exists()]
        long_enough = [block for block in blocks if block.slots >= request.slots]
        if not long_enough:
            return None
        return join_blocks(request.series, long_enough, trials=request.trials, slots=request.slots)

    def tasks(self, requests: Iterable[RunRequest]) -> list[BlockTask]:
        """The blocks that serve the requests, first blocks first; one that serves several is as long as the longest."""
        longest: dict[tuple[int, Series], int] = {}
        for request in requests:
            for first in range(0, request.trials, self.block):
                key = (first, request.series)
                longest[key] = max(longest.get(key, 0), request.slots)
        order = sorted(longest, key=lambda key: key[0])  # stable: in a block, as demanded
        return [self._task(series, first, longest[first, series]) for first, series in order]

    def missing(self, requests: Iterable[RunRequest], also: Iterable[RunRequest] = ()) -> list[BlockTask]:
        """The blocks that are not there, or too short.

        Args:
            requests: What is wanted now.
            also: Later requests: a block that is played now is made long enough for them, too, since it cannot be
                prolonged.
        """
        now = list(requests)
        wanted = {task.path for task in self.tasks(now) if not self._has(task)}
        return [task for task in self.tasks([*now, *also]) if task.path in wanted]

    def _has(self, task: BlockTask) -> bool:
        return task.path.exists() and self._read(task).slots >= task.slots

    def _task(self, series: Series, first: int, slots: int) -> BlockTask:
        name = f"trials-{first:03d}-{first + self.block - 1:03d}.npz"
        return BlockTask(
            series=series,
            config=series.world.config(self.base),
            seed=self.seed,
            first_trial=first,
            trials=self.block,
            slots=slots,
            path=self.folder / series.folder / name,
        )

    def _read(self, task: BlockTask) -> Block:
        block = read_block(task.path)
        expected = block_key(task, self.data_digest, block.key.engine)
        for name in ("scenario", "selector", "framework", "seed", "data_digest"):
            if getattr(block.key, name) != getattr(expected, name):
                raise RunMismatchError(
                    f"the results in {task.path} were made with another {name}; take another folder, or delete them "
                    f"to make them anew"
                )
        if (block.first_trial, block.trials) != (task.first_trial, task.trials):
            raise RunMismatchError(
                f"the results in {task.path} are of {block.trials} trials from {block.first_trial} on, which is not "
                f"what its name says; delete the file to make them anew"
            )
        return block


@dataclass(frozen=True, kw_only=True)
class ResultStore(AbstractResultStore):
    """Results with their data, to which blocks can be added.

    Attributes:
        source: The data of the base scenario; or an atlas of it, on which only the main world can be played.
    """

    source: TrainingSource

    @functools.cached_property
    def data_digest(self) -> str:  # hashing MNIST takes a tenth of a second
        """Hash of the data."""
        return self.source.digest

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder against other writers for the length of a block of code.

        Raises:
            RunLockedError: Another process is writing there, and would do the same work at the same time.
            RunError: The folder cannot be made.
        """
        make_folder(self.folder)
        lock = FolderLock(self.folder / LOCK_NAME)
        try:
            yield
        finally:
            lock.release()


@dataclass(frozen=True, kw_only=True)
class ResultStoreOnFile(AbstractResultStore):
    """Results without their data: to be read, drawn and judged only.

    Attributes:
        known_digest: Hash of the data, as the calibration has it on file.
    """

    known_digest: str

    @property
    def data_digest(self) -> str:
        """Hash of the data."""
        return self.known_digest


def order_tasks(tasks: Sequence[BlockTask], wanted: Sequence[Sequence[RunRequest]]) -> list[BlockTask]:
    """The tasks, those of the first experiment first; in each, first blocks first.

    Args:
        tasks: Blocks to play.
        wanted: The requests of each experiment, in the order in which they are to be finished.
    """
    first_wanted: dict[Series, int] = {}
    for number, requests in enumerate(wanted):
        for request in requests:
            first_wanted.setdefault(request.series, number)
    return sorted(tasks, key=lambda task: (first_wanted[task.series], task.first_trial))


def seconds_for_a_slot(store: ResultStore) -> float:
    """Measure how long training and judging one replica-slot of the base scenario take on one core.

    The cost of selectors and beliefs is left out: it is small compared with training.
    """
    config = store.base
    world = build_world(config, store.source)
    engine = make_engine_for(DEFAULT_ENGINE, config, store.source)
    rng = stream(store.seed, "probe")
    jobs = [
        Job(cohort=tuple(sorted(rng.choice(config.clients, config.budget, replace=False).tolist())), seed=1, trial=i)
        for i in range(PROBE_JOBS)
    ]
    with threadpool_limits(limits=1, user_api="blas"):
        engine.train(world, jobs[:1])  # compile, and lay the data out
        begun = time.perf_counter()
        trainings = engine.train(world, jobs)
        for _ in opinions_on(world, [training.model for training in trainings], engine=engine):
            pass
    return (time.perf_counter() - begun) / PROBE_JOBS


def estimate_seconds(tasks: Sequence[BlockTask], slot_s: float, *, base: ScenarioConfig, workers: int) -> float:
    """How long the tasks will take: training is in proportion to the uploads that arrive."""
    cost = sum(
        task.replica_slots * task.series.world.budget / base.budget * task.series.world.upload_probability
        for task in tasks
    )
    return cost * slot_s / max(1, min(workers, len(tasks)))


def play(
    tasks: Sequence[BlockTask],
    source: TrainingSource,
    *,
    workers: int,
    progress: Callable[[int], None] = lambda played: None,
    finished: Callable[[BlockTask], None] = lambda task: None,
) -> None:
    """Play the tasks in processes; a finished block is on disk before `finished` is called.

    Args:
        tasks: What to play, in order.
        source: The data, or an atlas.
        workers: Processes, 1 for none beside this one. They end with this one, however it ends.
        progress: Called with how many more replica-slots have been played.
        finished: Called with each finished task.
    """
    requests = [(task,) for task in tasks]
    function = functools.partial(_play_block, source=source)
    for place, _ in run_tasks(function, requests, workers=workers, progress=lambda place, played: progress(played)):
        finished(tasks[place])


def _play_block(task: BlockTask, *, source: TrainingSource) -> Generator[int, None, None]:
    """Play a block; about once a second, yield how many more replica-slots have been played."""
    pending, told_at = 0, time.monotonic()
    for played in play_slots(task, source):
        pending += played
        if time.monotonic() - told_at >= TELL_EVERY_S:
            yield pending
            pending, told_at = 0, time.monotonic()
    yield pending


def format_duration(seconds: float) -> str:
    """A duration for people, such as "2 h 05 min".

    >>> format_duration(7500.0), format_duration(90.0), format_duration(4.2)
    ('2 h 05 min', '2 min', '5 s')
    """
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
