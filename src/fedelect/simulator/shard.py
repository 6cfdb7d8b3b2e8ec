"""A shard: some trials of a plan, each with all of its selectors, played in one process.

The selectors of a trial stay together, so that equal jobs are trained once. A new shard holds values only and can be
pickled; worlds, engine and selectors are made at the first request. Trials are saved one by one, so a resumed run may
deal them to other shards. Trials behind the others of their shard are played first, until all are in the same slot.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect._processes import Failed, as_failure
from fedelect.errors import ConfigurationError, RunError
from fedelect.federation import Engine, versions_of
from fedelect.loop import Replica, play_slot
from fedelect.records import SlotRecord
from fedelect.scenario import Scenario
from fedelect.simulator.plan import Plan, TrainingSource, build_world, load_opinion_for, make_engine_for


class TrialSave(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trial stands.

    Attributes:
        trial: Its number.
        slot: The last slot that was played.
        replicas: The states of its selectors and their models, encoded; only a shard looks into it.
    """

    trial: int
    slot: int
    replicas: msgspec.Raw


class _ReplicaSaves(msgspec.Struct, frozen=True):
    """For each selector, in the plan's order, its state, its model (array bytes) or None, and its `SlotMemory`."""

    states: list[dict[str, Any]]
    models: list[bytes | None]
    memories: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Played:
    """A shard's answer: what happened in the slots it played.

    Attributes:
        records: The records, slot by slot.
        saves: Where each of its trials stands now, if that was asked for or the shard is finished.
        finished: Whether all slots of all its trials are played.
    """

    records: list[SlotRecord]
    saves: list[TrialSave] | None
    finished: bool


@dataclass(frozen=True, slots=True)
class WorkerCheck:
    """What a worker must have in common with the process that started the run.

    Attributes:
        engine: The engine's name in the records.
        versions: Versions of what decides the last bit of a result.
        import_paths: Where that process looks for modules.
    """

    engine: str
    versions: dict[str, str]
    import_paths: tuple[str, ...]

    @classmethod
    def of(cls, engine: Engine) -> "WorkerCheck":
        """Describe this process."""
        return cls(engine.name, versions_of(engine.name), tuple(sys.path))

    def verify(self, engine: Engine) -> None:
        """Raise ConfigurationError if this process would compute other numbers."""
        here = versions_of(self.engine)
        if here != self.versions:
            raise ConfigurationError(
                f"a worker runs other versions ({_list_versions(here)}) than this process "
                f"({_list_versions(self.versions)}), so its results may differ; install the same versions on every "
                f"machine"
            )
        if engine.name != self.engine:
            raise ConfigurationError(
                f"a worker would train with the engine {engine.name!r} and this process with {self.engine!r}; "
                f"install the same extras on every machine"
            )


def _list_versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


