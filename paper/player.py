"""Plays blocks: the loop itself, many trials of one series side by side, with a save every minute.

A block that was begun goes on from its save, which lies beside the place of its file until the block is finished.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.federation import DEFAULT_ENGINE, Engine, versions_of
from fedelect.loop import Replica, opinions_on, play_slot
from fedelect.records import SlotRecord, mean_opinion, to_array
from fedelect.records.files import make_folder, replace_file
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.simulator import Plan, TrainingSource, specify_selectors
from fedelect.simulator.plan import build_world, make_engine_for
from fedelect.vocabulary import mean_present
from paper.blocks import About, Block, write_block
from paper.series import Series

SAVE_EVERY_S = 60.0

Report = Callable[[int], None]
"""Told how many replica-slots have been played since it was last told."""


@dataclass(frozen=True, kw_only=True)
class BlockTask:
    """A block to be played.

    Attributes:
        series: The series.
        config: The series' scenario.
        seed: Seed of the run; trial numbers, cohorts and opinions are those of `fedelect run --seed` with it.
        first_trial: The first of its trials.
        trials: How many.
        slots: T.
        path: The file it is kept in.
    """

    series: Series
    config: ScenarioConfig
    seed: int
    first_trial: int
    trials: int
    slots: int
    path: Path

    @property
    def replica_slots(self) -> int:
        """Slots over all trials."""
        return self.trials * self.slots


class _Save(msgspec.Struct, frozen=True, kw_only=True):
    """A block under way; arrays as bytes, cut to the slots played."""

    about: About
    first_trial: int
    trials: int
    states: list[dict[str, Any]]
    arrays: dict[str, bytes]
    played: int


class _Tally:
    """The arrays of a block, filled slot by slot."""

    def __init__(self, task: BlockTask, played: int = 0, arrays: dict[str, bytes] | None = None) -> None:
        clients, budget, slots = task.config.clients, task.config.budget, task.slots
        self.arrays: dict[str, Any] = {
            "cohorts": np.zeros((slots, task.trials, budget), dtype=np.uint8 if clients <= 256 else np.uint32),
            "opinions": np.full((slots, task.trials), np.nan),
        }
        if task.series.framework == "da":
            self.arrays |= {
                "belief_sums": np.zeros((slots, clients), dtype=np.float32),
                "belief_squares": np.zeros((slots, clients), dtype=np.float32),
                "residuals": np.zeros(slots, dtype=np.float32),
            }
        for name, content in (arrays or {}).items():
            array = self.arrays[name]
            array[:played] = np.frombuffer(content, dtype=array.dtype).reshape(played, *array.shape[1:])

    def add(self, slot: int, records: Sequence[SlotRecord]) -> None:
        row = slot - 1
        shares = []
        for place, record in enumerate(records):
            if record.cohort:
                self.arrays["cohorts"][row, place] = record.cohort
            mean = mean_opinion(record)
            self.arrays["opinions"][row, place] = np.nan if mean is None else mean
            if record.beliefs is not None:
                beliefs = to_array(record.beliefs)
                shares.append(beliefs / np.nansum(beliefs))
        if shares:
            self.arrays["belief_sums"][row] = np.sum(shares, axis=0)
            self.arrays["belief_squares"][row] = np.sum(np.square(shares), axis=0)
            residuals = [record.exchange.residual or 0.0 for record in records if record.exchange is not None]
            self.arrays["residuals"][row] = max(residuals)

    def bytes(self, played: int) -> dict[str, bytes]:
        return {name: array[:played].tobytes() for name, array in self.arrays.items()}

    def block(self, task: BlockTask, about: About, untrained: float) -> Block:
        by_trial = {name: np.swapaxes(self.arrays[name], 0, 1) for name in ("cohorts", "opinions")}
        return Block(about=about, first_trial=task.first_trial, untrained=untrained, **(self.arrays | by_trial))


def play_block(
    task: BlockTask, ground: TrainingSource, *, report: Report = lambda played: None, save_every_s: float = SAVE_EVERY_S
) -> None:
    """Play a block to its end and write its file.

    Args:
        task: The block.
        ground: The data of its scenario, or an atlas of it: then opinions are looked up, and nothing is trained.
        report: Told of progress.
        save_every_s: Seconds between saves.
    """
    for played in playing(task, ground, save_every_s=save_every_s):
        report(played)


def playing(task: BlockTask, ground: TrainingSource, *, save_every_s: float = SAVE_EVERY_S) -> Iterator[int]:
    """Play a block as `play_block` does, and yield after each slot how many more replica-slots have been played.

    The first number is of those that had been played before. The file is there when the generator has ended.
    """
    engine = make_engine_for(DEFAULT_ENGINE, task.config, ground)
    world = build_world(task.config, ground)
    replicas = _replicas(task, world)
    about = about_of(task, ground.digest, engine.name)
    save_path = task.path.with_suffix(".part")
    played, tally = _resumed(task, about, save_path, replicas)
    yield played * task.trials
    saved_at = time.monotonic()
    with threadpool_limits(limits=1, user_api="blas"):
        for slot in range(played + 1, task.slots + 1):
            records = play_slot(replicas, slot=slot, framework=task.series.framework, seed=task.seed, engine=engine)
            tally.add(slot, records)
            yield task.trials
            if time.monotonic() - saved_at >= save_every_s:
                _write_save(task, about, save_path, replicas, tally, slot)
                saved_at = time.monotonic()
        write_block(task.path, tally.block(task, about, _untrained(world, engine)))
    save_path.unlink(missing_ok=True)


def about_of(task: BlockTask, data_digest: str, engine: str) -> About:
    """What the block will say it was made with."""
    return About(
        scenario=msgspec.json.decode(msgspec.json.encode(task.config)),  # as it will be read again
        selector=task.series.selector,
        framework=task.series.framework,
        seed=task.seed,
        data_digest=data_digest,
        engine=engine,
        versions=versions_of(engine),
    )


def _replicas(task: BlockTask, world: Scenario) -> list[Replica]:
    plan = Plan(
        config=task.config,
        framework=task.series.framework,
        selectors=specify_selectors([task.series.selector]),
        slots=task.slots,
        trials=task.first_trial + task.trials,
        seed=task.seed,
    )
    (spec,) = plan.selectors
    trials = range(task.first_trial, task.first_trial + task.trials)
    return [Replica(spec.text, trial, world, plan.build_selector(spec, world, trial)) for trial in trials]


def _untrained(world: Scenario, engine: Engine) -> float:
    (opinions,) = opinions_on(world, [engine.initial_model(world)], engine=engine)
    return mean_present(opinions) or 0.0


def _write_save(
    task: BlockTask, about: About, path: Path, replicas: Sequence[Replica], tally: _Tally, slot: int
) -> None:
    save = _Save(
        about=about,
        first_trial=task.first_trial,
        trials=task.trials,
        states=[replica.selector.state() for replica in replicas],
        arrays=tally.bytes(slot),
        played=slot,
    )
    make_folder(path.parent)
    replace_file(path, msgspec.msgpack.encode(save))


def _resumed(task: BlockTask, about: About, path: Path, replicas: Sequence[Replica]) -> tuple[int, _Tally]:
    """Slots played and their tally, with the replicas' selectors where they were; from the start if there is no save.

    A save of another block, of other versions or cut short by a crash is of no use: the block starts over.
    """
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        save = msgspec.msgpack.decode(path.read_bytes(), type=_Save)
        same = (save.about, save.first_trial, save.trials) == (about, task.first_trial, task.trials)
        if same and save.played <= task.slots:
            for replica, state in zip(replicas, save.states, strict=True):
                replica.selector = type(replica.selector).restore(state)
            return save.played, _Tally(task, save.played, save.arrays)
    return 0, _Tally(task)
