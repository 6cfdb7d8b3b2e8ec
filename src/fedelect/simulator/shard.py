"""A shard: some of a plan's trials, each with all of its selectors, played in one place.

The selectors of a trial stay together, so that equal jobs are trained once. A shard is made from values that can be
sent to another process or machine (`Work`), goes on from what trials have saved, and answers requests to play on.
Trials are saved one by one: whoever takes a run up again may deal them to shards in another way. Trials of one shard
that are not in the same slot are brought level first: the ones behind are played alone until they catch up.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect._processes import Failed, failed
from fedelect.errors import ConfigurationError, RunError
from fedelect.federation import Engine, versions_of
from fedelect.loop import FrameworkName, Replica, play_slot
from fedelect.records import SlotRecord
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.simulator.plan import Plan, TrainingSource, build_world, engine_for, opinion_for, parse_selectors


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
    """For each selector, in the plan's order, its state and its model (array bytes) or None."""

    states: list[dict[str, Any]]
    models: list[bytes | None]


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


class Shard:
    """Plays some trials of a plan.

    Args:
        plan: The plan.
        ground: What its worlds are made from.
        engine: What trains.
        trials: Which of the plan's trials.
        saves: Where to go on, by trial; trials that are not in it start at slot 1.
    """

    def __init__(
        self, plan: Plan, ground: TrainingSource, engine: Engine, trials: Sequence[int], saves: Mapping[int, TrialSave]
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._opinion = opinion_for(plan.config, ground)
        self._slots = dict.fromkeys(trials, 0)
        self._replicas: dict[int, list[Replica]] = {}
        worlds: dict[int, Scenario] = {}
        for trial in trials:
            draw = plan.draw(trial)
            if draw not in worlds:
                worlds[draw] = build_world(plan.config, ground, draw=draw)
            world = worlds[draw]
            self._replicas[trial] = [
                Replica(spec.text, trial, world, plan.build(spec, world, trial)) for spec in plan.selectors
            ]
            if trial in saves:
                self._restore(saves[trial])

    @property
    def finished(self) -> bool:
        """Whether all slots of all its trials are played."""
        return all(slot == self._plan.slots for slot in self._slots.values())

    def play(self, *, at_least_s: float = 0.0, save: bool = False) -> Played:
        """Play the next slot, and more until `at_least_s` seconds have passed.

        Args:
            at_least_s: How long to go on; 0 plays one slot.
            save: Whether to tell where the trials stand; a finished shard always does.
        """
        until = time.monotonic() + at_least_s
        records: list[SlotRecord] = []
        while not self.finished:
            records += self._play_slot()
            if time.monotonic() >= until:
                break
        return Played(records, self.save() if save or self.finished else None, self.finished)

    def save(self) -> list[TrialSave]:
        """Where each trial stands."""
        return [
            TrialSave(trial=trial, slot=self._slots[trial], replicas=_encoded(replicas))
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
        )
        self._slots.update(dict.fromkeys(trials, behind + 1))
        return records

    def _restore(self, save: TrialSave) -> None:
        self._slots[save.trial] = save.slot
        replicas = self._replicas[save.trial]
        try:
            saved = msgspec.json.decode(save.replicas, type=_ReplicaSaves)
        except msgspec.MsgspecError as error:
            raise unreadable_checkpoint(error) from error
        if not len(replicas) == len(saved.states) == len(saved.models):
            raise unreadable_checkpoint(f"{len(saved.states)} states for {len(replicas)} selectors")
        for replica, state, model in zip(replicas, saved.states, saved.models, strict=True):
            replica.selector = type(replica.selector).restore(state)
            if model is not None:
                like = self._engine.initial_model(replica.scenario)
                replica.model = np.frombuffer(model, dtype=like.dtype).reshape(like.shape)


def _encoded(replicas: Sequence[Replica]) -> msgspec.Raw:
    saved = _ReplicaSaves(
        states=[replica.selector.state() for replica in replicas],
        models=[None if replica.model is None else replica.model.tobytes() for replica in replicas],
    )
    return msgspec.Raw(msgspec.json.encode(saved))


def unreadable_checkpoint(reason: object) -> RunError:
    """The error for a checkpoint that is whole but does not hold what is expected."""
    return RunError(
        f"the run's checkpoint cannot be read: {reason}; "
        f"delete the folder `checkpoint` in the run folder to play the recorded slots again"
    )


@dataclass(frozen=True, kw_only=True)
class Work:
    """A plan and how to play it, as values that any process with fedelect can be sent.

    Attributes:
        config: The world.
        framework: "fa" or "da".
        selectors: The texts of the competitors.
        slots: T.
        trials: How many trials the whole plan has.
        seed: The run's seed.
        engine: Name by which the engine is made.
        engine_recorded: What the engine made here calls itself in the records.
        versions: Of what decides over the last bit of a result.
        import_paths: Where this process looks for modules.
    """

    config: ScenarioConfig
    framework: FrameworkName
    selectors: tuple[str, ...]
    slots: int
    trials: int
    seed: int
    engine: str
    engine_recorded: str
    versions: tuple[tuple[str, str], ...]
    import_paths: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, *, engine: str, engine_recorded: str) -> "Work":
        """The work of `plan` with the engine made under the name `engine`."""
        return cls(
            config=plan.config,
            framework=plan.framework,
            selectors=tuple(spec.text for spec in plan.selectors),
            slots=plan.slots,
            trials=plan.trials,
            seed=plan.seed,
            engine=engine,
            engine_recorded=engine_recorded,
            versions=tuple(versions_of(engine_recorded).items()),
            import_paths=tuple(sys.path),
        )

    def shard(self, ground: TrainingSource, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> Shard:
        """The shard of some trials, made in the process that will play it; see `Shard`."""
        here = tuple(versions_of(self.engine_recorded).items())
        if self.versions != here:
            raise ConfigurationError(
                f"a worker runs other versions ({_listed(here)}) than this process ({_listed(self.versions)}), "
                f"so its results may differ; install the same versions on every machine"
            )
        sys.path.extend(path for path in self.import_paths if path not in sys.path)
        engine = engine_for(self.engine, self.config, ground)
        if engine.name != self.engine_recorded:
            raise ConfigurationError(
                f"a worker would train with the engine {engine.name!r} and this process with "
                f"{self.engine_recorded!r}; install the same extras on every machine"
            )
        plan = Plan(
            config=self.config,
            framework=self.framework,
            selectors=parse_selectors(self.selectors),
            slots=self.slots,
            trials=self.trials,
            seed=self.seed,
        )
        return Shard(plan, ground, engine, trials, saves)


def _listed(versions: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(" ".join(pair) for pair in versions)


class ShardHost:
    """A shard in a process of its own: made at the first request, and whatever goes wrong is an answer."""

    def __init__(
        self, work: Work, ground: TrainingSource, trials: Sequence[int], saves: Mapping[int, TrialSave]
    ) -> None:
        self._made_from: tuple[Work, TrainingSource, Sequence[int], Mapping[int, TrialSave]] | None
        self._made_from = (work, ground, trials, saves)
        self._shard: Shard | None = None

    def play(self, at_least_s: float, save: bool) -> Played | Failed:
        """`Shard.play`, or the exception it raised."""
        try:
            if self._made_from is not None:
                work, ground, trials, saves = self._made_from
                self._shard = work.shard(ground, trials, saves)
                self._made_from = None  # the whole data set is not needed any more
                threadpool_limits(limits=1, user_api="blas")
            assert self._shard is not None
            return self._shard.play(at_least_s=at_least_s, save=save)
        except Exception as error:
            return failed(error)
