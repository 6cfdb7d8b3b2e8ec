"""Play blocks: the loop itself, many trials of one series at once, with a save every minute.

An unfinished block resumes from its save, which is kept next to the block's file until the block is finished.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.federation import DEFAULT_ENGINE, Engine, versions_of
from fedelect.loop import Replica, play_slot
from fedelect.measurement import opinions_on
from fedelect.records import PartStore, SlotRecord, mean_opinion, to_array
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.simulator import Plan, TrainingSource, specify_selectors
from fedelect.simulator.plan import build_world, make_engine_for
from fedelect.vocabulary import mean_present
from paper.blocks import Block, BlockKey, write_block
from paper.series import Series

SAVE_EVERY_S = 60.0

_SAVE = "save"
"""Name of the one part of a block under way."""

Report = Callable[[int], None]
"""Called with the number of replica-slots played since the last call."""


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
    """An unfinished block; arrays as bytes, cut to the slots played."""

    played: int
    states: list[dict[str, Any]]
    arrays: dict[str, bytes]


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

    def block(self, task: BlockTask, key: BlockKey, untrained: float) -> Block:
        by_trial = {name: np.swapaxes(self.arrays[name], 0, 1) for name in ("cohorts", "opinions")}
        return Block(key=key, first_trial=task.first_trial, untrained=untrained, **(self.arrays | by_trial))


def play_block(
    task: BlockTask, source: TrainingSource, *, report: Report = lambda played: None, save_every_s: float = SAVE_EVERY_S
) -> None:
    """Play a block to its end and write its file.

    Args:
        task: The block.
        source: The data of its scenario, or an atlas of it: then opinions are looked up, and nothing is trained.
        report: Called with progress.
        save_every_s: Seconds between saves.
    """
    for played in play_slots(task, source, save_every_s=save_every_s):
        report(played)


def play_slots(task: BlockTask, source: TrainingSource, *, save_every_s: float = SAVE_EVERY_S) -> Iterator[int]:
    """Play a block as `play_block` does, and yield after each slot how many more replica-slots have been played.

    The first number counts those that had been played before. The file exists when the generator has ended.
    """
    engine = make_engine_for(DEFAULT_ENGINE, task.config, source)
    world = build_world(task.config, source)
    replicas = _replicas(task, world)
    key = block_key(task, source.digest, engine.name)
    trials = {"first_trial": task.first_trial, "trials": task.trials}
    plan = msgspec.to_builtins(key) | trials
    store = PartStore(task.path.with_suffix(".parts"), plan, what="a block", start_over=True)
    try:
        played, tally = _resume(task, store, replicas)
        yield played * task.trials
        saved_at = time.monotonic()
        with threadpool_limits(limits=1, user_api="blas"):
            for slot in range(played + 1, task.slots + 1):
                records = play_slot(replicas, slot=slot, framework=task.series.framework, seed=task.seed, engine=engine)
                tally.add(slot, records)
                yield task.trials
                if time.monotonic() - saved_at >= save_every_s:
                    _save(store, replicas, tally, slot)
                    saved_at = time.monotonic()
            write_block(task.path, tally.block(task, key, _measure_untrained(world, engine)))
    except BaseException:
        store.close()
        raise
    store.discard()


def block_key(task: BlockTask, data_digest: str, engine: str) -> BlockKey:
    """Return the key of the block: what it is made with."""
    return BlockKey(
        scenario=msgspec.json.decode(msgspec.json.encode(task.config)),  # as it will be read again
        selector=task.series.name,
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


def _measure_untrained(world: Scenario, engine: Engine) -> float:
    (opinions,) = opinions_on(world, [engine.initial_model(world)], engine=engine)
    return mean_present(opinions) or 0.0


def _save(store: PartStore, replicas: Sequence[Replica], tally: _Tally, slot: int) -> None:
    states = [replica.selector.state() for replica in replicas]
    store.save(_SAVE, msgspec.msgpack.encode(_Save(played=slot, states=states, arrays=tally.bytes(slot))))


def _resume(task: BlockTask, store: PartStore, replicas: Sequence[Replica]) -> tuple[int, _Tally]:
    """Restore the replicas' selectors; return the slots played and their tally, 0 without a matching save."""
    content = store.load(_SAVE)
    if content is not None:
        save = msgspec.msgpack.decode(content, type=_Save)
        if save.played <= task.slots:
            for replica, state in zip(replicas, save.states, strict=True):
                replica.selector = type(replica.selector).restore(state)
            return save.played, _Tally(task, save.played, save.arrays)
    return 0, _Tally(task)
