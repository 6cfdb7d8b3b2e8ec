"""The simulator: all replicas (trials x selectors) advance together, slot by slot, into a run folder.

A run can be killed at any moment and goes on when it is started again: records are appended slot by slot, and every
few seconds a checkpoint holds the selectors' states and, under a warm start, the models. Slots that were recorded
after the last checkpoint are played again and must give the same records.
"""

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

import fedelect
from fedelect.analytics import Opinion, judge
from fedelect.errors import RunError
from fedelect.federation import Engine, PlainEngine
from fedelect.loop import Replica, play_slot
from fedelect.records import Provenance, RunHeader, RunWriter, SelectorEntry, open_run
from fedelect.scenario import Dataset, Scenario, build_scenario
from fedelect.simulator.plan import Plan, load_opinion, plain
from fedelect.vocabulary import mean_present

CHECKPOINT_EVERY_S = 5.0

Progress = Callable[[int, int], None]
"""Told (replica-slots finished, replica-slots in all) after every slot."""


class _Saved(msgspec.Struct, frozen=True):
    """A checkpoint: for each replica, in order, the selector's state and its model (array bytes) or None."""

    states: list[dict[str, Any]]
    models: list[bytes | None]


def simulate(
    plan: Plan,
    dataset: Dataset,
    out: Path,
    *,
    command: str = "",
    engine: Engine | None = None,
    progress: Progress = lambda finished, total: None,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
) -> None:
    """Run `plan` into the folder `out`, going on where an earlier run of the same plan stopped.

    Args:
        plan: What to simulate.
        dataset: The data that the plan's scenario deals to its clients.
        out: The run folder; made if it is not there.
        command: The command line to note in the records.
        engine: What trains; the plain reference loop if None.
        progress: Called after every slot.
        checkpoint_every_s: Seconds of work between checkpoints.
    """
    engine = engine or PlainEngine()
    opinion = load_opinion(plan.config.opinion)
    worlds = _worlds(plan, dataset)
    replicas = [
        Replica(spec.text, trial, worlds[trial], plan.build(spec, worlds[trial], trial))
        for trial in range(plan.trials)
        for spec in plan.selectors
    ]
    header = _header(plan, worlds, _untrained(worlds, engine, opinion), engine.name, command)
    total = plan.slots * len(replicas)
    # More BLAS threads would sum in another order (other numbers), and only get in each other's way at these sizes.
    with open_run(out, header) as writer, threadpool_limits(limits=1, user_api="blas"):
        start = _resume(writer, replicas, engine)
        progress(start * len(replicas), total)
        saved_at = time.monotonic()
        for slot in range(start + 1, plan.slots + 1):
            records = play_slot(
                replicas, slot=slot, framework=plan.framework, seed=plan.seed, engine=engine, opinion=opinion
            )
            writer.append(records)
            if slot == plan.slots or time.monotonic() - saved_at >= checkpoint_every_s:
                _save(writer, slot, replicas)
                saved_at = time.monotonic()
            progress(slot * len(replicas), total)


def _worlds(plan: Plan, dataset: Dataset) -> list[Scenario]:
    """The world of each trial; trials share one unless the scenario redraws it."""
    every = plan.config.redraw_every or plan.trials
    drawn = {draw: build_scenario(plan.config, dataset, draw=draw) for draw in range(-(-plan.trials // every))}
    return [drawn[trial // every] for trial in range(plan.trials)]


def _untrained(worlds: list[Scenario], engine: Engine, opinion: Opinion) -> tuple[float | None, ...]:
    """For each trial, the mean opinion of the untrained model; None where nobody has one."""
    means: dict[int, float | None] = {}
    for world in worlds:
        if id(world) not in means:
            (scores,) = engine.scores(world, [engine.initial_model(world)])
            means[id(world)] = mean_present(judge(world, scores, opinion))
    return tuple(means[id(world)] for world in worlds)


def _header(
    plan: Plan, worlds: list[Scenario], untrained: tuple[float | None, ...], engine: str, command: str
) -> RunHeader:
    """The header of the run. Where worlds are redrawn, map and sizes are those of the first."""
    world = worlds[0]
    return RunHeader(
        source="simulator",
        engine=engine,
        framework=plan.framework,
        seed=plan.seed,
        clients=world.clients,
        budget=world.budget,
        slots=plan.slots,
        trials=plan.trials,
        selectors=tuple(
            SelectorEntry(label=spec.text, kind=type(plan.build(spec, world, 0)).__name__, parameters=spec.parameters)
            for spec in plan.selectors
        ),
        scenario=plain(plan.config),
        groups=dict(world.groups),
        positions_km=tuple((float(x), float(y)) for x, y in world.positions_km),
        edges=tuple((int(i), int(j)) for i, j in world.edges),
        sizes=tuple(world.sizes.tolist()),
        upload_probability=tuple(world.upload_probability.tolist()),
        untrained=untrained,
        provenance=Provenance(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=command,
            versions={
                "fedelect": fedelect.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            platform=f"{platform.system()} {platform.machine()}",
        ),
    )


def _save(writer: RunWriter, slot: int, replicas: list[Replica]) -> None:
    saved = _Saved(
        states=[replica.selector.state() for replica in replicas],
        models=[None if replica.model is None else replica.model.tobytes() for replica in replicas],
    )
    writer.save_checkpoint(slot, msgspec.json.encode(saved))


def _resume(writer: RunWriter, replicas: list[Replica], engine: Engine) -> int:
    """Put the replicas where the last checkpoint left them; the number of slots they have played."""
    checkpoint = writer.load_checkpoint()
    if checkpoint is None:
        return 0
    try:
        saved = msgspec.json.decode(checkpoint.payload, type=_Saved)
    except msgspec.MsgspecError as error:
        raise RunError(
            f"the checkpoint in {writer.path} cannot be read: {error}; "
            f"delete the folder `checkpoint` to play the recorded slots again"
        ) from error
    for replica, state, model in zip(replicas, saved.states, saved.models, strict=True):
        replica.selector = type(replica.selector).restore(state)
        if model is not None:
            like = engine.initial_model(replica.scenario)
            replica.model = np.frombuffer(model, dtype=like.dtype).reshape(like.shape)
    return checkpoint.slot
