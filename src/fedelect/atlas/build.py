"""Train every cohort of a scenario, and the best of them again: `build_atlas`.

The cohorts are trained in chunks of neighbours with one training seed each, which share members and batch orders and
so are far cheaper than one by one. Each finished chunk is saved as a part; a build that was killed continues from its
parts.
"""

import contextlib
import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedelect._machine import as_float, refuse_too_large
from fedelect._processes import run_tasks, worker_count
from fedelect.analytics import load_opinion
from fedelect.atlas.facts import check, strip_data
from fedelect.atlas.file import digest_of, load_atlas, save_atlas
from fedelect.atlas.ranks import cohorts_at
from fedelect.atlas.table import COUNTS, FLOATS, LOSSES, Atlas, AtlasPlan, encode_losses, encode_opinions, known_means
from fedelect.atlas.trainer import Trained, Trainer
from fedelect.atlas.truth import contenders_of
from fedelect.errors import ConfigurationError, RunMismatchError
from fedelect.federation import DEFAULT_ENGINE, Engine, make_engine, versions_of
from fedelect.measurement import opinions_on
from fedelect.records import PartStore, create_provenance, remove_leftovers
from fedelect.scenario import Dataset, Scenario, build_scenario
from fedelect.scenario.size import estimate_training_s, estimate_world_bytes, estimate_world_s
from fedelect.vocabulary import Cohort, Floats, Ints, Progress, ignore_progress

LIMIT = 20_000
"""Most cohorts that are trained unless a higher limit is given: N = 20, K = 5 has 15,504."""

CHUNK = 100
"""Cohorts that are trained together."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A part to train."""

    name: str
    training_seed: int
    ranks: Ints
    losses: bool = False

    @property
    def losses_name(self) -> str:
        """Name of the part that holds the losses."""
        return f"losses-{self.name}"


def build_atlas(
    plan: AtlasPlan,
    dataset: Dataset,
    out: Path,
    *,
    engine: str | None = None,
    workers: int | None = None,
    limit: int = LIMIT,
    allow_large: bool = False,
    command: str = "",
    progress: Progress = ignore_progress,
) -> Atlas:
    """Train every cohort and write the atlas to `out`; continue an earlier build of the same plan.

    The atlas does not depend on `workers`. An existing one is checked and returned. A new one is checked before it is
    written; until then its parts are kept.

    Args:
        plan: What to build.
        dataset: The data that the scenario deals to its clients.
        out: The .npz file; unfinished parts are kept in a folder beside it.
        engine: Name of the engine that trains; the default one if None.
        workers: How many processes train; one for each usable core if None, 1 for none beside this one.
        limit: Most cohorts to train.
        allow_large: Do not refuse what would take more than half of the memory or 30 days of one core.
        command: The command line to note in the atlas.
        progress: Called with (finished, total) trainings when the build begins and whenever a part is finished.

    Raises:
        ConfigurationError: There are more cohorts than `limit`, or models on which nobody has an opinion, or what
            was trained cannot be kept.
        RunMismatchError: `out`, or the folder of its parts, holds another atlas.
    """
    if out.suffix != ".npz":
        raise ConfigurationError(f"an atlas is a file that ends in .npz, got {out}")
    name = engine or DEFAULT_ENGINE
    places = worker_count(workers)
    if not allow_large:
        _check_size(plan, dataset, places, min(plan.cohorts, limit))
    trainer = Trainer(plan, dataset, name)
    if plan.cohorts > limit:
        raise _too_many(plan, trainer, limit, places)
    world = build_scenario(plan.config, dataset)
    made = make_engine(name, plan.config)
    identity = _identity(plan, dataset, made.name)
    folder = out.with_name(out.name + ".parts")
    if out.exists():
        atlas = _load_existing(out, identity)
        remove_leftovers(folder, identity)
        return atlas
    build = _Build(plan, world, trainer, places, progress)
    parts = PartStore(folder, identity, what="an atlas")
    try:
        table = build.table(parts)
        contenders = contenders_of(known_means(table, build.test_sizes), plan.contenders)
        fresh = build.fresh(parts, contenders)
        known_means(fresh, build.test_sizes)
        atlas = Atlas(
            world=strip_data(world),
            seed=plan.seed,
            engine=made.name,
            data_digest=dataset.digest,
            test_sizes=build.test_sizes,
            untrained=_measure_untrained(world, made),
            table=table,
            contenders=contenders,
            fresh=fresh,
            losses=build.losses,
            provenance=create_provenance(command, versions_of(made.name)),
            digest="",
        )
        object.__setattr__(atlas, "digest", digest_of(atlas))
        _check_readable(atlas)
        save_atlas(atlas, out)
    except BaseException:
        parts.close()
        raise
    parts.discard()
    return atlas


