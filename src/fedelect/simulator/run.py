"""The simulator: all replicas (trials x selectors) of a plan, into a run folder.

Trials are dealt to shards, which an executor plays here, in worker processes or on a Ray cluster. This process alone
writes the run folder. Every few seconds a checkpoint holds the selectors' states and, under a warm start, the models.
A run can be killed at any moment and goes on when it is started again, also with another number of workers. Slots
recorded after the last checkpoint are played again and must give the same records; so are those of a lost worker.
"""

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from threadpoolctl import threadpool_limits

from fedelect._imports import require_extras
from fedelect._processes import Failed, WorkerLost, usable_cores
from fedelect.analytics import OpinionFunction
from fedelect.atlas import Atlas, AtlasEngine, table_truth
from fedelect.errors import ConfigurationError, RunError, RunMismatchError
from fedelect.federation import Engine, versions_of
from fedelect.measurement import opinions_on
from fedelect.records import OnSlot, Optimum, RunHeader, RunWriter, SelectorEntry, create_provenance, open_run
from fedelect.scenario import Scenario
from fedelect.selectors import AbstractSelector
from fedelect.simulator.executors import Executor, InThisProcess, WorkerProcesses
from fedelect.simulator.plan import Plan, TrainingSource, as_plain, build_world, load_opinion_for, make_engine_for
from fedelect.simulator.ray_cluster import RayActors
from fedelect.simulator.shard import Played, TrialSave, WorkerCheck, unreadable_checkpoint
from fedelect.simulator.size import check_size
from fedelect.vocabulary import Progress, ignore_progress, mean_present

CHECKPOINT_EVERY_S = 5.0

LOSSES_ALLOWED = 3
"""How often in a row the worker of a shard may be lost before any of its trials got further; then the run is ended."""


class _Checkpoint(msgspec.Struct, frozen=True):
    """The payload of a checkpoint: where each trial stands that was begun."""

    trials: list[TrialSave]


def simulate(
    plan: Plan,
    source: TrainingSource,
    out: Path,
    *,
    command: str = "",
    engine: Engine | None = None,
    progress: Progress = ignore_progress,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
    workers: int | None = None,
    ray_address: str | None = None,
    allow_large: bool = False,
    on_slot: OnSlot | None = None,
) -> None:
    """Run `plan` into the folder `out`, going on where an earlier run of the same plan stopped.

    The records do not depend on `workers` or `ray_address`.

    Args:
        plan: What to simulate.
        source: The data set that the scenario deals to the clients, or an atlas.
        out: The run folder; made if it is not there.
        command: The command to note in the records.
        engine: An engine object, which stays in this process; None makes the plan's.
        progress: Called with (finished, total) replica-slots when the run begins and whenever slots were recorded.
        checkpoint_every_s: Seconds of work between checkpoints.
        workers: Processes to spread the trials over; None for one per usable core, 1 for this process.
        ray_address: A Ray cluster to spread them over instead, as `ray.init` takes it, or "local".
        allow_large: Do not refuse a plan that would take more memory or time than is sensible; see `check_size`.
        on_slot: Told the record of each slot once, in this process, after it was appended. The slots of a replica come
            in order; those of different trials mix as they are played.
    """
    if ray_address is not None:
        require_extras("--ray", ray="ray")
    if engine is not None and isinstance(source, Atlas) != isinstance(engine, AtlasEngine):
        raise ConfigurationError("an atlas has been trained already; leave the engine out, or give a data set")
    made = engine or make_engine_for(plan.engine, plan.config, source)
    places = _count_places(plan, workers, ray_address, stays_here=engine is not None)
    if not allow_large:
        check_size(plan, source, processes=places)
    # More BLAS threads would sum in another order (other numbers), and only get in each other's way at these sizes.
    with (
        threadpool_limits(limits=1, user_api="blas"),
        open_run(out, _header(plan, source, made, command), on_slot=on_slot) as writer,
    ):
        run = _RunLoop(plan, writer, progress, checkpoint_every_s)
        if not run.unfinished:
            return
        _check_versions(writer, versions_of(made.name))
        check = WorkerCheck.of(made)
        executor: Executor
        if ray_address is not None:
            executor = actors = RayActors(ray_address, cores=places, plan=plan, source=source, check=check)
            places = workers or actors.cores
        elif min(places, len(run.unfinished)) > 1:
            executor = WorkerProcesses(plan, source, check)
        else:
            executor, places = InThisProcess(plan, source, made), 1
        try:
            run.play(executor, deal(run.unfinished, places))
        finally:
            executor.close()