class Shard:
    """Plays some trials of a plan.

    Args:
        plan: The plan.
        source: Data set or atlas.
        trials: Which of the plan's trials.
        saves: Where to go on, by trial; trials that are not in it start at slot 1.
        engine: The engine; None makes the plan's where the shard is played.
        check: What a worker must have in common with the process that started the run; None in that process.
    """

    def __init__(
        self,
        plan: Plan,
        source: TrainingSource,
        trials: Sequence[int],
        saves: Mapping[int, TrialSave],
        *,
        engine: Engine | None = None,
        check: WorkerCheck | None = None,
    ) -> None:
        self._plan = plan
        self._source: TrainingSource | None = source
        self._saves = saves
        self._check = check
        self._given_engine = engine
        self._slots = {trial: saves[trial].slot if trial in saves else 0 for trial in trials}
        self._replicas: dict[int, list[Replica]] = {}

    def _open(self, source: TrainingSource) -> None:
        """Make engine, worlds and selectors, and let go of the data set."""
        if self._check is not None:
            sys.path.extend(path for path in self._check.import_paths if path not in sys.path)
        plan = self._plan
        self._engine = self._given_engine or make_engine_for(plan.engine, plan.config, source)
        if self._check is not None:
            self._check.verify(self._engine)
        self._opinion = load_opinion_for(plan.config, source)
        worlds: dict[int, Scenario] = {}
        for trial in self._slots:
            draw = plan.draw(trial)
            if draw not in worlds:
                worlds[draw] = build_world(plan.config, source, draw=draw)
            world = worlds[draw]
            self._replicas[trial] = [
                Replica(spec.text, trial, world, plan.build_selector(spec, world, trial)) for spec in plan.selectors
            ]
            if trial in self._saves:
                self._restore(self._saves[trial])
        self._source = None
        self._saves = {}

    @property
    def finished(self) -> bool:
        """Whether all slots of all its trials are played."""
        return all(slot == self._plan.slots for slot in self._slots.values())

    def play(self, at_least_s: float, save: bool) -> Played | Failed:
        """Do as `advance` in a worker process: with one BLAS thread, and exceptions as answers."""
        try:
            with threadpool_limits(limits=1, user_api="blas"):
                return self.advance(at_least_s=at_least_s, save=save)
        except Exception as error:
            return as_failure(error)

    def advance(self, *, at_least_s: float = 0.0, save: bool = False) -> Played:
        """Play the next slot, and more until `at_least_s` seconds have passed.

        Args:
            at_least_s: How long to go on; 0 plays one slot.
            save: Whether to return where the trials stand; a finished shard always does.
        """
        if self._source is not None:
            self._open(self._source)
        until = time.monotonic() + at_least_s
        records: list[SlotRecord] = []
        while not self.finished:
            records += self._play_slot()
            if time.monotonic() >= until:
                break
        return Played(records, self.save() if save or self.finished else None, self.finished)

    def save(self) -> list[TrialSave]:
        """Return where each trial stands."""
        return [
            TrialSave(trial=trial, slot=self._slots[trial], replicas=_encode(replicas))
            for trial, replicas in self._replicas.items()
        ]

    def _play_slot(self) -> list[SlotRecord]:
        behind = min(self._slots.values())
        trials = [trial for trial, slot in self._slots.items() if slot == behind]
        records = play_slot(
            [replica for trial in trials for replica in self._replicas[trial]],
            slot=behind + 1,
            framework=self._plan.framework,
            seed=self._plan.seed,
            engine=self._engine,
            opinion=self._opinion,
            last=behind + 1 == self._plan.slots,
        )
        self._slots.update(dict.fromkeys(trials, behind + 1))
        return records

    def _restore(self, save: TrialSave) -> None:
        replicas = self._replicas[save.trial]
        try:
            saved = msgspec.json.decode(save.replicas, type=_ReplicaSaves)
        except msgspec.MsgspecError as error:
            raise unreadable_checkpoint(error) from error
        if not len(replicas) == len(saved.states) == len(saved.models) == len(saved.memories):
            raise unreadable_checkpoint(f"{len(saved.states)} states for {len(replicas)} selectors")
        for replica, state, model, memory in zip(replicas, saved.states, saved.models, saved.memories, strict=True):
            replica.selector = type(replica.selector).restore(state)
            replica.memory.restore(memory)
            if model is not None:
                like = self._engine.initial_model(replica.scenario)
                replica.model = np.frombuffer(model, dtype=like.dtype).reshape(like.shape)


def _encode(replicas: Sequence[Replica]) -> msgspec.Raw:
    saved = _ReplicaSaves(
        states=[replica.selector.state() for replica in replicas],
        models=[None if replica.model is None else replica.model.tobytes() for replica in replicas],
        memories=[replica.memory.state() for replica in replicas],
    )
    return msgspec.Raw(msgspec.json.encode(saved))


def unreadable_checkpoint(reason: object) -> RunError:
    """Make the error for a checkpoint that is sound but does not hold what is expected."""
    return RunError(
        f"the run's checkpoint cannot be read: {reason}; "
        f"delete the folder `checkpoint` in the run folder to play the recorded slots again"
    )
