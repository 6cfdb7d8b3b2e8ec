"""All jobs of a batch together: at each client, everybody who trains there in one visit.

In each round the stacked engine goes from client to client. The jobs that chose the client, and whose upload will
arrive, become columns (job, class) that share the client's data: in score space its Gram matrix (path "gram"), or the
inputs themselves (path "primal"). Each job keeps its own trial's batch order.

A job's result depends on the scenario and the job alone, bit for bit: not on the other jobs, their order, the process
or the number of threads. The paths agree with the plain loop to rounding, and so are named differently.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.aggregation import aggregate
from fedelect.errors import ConfigurationError
from fedelect.federation.linear.choice import Path, cheaper_path
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.linear.shares import SHELF_BYTES, Share, ShareCache, Shares
from fedelect.federation.local_training import batch_orders
from fedelect.federation.losses import ClientLosses, linear_losses
from fedelect.federation.train import Job, JobKey, Training, checked, finished, initial_model
from fedelect.scenario import Scenario, draw_arrivals
from fedelect.vocabulary import Cohort, Ints

PATHS = ("auto", "gram", "primal")
_Order = tuple[int, int, int]  # (seed, trial, slot): jobs that have these in common share their batch orders
_Trainer = Callable[[Share, Model, NDArray[np.int32], Ints], Model]


class _Backend(Protocol):
    """What `compiled` and `without_numba` have in common."""

    SUFFIX: str
    by_gram: _Trainer
    by_primal: _Trainer
    all_scores: Callable[[Shares, Sequence[Model]], Iterator[Scores]]


@dataclass(slots=True, eq=False)
class _Running:
    """A job under way; `model` is the global model, `uploads` (K, F+1, C) what the clients make of it."""

    job: Job
    cohort: Cohort
    model: Model
    arrivals: NDArray[np.bool_]
    uploads: Model

    @property
    def order(self) -> _Order:
        return self.job.seed, self.job.trial, self.job.slot


@final
class StackedEngine:
    """Trains linear models, many jobs at a time; see the module's text.

    Args:
        path: "gram", "primal", or "auto": the one that is cheaper for the scenario, whatever the jobs.
        compiled: Whether to use the compiled kernels, which need numba; None: if numba is there.
        memory_bytes: What Gram matrices and sparse data of all scenarios together may take before those of the
            scenario unused for longest are dropped.

    Raises:
        ConfigurationError: There is no such path.
    """

    def __init__(
        self,
        path: Literal["auto", "gram", "primal"] = "auto",
        *,
        compiled: bool | None = None,
        memory_bytes: int = SHELF_BYTES,
    ) -> None:
        if path not in PATHS:
            raise ConfigurationError(f"path: got {path!r}; allowed: {', '.join(PATHS)}")
        self._path: Literal["auto", "gram", "primal"] = path
        self._backend = _backend(compiled)
        self._shelf = ShareCache(memory_bytes)
        self._chosen: WeakKeyDictionary[Scenario, Path] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The path after "stacked-"; "-numpy" follows where the kernels are not compiled."""
        return f"stacked-{self._path}{self._backend.SUFFIX}"

    @property
    def memory_bytes(self) -> int:
        """What its Gram matrices and sparse data take at present."""
        return self._shelf.nbytes

    def path(self, scenario: Scenario) -> Path:
        """The path that this engine takes in `scenario`."""
        if self._path != "auto":
            return self._path
        if scenario not in self._chosen:
            self._chosen[scenario] = cheaper_path(scenario, compiled=not self._backend.SUFFIX)
        return self._chosen[scenario]

    def initial_model(self, scenario: Scenario) -> Model:
        """(F+1, C) zeros."""
        return initial_model(scenario)

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> list[Training]:
        """Train all jobs side by side; equal ones once. Losses are not computed.

        Raises:
            ConfigurationError: A job names no or unknown clients, or its start model does not fit the scenario, or
                training diverges.
        """
        running: dict[JobKey, _Running] = {}
        keys = []
        for job in jobs:
            cohort, start, key = checked(scenario, job)
            keys.append(key)
            if key not in running:
                running[key] = _begun(scenario, job, cohort, start)
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is told apart below
            self._train(scenario, list(running.values()))
        results = {key: finished(scenario, one.model, one.arrivals) for key, one in running.items()}
        return [results[key] for key in keys]

    def scores(self, scenario: Scenario, models: Sequence[Model]) -> Iterator[list[Scores]]:
        """All clients' test shares in one pass for many models."""
        ends = np.cumsum([len(labels) for labels in scenario.test_labels])[:-1]
        for scores in self._backend.all_scores(self._shelf.of(scenario), models):
            yield np.split(scores, ends)

    def losses(self, scenario: Scenario, model: Model) -> ClientLosses:
        """Each client's loss of `model` on its own training samples."""
        return linear_losses(scenario, model)

    def _train(self, scenario: Scenario, running: Sequence[_Running]) -> None:
        shares = self._shelf.of(scenario)
        trainer = self._backend.by_gram if self.path(scenario) == "gram" else self._backend.by_primal
        drawn: dict[tuple[_Order, int], NDArray[np.int32]] = {}
        for round_ in range(scenario.config.rounds_per_slot):
            if scenario.config.model.shuffle != "slot":
                drawn.clear()
            for client, share in enumerate(shares.clients):
                visitors = [one for one in running if _trains(one, client, round_)]
                if visitors:
                    _visit(trainer, share, visitors, client, _orders(share, visitors, client, round_, drawn))
            for one in running:
                sizes = scenario.sizes[list(one.cohort)]
                one.model = aggregate(one.uploads, sizes, one.arrivals[round_], one.model)


