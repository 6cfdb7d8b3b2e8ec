"""Train linear models, all jobs of a batch together.

In each round the stacked engine goes from client to client. The jobs whose cohort has the client, and whose upload will
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
from fedelect.equations.scores import accuracy_of
from fedelect.errors import ConfigurationError
from fedelect.federation.linear.layout import LANES, NARROW, strips
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.linear.shares import CACHE_BYTES, Share, ShareCache, Shares
from fedelect.federation.train import (
    ClientLosses,
    Job,
    JobKey,
    Training,
    as_training,
    batch_orders,
    initial_model,
    linear_client_accuracies,
    linear_losses,
    score_linear,
    validate_job,
    watch_uploads,
)
from fedelect.federation.uploads import UploadSignals, make_upload, trains_locally
from fedelect.scenario import Scenario, draw_arrivals
from fedelect.vocabulary import Cohort, Floats, Ints

Path = Literal["gram", "primal"]

GRAM_BYTES = 2**29
"""Most memory that the Gram matrices of all clients of a scenario may take on the path "auto": 512 MiB."""

# Constants of the cost of a path, measured on MNIST; see `cheaper_path`.
_ACTIVE = 0.25  # share of the samples inside the margin, over a slot of the paper's scenario
_FLIPS = 0.02  # share of the margins that flip from one epoch to the next
_DENSE = 0.6  # cost of a row when all rows of a batch are added, against a row that is picked
_ADVANCE = 6.0  # cost of moving a vector of scores on and testing its margins, once for each batch
_SPARSE = 4.0  # cost of a feature that is not zero and a pack of classes
_VECTOR = 8  # numbers in a vector

_Order = tuple[int, int, int]  # (seed, trial, slot): jobs that have these in common share their batch orders
_Trainer = Callable[[Share, Model, NDArray[np.int32], Ints], Model]


class _Backend(Protocol):
    """Interface of the modules `compiled` and `without_numba`."""

    SUFFIX: str
    train_by_gram: _Trainer
    train_by_primal: _Trainer
    score_tests: Callable[[Shares, Sequence[Model]], Iterator[Scores]]
    score_clients: Callable[[Shares, Model, Ints], list[Scores]]
    score_global_tests: Callable[[Shares, Sequence[Model]], Iterator[Scores]]


@dataclass(slots=True, eq=False)
class _Running:
    """A job in progress: the global model, and the clients' uploads (K, F+1, C) of the round."""

    job: Job
    cohort: Cohort
    model: Model
    arrivals: NDArray[np.bool_]
    uploads: Model
    signals: UploadSignals

    @property
    def order(self) -> _Order:
        return self.job.seed, self.job.trial, self.job.slot


@final
class StackedEngine:
    """Trains linear models, many jobs at a time; see the module's docstring.

    Args:
        path: "gram", "primal", or "auto": the one that is cheaper for the scenario, whatever the jobs.
        compiled: Whether to use the compiled kernels, which need numba; None: if numba is there.
        memory_bytes: Most memory for Gram matrices and sparse data of all scenarios together; beyond it, those of the
            scenario unused for longest are dropped.

    Raises:
        ConfigurationError: There is no such path.
    """

    def __init__(
        self,
        path: Literal["auto", "gram", "primal"] = "auto",
        *,
        compiled: bool | None = None,
        memory_bytes: int = CACHE_BYTES,
    ) -> None:
        if path not in ("auto", "gram", "primal"):
            raise ConfigurationError(f"path: got {path!r}; allowed: auto, gram, primal")
        self._path: Literal["auto", "gram", "primal"] = path
        self._backend = _backend(compiled)
        self._cache = ShareCache(memory_bytes)
        self._chosen: WeakKeyDictionary[Scenario, Path] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The path after "stacked-"; "-numpy" follows where the kernels are not compiled."""
        return f"stacked-{self._path}{self._backend.SUFFIX}"

    @property
    def memory_bytes(self) -> int:
        """Memory of its Gram matrices and sparse data at present."""
        return self._cache.nbytes

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
            cohort, start, key = validate_job(scenario, job)
            keys.append(key)
            if key not in running:
                running[key] = _begin(scenario, job, cohort, start)
        with np.errstate(over="ignore", invalid="ignore"):  # `as_training` reports divergence
            self._train(scenario, list(running.values()))
        results = {key: as_training(scenario, one.model, one.arrivals, one.signals) for key, one in running.items()}
        return [results[key] for key in keys]

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> Iterator[list[Scores]]:
        """All clients' test shares in one pass for many models; where some are asked, theirs for each model."""
        if clients is not None:
            for model, asked in zip(models, clients, strict=True):
                yield self._backend.score_clients(self._cache.of(scenario), model, asked)
            return
        ends = np.cumsum([len(labels) for labels in scenario.test_labels])[:-1]
        for scores in self._backend.score_tests(self._cache.of(scenario), models):
            yield np.split(scores, ends)

    def losses(self, scenario: Scenario, model: Model, *, clients: Ints | None = None) -> ClientLosses:
        """Each client's loss of `model` on its own training samples."""
        return linear_losses(scenario, model, clients)

    def accuracies(self, scenario: Scenario, models: Sequence[Model]) -> list[float]:
        """Accuracy of each model on the clean test set of all clients, in one pass for many models."""
        scored = self._backend.score_global_tests(self._cache.of(scenario), models)
        return [accuracy_of(scores, scenario.global_test_labels) for scores in scored]

    def client_accuracies(self, scenario: Scenario, model: Model) -> Floats:
        """(N,) accuracy of the model on each client's own clean test share."""
        return linear_client_accuracies(scenario, model)

    def _train(self, scenario: Scenario, running: Sequence[_Running]) -> None:
        shares = self._cache.of(scenario)
        elected = sorted({client for one in running for client in one.cohort})
        trainer = self._backend.train_by_gram if self.path(scenario) == "gram" else self._backend.train_by_primal
        drawn: dict[tuple[_Order, int], NDArray[np.int32]] = {}
        for round_ in range(scenario.config.rounds_per_slot):
            if scenario.config.model.shuffle != "slot":
                drawn.clear()
            for client in elected:
                share = shares.clients[client]
                running_here = [one for one in running if _uploads(one, client, round_)]
                if running_here and trains_locally(scenario, client):
                    orders = _draw_orders(share, running_here, client, round_, drawn)
                    local: Sequence[Model] = list(_train_at_client(trainer, share, running_here, orders))
                else:
                    local = [one.model for one in running_here]
                for one, trained in zip(running_here, local, strict=True):
                    seed, trial, slot = one.order
                    upload = make_upload(
                        scenario, client, one.model, trained, seed=seed, trial=trial, slot=slot, round_=round_
                    )
                    one.uploads[one.cohort.index(client)] = upload
            for one in running:
                sizes = scenario.sizes[list(one.cohort)]
                one.signals.add(one.uploads, one.model, one.arrivals[round_], round_)
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


