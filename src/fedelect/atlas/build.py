"""Train every cohort of a scenario, and the best of them again: `build_atlas`.

The cohorts are trained in chunks of neighbours with one training seed each, which share members and batch orders and
so are far cheaper than one by one. Each chunk is kept as it is finished (`parts.py`).
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fedelect.analytics import load_opinion
from fedelect.atlas.facts import without_data
from fedelect.atlas.file import digest_of, load_atlas, save_atlas
from fedelect.atlas.parts import Parts
from fedelect.atlas.ranks import cohorts_at
from fedelect.atlas.table import COUNTS, FLOATS, Atlas, AtlasPlan, kept, mean_opinions
from fedelect.atlas.truth import contenders_of
from fedelect.errors import ConfigurationError, RunMismatchError
from fedelect.federation import DEFAULT_ENGINE, Engine, Job, make_engine, versions_of
from fedelect.loop import opinions_on
from fedelect.processes import Failed, answers_of, failed, places_for
from fedelect.records import Provenance
from fedelect.scenario import Dataset, Scenario, build_scenario
from fedelect.vocabulary import Cohort, Floats, Ints

LIMIT = 20_000
"""Most cohorts that are trained unless a higher limit is given: N = 20, K = 5 has 15,504."""

CHUNK = 100
"""Cohorts that are trained together."""

Progress = Callable[[int, int], None]
"""Told (trainings finished, trainings in all)."""


class _Trainer:
    """Trains chunks of cohorts, here or in a worker process; the world is built where it plays."""

    def __init__(self, plan: AtlasPlan, dataset: Dataset, engine: str) -> None:
        self._plan, self._engine_name = plan, engine
        self._dataset: Dataset | None = dataset
        self._made: tuple[Scenario, Engine] | None = None

    def play(self, training_seed: int, cohorts: Sequence[Cohort]) -> Floats | Failed:
        """(n, N) opinions on the models of the cohorts; or what went wrong."""
        try:
            with threadpool_limits(limits=1, user_api="blas"):  # the same numbers on any number of cores
                return self._opinions(training_seed, cohorts)
        except Exception as error:
            return failed(error)

    def _opinions(self, training_seed: int, cohorts: Sequence[Cohort]) -> Floats:
        config = self._plan.config
        if self._made is None:
            assert self._dataset is not None
            self._made = build_scenario(config, self._dataset), make_engine(self._engine_name, config)
            self._dataset = None  # the clients have their shares
        world, engine = self._made
        jobs = [Job(cohort=cohort, seed=self._plan.seed, trial=training_seed, slot=1) for cohort in cohorts]
        models = [training.model for training in engine.train(world, jobs)]
        return np.array(list(opinions_on(world, models, engine=engine, opinion=load_opinion(config.opinion))))


@dataclass(frozen=True, slots=True)
class _Task:
    """A part to train."""

    name: str
    training_seed: int
    ranks: Ints


def build_atlas(
    plan: AtlasPlan,
    dataset: Dataset,
    out: Path,
    *,
    engine: str | None = None,
    workers: int | None = None,
    limit: int = LIMIT,
    command: str = "",
    progress: Progress = lambda finished, total: None,
) -> Atlas:
    """Train every cohort and write the atlas to `out`, going on where an earlier build of the same plan stopped.

    The atlas does not depend on `workers`. One that is there already is checked and returned.

    Args:
        plan: What to build.
        dataset: The data that the scenario deals to its clients.
        out: The .npz file; unfinished parts are kept in a folder beside it.
        engine: Name of the engine that trains; the default one if None.
        workers: How many processes train; one for each usable core if None, 1 for none beside this one.
        limit: Most cohorts to train.
        command: The command line to note in the atlas.
        progress: Called when the build begins and whenever a part is finished.

    Raises:
        ConfigurationError: There are more cohorts than `limit`.
        RunMismatchError: `out`, or the folder of its parts, holds another atlas.
    """
    name = engine or DEFAULT_ENGINE
    places = places_for(workers)
    trainer = _Trainer(plan, dataset, name)
    if plan.cohorts > limit:
        raise _too_many(plan, trainer, limit, places)
    world = build_scenario(plan.config, dataset)
    made = make_engine(name, plan.config)
    identity = _identity(plan, dataset, made.name)
    if out.exists():
        return _existing(out, plan, identity)
    build = _Build(plan, world, trainer, places, progress)
    parts = Parts(out.with_name(out.name + ".parts"), identity)
    try:
        table = build.table(parts)
        contenders = contenders_of(mean_opinions(table, build.test_sizes), plan.contenders)
        atlas = Atlas(
            world=without_data(world),
            seed=plan.seed,
            engine=made.name,
            data_digest=dataset.digest,
            test_sizes=build.test_sizes,
            untrained=_untrained(world, made),
            table=table,
            contenders=contenders,
            fresh=build.fresh(parts, contenders),
            provenance=_provenance(made.name, command),
            digest="",
        )
        object.__setattr__(atlas, "digest", digest_of(atlas))
        save_atlas(atlas, out)
    except BaseException:
        parts.close()
        raise
    parts.discard()
    return atlas


class _Build:
    """One build under way: which parts are there, which are trained now."""

    def __init__(self, plan: AtlasPlan, world: Scenario, trainer: _Trainer, places: int, progress: Progress) -> None:
        self._plan, self._trainer, self._places, self._progress = plan, trainer, places, progress
        self.test_sizes: Ints = np.array([len(labels) for labels in world.test_labels], dtype=np.int64)
        small = int(self.test_sizes.max()) <= np.iinfo(COUNTS).max
        self._dtype = COUNTS if plan.config.opinion == "accuracy" and small else FLOATS
        self._finished = 0
        progress(0, plan.trainings)

    def table(self, parts: Parts) -> NDArray[Any]:
        """(S, N, C)"""
        starts = range(0, self._plan.cohorts, CHUNK)
        chunks = [np.arange(start, min(start + CHUNK, self._plan.cohorts), dtype=np.int64) for start in starts]
        tasks = [
            _Task(f"table-{seed}-{number:05d}", seed, ranks)
            for seed in range(self._plan.seeds)
            for number, ranks in enumerate(chunks)
        ]
        table = np.empty((self._plan.seeds, self._plan.config.clients, self._plan.cohorts), dtype=self._dtype)
        for task, opinions in self._trained(parts, tasks):
            table[task.training_seed][:, task.ranks] = opinions.T
        return table

    def fresh(self, parts: Parts, contenders: Ints) -> NDArray[Any]:
        """(F, N, R)"""
        first = self._plan.seeds
        tasks = [_Task(f"fresh-{seed}", seed, contenders) for seed in range(first, first + self._plan.fresh)]
        fresh = np.empty((self._plan.fresh, self._plan.config.clients, len(contenders)), dtype=self._dtype)
        for task, opinions in self._trained(parts, tasks):
            fresh[task.training_seed - first] = opinions.T
        self._progress(self._finished, self._plan.trainings)
        return fresh

    def _trained(self, parts: Parts, tasks: Sequence[_Task]) -> Iterator[tuple[_Task, NDArray[Any]]]:
        """(n, N) entries of each task, those that are kept first, then the others as they are trained."""
        missing = []
        for task in tasks:
            part = parts.load(task.name, (len(task.ranks), self._plan.config.clients), self._dtype)
            if part is None:
                missing.append(task)
                continue
            yield task, part
            self._finished += len(task.ranks)
        if missing:  # else the next kept parts would look like very fast work
            self._progress(self._finished, self._plan.trainings)
        requests = [(task.training_seed, self._cohorts(task.ranks)) for task in missing]
        for place, opinions in answers_of(self._trainer, requests, workers=self._places):
            task = missing[place]
            part = kept(opinions, self.test_sizes, self._dtype)
            parts.save(task.name, part)
            yield task, part
            self._finished += len(task.ranks)
            self._progress(self._finished, self._plan.trainings)

    def _cohorts(self, ranks: Ints) -> list[Cohort]:
        config = self._plan.config
        return list(map(tuple, cohorts_at(ranks, clients=config.clients, budget=config.budget).tolist()))


def _untrained(world: Scenario, engine: Engine) -> Floats:
    opinion = load_opinion(world.config.opinion)
    (opinions,) = opinions_on(world, [engine.initial_model(world)], engine=engine, opinion=opinion)
    return opinions


def _identity(plan: AtlasPlan, dataset: Dataset, engine: str) -> dict[str, Any]:
    """All that decides over the numbers."""
    return {
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


def _existing(out: Path, plan: AtlasPlan, identity: dict[str, Any]) -> Atlas:
    """The atlas that is there, if it is of that plan; versions may differ, for it is finished."""
    atlas = load_atlas(out)
    there = {
        "scenario": msgspec.to_builtins(atlas.config),
        "seed": atlas.seed,
        "seeds": atlas.seeds,
        "contenders": len(atlas.contenders),
        "fresh": len(atlas.fresh),
        "data": atlas.data_digest,
        "engine": atlas.engine,
    }
    changed = sorted(key for key, value in there.items() if identity[key] != value)
    if changed:
        raise RunMismatchError(
            f"{out} holds another atlas ({', '.join(changed)} differ); write to another file, or remove it"
        )
    return atlas


def _too_many(plan: AtlasPlan, trainer: _Trainer, limit: int, places: int) -> ConfigurationError:
    """The refusal, with how long it would take, by a batch that is trained to find out."""
    clients, budget = plan.config.clients, plan.config.budget
    cohorts = [tuple(sorted((first + n) % clients for n in range(budget))) for first in range(10)]
    seconds = 0.0
    for size in (1, len(cohorts)):  # the first time kernels are compiled
        before = time.perf_counter()
        answer = trainer.play(0, cohorts[:size])
        if isinstance(answer, Failed):
            raise answer.error
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


def _provenance(engine: str, command: str) -> Provenance:
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        versions=versions_of(engine),
        platform=f"{platform.system()} {platform.machine()}",
    )