def _backend(compiled: bool | None) -> _Backend:
    package = "fedelect.federation.linear"
    if compiled is not False:
        try:
            return cast(_Backend, importlib.import_module(f"{package}.compiled"))
        except ImportError:
            if compiled:
                raise
    return cast(_Backend, importlib.import_module(f"{package}.without_numba"))


def _begun(scenario: Scenario, job: Job, cohort: Cohort, start: Model) -> _Running:
    arrivals = draw_arrivals(scenario, cohort, seed=job.seed, trial=job.trial, slot=job.slot)
    uploads: Any = np.zeros((len(cohort), *start.shape), dtype=start.dtype)
    return _Running(job=job, cohort=cohort, model=start, arrivals=arrivals, uploads=uploads)


def _trains(one: _Running, client: int, round_: int) -> bool:
    # An upload that will not arrive is not trained: nobody would see it.
    return client in one.cohort and bool(one.arrivals[round_, one.cohort.index(client)])


def _orders(
    share: Share,
    visitors: Sequence[_Running],
    client: int,
    round_: int,
    drawn: dict[tuple[_Order, int], NDArray[np.int32]],
) -> dict[_Order, NDArray[np.int32]]:
    """The batch orders of everybody who visits: (E, D), or (1, D) where one order serves all epochs."""
    settings = share.settings
    for one in visitors:
        if (one.order, client) not in drawn:
            seed, trial, slot = one.order
            orders = batch_orders(
                share.samples,
                settings.epochs if settings.shuffle == "epoch" else 1,
                seed=seed,
                trial=trial,
                slot=slot,
                round_=round_,
                client=client,
                shuffle=settings.shuffle,
            )
            drawn[one.order, client] = orders.astype(np.int32)
    return {one.order: drawn[one.order, client] for one in visitors}


def _visit(
    trainer: _Trainer,
    share: Share,
    visitors: Sequence[_Running],
    client: int,
    orders: dict[_Order, NDArray[np.int32]],
) -> None:
    places = {order: place for place, order in enumerate(orders)}
    follows = np.array([places[one.order] for one in visitors])
    local = trainer(share, np.stack([one.model for one in visitors]), np.stack(list(orders.values())), follows)
    for one, model in zip(visitors, local, strict=True):
        one.uploads[one.cohort.index(client)] = model