def _count_places(plan: Plan, workers: int | None, ray_address: str | None, *, stays_here: bool) -> int:
    """Return in how many processes to play, as far as that is known before a cluster is asked."""
    if workers is not None and workers < 1:
        raise ConfigurationError(f"workers must be at least 1, got {workers}")
    elsewhere = ray_address is not None or (workers or 1) > 1
    if stays_here and elsewhere:
        raise ConfigurationError("an engine object cannot be sent to workers; give the engine's name, or workers=1")
    bound = plan.bound_to_this_process
    if bound is not None:
        if elsewhere:
            raise ConfigurationError(
                f"workers cannot import {bound!r}, which is defined in the script or notebook that is run; put it into "
                f"a module of its own, or use workers=1"
            )
        stays_here = True
    return 1 if stays_here else workers or usable_cores()


def deal(trials: Sequence[int], places: int) -> list[tuple[int, ...]]:
    """Split the trials into at most `places` runs of neighbours, none empty, whose lengths differ by at most one.

    >>> deal([0, 1, 2, 5, 6], 2)
    [(0, 1), (2, 5, 6)]
    """
    places = min(places, len(trials))
    cuts = [len(trials) * place // places for place in range(places + 1)]
    return [tuple(trials[first:last]) for first, last in itertools.pairwise(cuts)]


class _RunLoop:
    """One run: where each trial stands, and what goes to disk."""

    def __init__(self, plan: Plan, writer: RunWriter, progress: Progress, checkpoint_every_s: float) -> None:
        self._plan = plan
        self._writer = writer
        self._progress = progress
        self._every_s = checkpoint_every_s
        self._saves = _load(writer, plan)
        self._finished = {trial: save.slot for trial, save in self._saves.items()}
        self._written_at = time.monotonic()
        self._saved_at: dict[int, float] = {}
        self._losses: dict[int, int] = {}
        self._report_progress()

    @property
    def unfinished(self) -> list[int]:
        """The trials that have slots left to play."""
        return [trial for trial in range(self._plan.trials) if self._finished.get(trial, 0) < self._plan.slots]

    def play(self, executor: Executor, shards: Sequence[tuple[int, ...]]) -> None:
        """Play the shards to their end."""
        for number, trials in enumerate(shards):
            self._begin(executor, number, trials)
        playing = set(range(len(shards)))
        while playing:
            number, answer = executor.answer()
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, WorkerLost):
                self._count_loss(number, shards[number], answer)
                self._begin(executor, number, shards[number])
                continue
            if answer.finished:
                playing.discard(number)
                executor.end(number)
            else:
                self._ask(executor, number)  # first, so that it need not wait for the disk
            self._keep(number, answer, last=not playing)

    def _begin(self, executor: Executor, number: int, trials: tuple[int, ...]) -> None:
        executor.begin(number, trials, {trial: self._saves[trial] for trial in trials if trial in self._saves})
        self._saved_at[number] = time.monotonic()
        self._ask(executor, number)

    def _ask(self, executor: Executor, number: int) -> None:
        now = time.monotonic()
        save = now - self._saved_at[number] >= self._every_s
        if save:
            self._saved_at[number] = now
        executor.ask(number, save=save)

    def _keep(self, number: int, played: Played, *, last: bool) -> None:
        self._writer.append(played.records)
        for record in played.records:
            self._finished[record.trial] = max(self._finished.get(record.trial, 0), record.slot)
        if played.saves is not None:
            self._losses.pop(number, None)
            self._saves.update((save.trial, save) for save in played.saves)
            if last or time.monotonic() - self._written_at >= self._every_s:
                self._write_checkpoint()
        self._report_progress()

    def _write_checkpoint(self) -> None:
        trials = sorted(self._saves.values(), key=lambda save: save.trial)
        slot = min(save.slot for save in trials) if len(trials) == self._plan.trials else 0
        self._writer.save_checkpoint(slot, msgspec.json.encode(_Checkpoint(trials)))
        self._written_at = time.monotonic()

    def _count_loss(self, number: int, trials: tuple[int, ...], lost: WorkerLost) -> None:
        self._losses[number] = self._losses.get(number, 0) + 1
        if self._losses[number] > LOSSES_ALLOWED:
            which = f"trial {trials[0]}" if len(trials) == 1 else f"trials {trials[0]} to {trials[-1]}"
            raise RunError(
                f"the worker that plays {which} was lost {self._losses[number]} times in a row before it got further; "
                f"the last time {lost.reason}. What is recorded is kept: see to the cause (fewer workers need less "
                f"memory), then give the same command again"
            )

    def _report_progress(self) -> None:
        replicas = len(self._plan.selectors)
        self._progress(replicas * sum(self._finished.values()), replicas * self._plan.trials * self._plan.slots)