def _begin(scenario: Scenario, job: Job, cohort: Cohort, start: Model) -> _Running:
    arrivals = draw_arrivals(scenario, cohort, seed=job.seed, trial=job.trial, slot=job.slot)
    uploads: Any = np.zeros((len(cohort), *start.shape), dtype=start.dtype)
    signals = watch_uploads(scenario, job, cohort, lambda model: score_linear(scenario, model))
    return _Running(job=job, cohort=cohort, model=start, arrivals=arrivals, uploads=uploads, signals=signals)


def _uploads(one: _Running, client: int, round_: int) -> bool:
    # An upload that will not arrive is not trained.
    return client in one.cohort and bool(one.arrivals[round_, one.cohort.index(client)])


def _draw_orders(
    share: Share,
    running_here: Sequence[_Running],
    client: int,
    round_: int,
    drawn: dict[tuple[_Order, int], NDArray[np.int32]],
) -> dict[_Order, NDArray[np.int32]]:
    """Batch orders of the jobs: (E, D) each, or (1, D) where one order serves all epochs."""
    settings = share.settings
    for one in running_here:
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
    return {one.order: drawn[one.order, client] for one in running_here}


def _train_at_client(
    trainer: _Trainer,
    share: Share,
    running_here: Sequence[_Running],
    orders: dict[_Order, NDArray[np.int32]],
) -> Model:
    index = {order: number for number, order in enumerate(orders)}
    follows = np.array([index[one.order] for one in running_here])
    return trainer(share, np.stack([one.model for one in running_here]), np.stack(list(orders.values())), follows)


def cheaper_path(scenario: Scenario, *, compiled: bool) -> Path:
    """Path that "auto" takes: the cheaper one by the scenario's sizes alone, never by the jobs.

    The cost of a path is estimated in vector operations for each sample visited. A step in score space changes all D
    scores of a column by the active samples' rows; a step on the model touches the non-zero features of a sample
    twice. On MNIST the paths break even at about D = 1400 if samples are reshuffled every epoch, at about 600 for
    softmax.

    Args:
        scenario: The clients and their data.
        compiled: Whether the compiled kernels are used, which leave out zeros.
    """
    samples = scenario.sizes.astype(np.float64)
    wide = np.array([strips(size) * LANES for size in scenario.sizes.tolist()], dtype=np.float64)
    if (wide * samples).sum() * np.dtype(scenario.config.model.precision).itemsize > GRAM_BYTES:
        return "primal"
    gram = samples * _row_cost(scenario, compiled=compiled) * wide * scenario.classes / _VECTOR
    primal = samples.sum() * _feature_cost(scenario, compiled=compiled)
    return "gram" if gram.sum() <= primal else "primal"


def _row_cost(scenario: Scenario, *, compiled: bool) -> Floats:
    """(N,) cost of a sample in score space, in additions of its row of the Gram matrix."""
    settings = scenario.config.model
    batch = np.minimum(settings.batch, scenario.sizes)
    if not compiled:
        return np.ones(scenario.clients)
    if settings.kind == "softmax":
        return np.full(scenario.clients, _DENSE)
    active = _ACTIVE if settings.shuffle == "epoch" else _ACTIVE / settings.epochs + _FLIPS
    return active + _ADVANCE / batch


def _feature_cost(scenario: Scenario, *, compiled: bool) -> float:
    """Cost of a sample on the model itself."""
    if not compiled:
        return 2.0 * scenario.features * scenario.classes / _VECTOR
    entries = sum(int(np.count_nonzero(inputs)) for inputs in scenario.train_inputs)
    packs = -(-scenario.classes // NARROW)
    return _SPARSE * packs * (entries / int(scenario.sizes.sum()) + 1.0)