class _Build:
    """One build: the parts on file, and those that are trained now."""

    def __init__(self, plan: AtlasPlan, world: Scenario, trainer: Trainer, places: int, progress: Progress) -> None:
        self._plan, self._trainer, self._places, self._progress = plan, trainer, places, progress
        self.test_sizes: Ints = np.array([len(labels) for labels in world.test_labels], dtype=np.int64)
        small = int(self.test_sizes.max()) <= np.iinfo(COUNTS).max
        self._dtype = COUNTS if plan.config.opinion == "accuracy" and small else FLOATS
        shape = (2, plan.losses, plan.config.clients, plan.cohorts)
        self.losses: NDArray[Any] | None = np.empty(shape, dtype=LOSSES) if plan.losses else None
        self._finished = 0
        progress(0, plan.trainings)

    def table(self, parts: PartStore) -> NDArray[Any]:
        """(S, N, C)"""
        starts = range(0, self._plan.cohorts, CHUNK)
        chunks = [np.arange(start, min(start + CHUNK, self._plan.cohorts), dtype=np.int64) for start in starts]
        tasks = [
            _Task(f"table-{seed}-{number:05d}", seed, ranks, seed < self._plan.losses)
            for seed in range(self._plan.seeds)
            for number, ranks in enumerate(chunks)
        ]
        table = np.empty((self._plan.seeds, self._plan.config.clients, self._plan.cohorts), dtype=self._dtype)
        for task, opinions, losses in self._train_tasks(parts, tasks):
            table[task.training_seed][:, task.ranks] = opinions.T
            if self.losses is not None and losses is not None:
                self.losses[:, task.training_seed][:, :, task.ranks] = losses.transpose(0, 2, 1)
        return table

    def fresh(self, parts: PartStore, contenders: Ints) -> NDArray[Any]:
        """(F, N, R)"""
        first = self._plan.seeds
        tasks = [_Task(f"fresh-{seed}", seed, contenders) for seed in range(first, first + self._plan.fresh)]
        fresh = np.empty((self._plan.fresh, self._plan.config.clients, len(contenders)), dtype=self._dtype)
        for task, opinions, _ in self._train_tasks(parts, tasks):
            fresh[task.training_seed - first] = opinions.T
        self._progress(self._finished, self._plan.trainings)
        return fresh

    def _train_tasks(
        self, parts: PartStore, tasks: Sequence[_Task]
    ) -> Iterator[tuple[_Task, NDArray[Any], NDArray[Any] | None]]:
        """Yield (n, N) entries and (2, n, N) losses of each task: those on file first, then the others."""
        missing = []
        for task in tasks:
            shape = (len(task.ranks), self._plan.config.clients)
            part = _load(parts, task.name, shape, self._dtype)
            losses = _load(parts, task.losses_name, (2, *shape), LOSSES) if task.losses else None
            if part is None or (task.losses and losses is None):
                missing.append(task)
                continue
            yield task, part, losses
            self._finished += len(task.ranks)
        if missing:  # else the next kept parts would look like very fast work
            self._progress(self._finished, self._plan.trainings)
        requests = [(task.training_seed, self._cohorts(task.ranks), task.losses) for task in missing]
        for place, trained in run_tasks(self._trainer.train, requests, workers=self._places):
            yield missing[place], *self._save_trained(parts, missing[place], trained)
            self._finished += len(missing[place].ranks)
            self._progress(self._finished, self._plan.trainings)

    def _save_trained(
        self, parts: PartStore, task: _Task, trained: Trained
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        part = encode_opinions(trained.opinions, self.test_sizes, self._dtype)
        losses = None if trained.losses is None else encode_losses(trained.losses)
        if losses is not None:
            _save(parts, task.losses_name, losses)
        _save(parts, task.name, part)
        return part, losses

    def _cohorts(self, ranks: Ints) -> list[Cohort]:
        config = self._plan.config
        return list(map(tuple, cohorts_at(ranks, clients=config.clients, budget=config.budget).tolist()))


def _load(parts: PartStore, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Read an array of that shape and type; None if there is none."""
    content = parts.load(name)
    if content is None:
        return None
    with contextlib.suppress(ValueError, EOFError):
        part: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
        return part if part.shape == shape and part.dtype == dtype else None
    return None


def _save(parts: PartStore, name: str, array: NDArray[Any]) -> None:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    parts.save(name, content.getvalue())


def _measure_untrained(world: Scenario, engine: Engine) -> Floats:
    opinion = load_opinion(world.config.opinion)
    (opinions,) = opinions_on(world, [engine.initial_model(world)], engine=engine, opinion=opinion)
    return opinions


def _check_readable(atlas: Atlas) -> None:
    """Raise ConfigurationError if `load_atlas` would refuse the atlas."""
    try:
        check(atlas)
    except ValueError as error:
        raise ConfigurationError(
            f"what was trained makes no atlas that could be read again: {error}; change the scenario, and write to "
            f"another file"
        ) from error


def _identity(plan: AtlasPlan, dataset: Dataset, engine: str) -> dict[str, Any]:
    """Everything that the numbers depend on."""
    losses = {"losses": plan.losses} if plan.losses else {}  # left out, so that builds begun without it go on
    return losses | {
        "scenario": msgspec.to_builtins(plan.config),
        "seed": plan.seed,
        "seeds": plan.seeds,
        "contenders": min(plan.contenders, plan.cohorts),
        "fresh": plan.fresh,
        "data": dataset.digest,
        "engine": engine,
        "versions": versions_of(engine),
        "chunk": CHUNK,
    }


def _load_existing(out: Path, identity: dict[str, Any]) -> Atlas:
    """Load the existing atlas, if it is of that plan. Versions may differ, for it is finished."""
    atlas = load_atlas(out)
    there = {
        "scenario": msgspec.to_builtins(atlas.config),
        "seed": atlas.seed,
        "seeds": atlas.seeds,
        "contenders": len(atlas.contenders),
        "fresh": len(atlas.fresh),
        "data": atlas.data_digest,
        "engine": atlas.engine,
        "losses": 0 if atlas.losses is None else atlas.losses.shape[1],
    }
    changed = sorted(key for key, value in there.items() if {"losses": 0, **identity}[key] != value)
    if changed:
        raise RunMismatchError(
            f"{out} holds another atlas ({', '.join(changed)} differ); write to another file, or remove it"
        )
    return atlas


def _check_size(plan: AtlasPlan, dataset: Dataset, places: int, cohorts: int) -> None:
    config = plan.config
    trainings = as_float(cohorts) * as_float(plan.seeds)
    refuse_too_large(
        f"an atlas of {config.clients:,} clients, {plan.seeds:,} trainings of each cohort, {config.rounds_per_slot:,} "
        f"rounds of {config.model.epochs:,} epochs",
        memory=places * estimate_world_bytes(config, dataset) + 2.0 * trainings * as_float(config.clients),
        seconds=estimate_world_s(config) + trainings * estimate_training_s(config, dataset),
    )


def _too_many(plan: AtlasPlan, trainer: Trainer, limit: int, places: int) -> ConfigurationError:
    """Make the error, with the time that it would take; one batch is trained to estimate it."""
    clients, budget = plan.config.clients, plan.config.budget
    cohorts = [tuple(sorted((first + n) % clients for n in range(budget))) for first in range(10)]
    seconds = 0.0
    for size in (1, len(cohorts)):  # the first time kernels are compiled
        before = time.perf_counter()
        trainer.train(0, cohorts[:size])
        seconds = (time.perf_counter() - before) / size
    hours = seconds * float(min(plan.trainings, 10**300)) / places / 3600
    return ConfigurationError(
        f"there are {_number(plan.cohorts)} cohorts of {budget} out of {clients} clients, more than the limit of "
        f"{limit:,}; {_number(plan.trainings)} trainings of about {1000 * seconds:.3g} ms would take {places} "
        f"processes about {_duration(hours)}; raise the limit (--limit), or take fewer clients"
    )


def _number(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"more than 10^{len(str(count)) - 1}"


def _duration(hours: float) -> str:
    for name, size in (("years", 24 * 365.25), ("days", 24.0), ("hours", 1.0)):
        if hours >= 2 * size:
            return f"{hours / size:.4g} {name}"
    return f"{60 * hours:.0f} minutes"