def _load(writer: RunWriter, plan: Plan) -> dict[int, TrialSave]:
    """Return, by trial, where the last checkpoint left it."""
    checkpoint = writer.load_checkpoint()
    if checkpoint is None:
        return {}
    try:
        saves = msgspec.json.decode(checkpoint.payload, type=_Checkpoint).trials
    except msgspec.MsgspecError as error:
        raise unreadable_checkpoint(error) from error
    for save in saves:
        if not (0 <= save.trial < plan.trials and 0 <= save.slot <= plan.slots):
            raise unreadable_checkpoint(f"there is no slot {save.slot} of trial {save.trial} in this run")
    return {save.trial: save for save in saves if _is_on_record(writer, save)}


def _is_on_record(writer: RunWriter, save: TrialSave) -> bool:
    """Return whether all slots of a save are on record; a damaged file may lack some, and they are played again."""
    slots = frozenset(range(1, save.slot + 1))
    return all(slots <= writer.recorded(label, save.trial) for label in writer.header.labels)


def _judge_untrained(worlds: Iterable[Scenario], engine: Engine, opinion: OpinionFunction) -> list[float | None]:
    """For each world, the mean opinion of the untrained model; None where nobody has one."""
    means = []
    for world in worlds:
        (opinions,) = opinions_on(world, [engine.initial_model(world)], engine=engine, opinion=opinion)
        means.append(mean_present(opinions))
    return means


def _entry(label: str, selector: AbstractSelector) -> SelectorEntry:
    """What the selector was made with, but for what the run itself sets and the graph, which has its own place."""
    elsewhere = ("clients", "budget", "seed", "edges", "couplings")
    parameters = {name: value for name, value in selector.parameters.items() if name not in elsewhere}
    return SelectorEntry(label=label, kind=type(selector).__name__, parameters=parameters)


def _check_versions(writer: RunWriter, versions: dict[str, str]) -> None:
    """Refuse to go on with other versions than the run was begun with: the numbers might differ."""
    begun = writer.header.provenance.versions
    changed = [
        f"{name} {begun.get(name, 'missing')} -> {versions.get(name, 'missing')}"
        for name in sorted({*begun, *versions})
        if begun.get(name) != versions.get(name)
    ]
    if changed:
        raise RunMismatchError(
            f"the run in {writer.path} was begun with other versions ({', '.join(changed)}), and results might differ; "
            f"go on with those, or begin a new folder"
        )


def _optimum(atlas: Atlas) -> Optimum:
    """The best cohort of the table, which is the world that a run on an atlas plays in."""
    truth = table_truth(atlas)
    smallest, largest = (None if math.isnan(gap) else gap for gap in (truth.smallest_gap, truth.largest_gap))
    return Optimum(
        cohort=atlas.cohort(truth.best), value=truth.optimum.mean, smallest_gap=smallest, largest_gap=largest
    )


def _header(plan: Plan, source: TrainingSource, engine: Engine, command: str) -> RunHeader:
    """The header of the run. Where worlds are redrawn, map and sizes are those of the first."""
    world = build_world(plan.config, source)
    redrawn = (build_world(plan.config, source, draw=draw) for draw in range(1, plan.draw(plan.trials - 1) + 1))
    untrained = _judge_untrained(itertools.chain([world], redrawn), engine, load_opinion_for(plan.config, source))
    return RunHeader(
        source="simulator",
        engine=engine.name,
        framework=plan.framework,
        seed=plan.seed,
        clients=world.clients,
        budget=world.budget,
        slots=plan.slots,
        trials=plan.trials,
        selectors=tuple(_entry(spec.text, plan.build_selector(spec, world, 0)) for spec in plan.selectors),
        scenario=as_plain(plan.config),
        data_digest=source.digest,
        groups=dict(world.groups),
        flaws=dict(world.flaws),
        client_names=world.client_names,
        positions_km=tuple((float(x), float(y)) for x, y in world.positions_km),
        edges=tuple((int(i), int(j)) for i, j in world.edges),
        sizes=tuple(world.sizes.tolist()),
        upload_probability=tuple(world.upload_probability.tolist()),
        untrained=tuple(untrained[plan.draw(trial)] for trial in range(plan.trials)),
        optimum=_optimum(source) if isinstance(source, Atlas) else None,
        provenance=create_provenance(command, versions_of(engine.name)),
    )
