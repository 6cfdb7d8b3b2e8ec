"""Any PyTorch module as the model.

L rounds of FedAvg, eq. `ave01`, with lost uploads, as in `train`; a model is a flat array (P,). Local training is
minibatch SGD or Adam with the reference's batch orders; as in FedAvg, the optimiser's state starts fresh in each round
at each client.

Two paths; on both a job's result is bit for bit the same whatever other jobs are in the call. "torch-loop" trains one
client after the other by the module and autograd. "torch-layers" is faster where it knows the module's layers, and the
same loop elsewhere (see `layers`); the two agree to rounding, not to the bit.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, final
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import UNSET

from fedelect.equations.aggregation import aggregate
from fedelect.equations.scores import accuracy_of
from fedelect.errors import ConfigurationError, MissingExtraError
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.train import (
    ClientLosses,
    Job,
    JobKey,
    Training,
    as_training,
    make_key,
    summarise_losses,
    watch_uploads,
)
from fedelect.federation.uploads import make_upload, trains_locally
from fedelect.scenario import ModelConfig, Scenario, draw_arrivals
from fedelect.vocabulary import Floats, Ints, as_cohort

try:
    import torch
    from torch import Tensor
except ImportError as missing:
    raise MissingExtraError("models by PyTorch", "torch") from missing

from fedelect.federation.torch.dense import ROWS, DenseStack
from fedelect.federation.torch.layers import hasten, repeats
from fedelect.federation.torch.local_training import plan_local_training, train_one_by_one
from fedelect.federation.torch.network import Network, build_network, keep_freed_memory, quiet_torch
from fedelect.federation.torch.shares import PRODUCTS_LIMIT, DataTensors

SCORED_AT_ONCE = 512
"""Test inputs that go through the module at a time, on the path "loop"."""

ROWS_AT_ONCE, IMAGES_AT_ONCE = 1024, 64
"""The same on the path "layers", for modules without and with convolutions, whose maps should stay in the cache."""

TrainingPath = Literal["loop", "layers"]
_Key = tuple[ModelConfig, int, int, int]


@final
class TorchEngine:
    """Trains PyTorch modules; see the module's docstring.

    Args:
        path: "loop" or "layers".
        device: "auto" (CUDA if there, else the CPU) or a device by its PyTorch name.

    Raises:
        ConfigurationError: There is no such path or device.
    """

    def __init__(self, path: TrainingPath = "layers", device: str = "auto") -> None:
        if path not in ("loop", "layers"):
            raise ConfigurationError(f'path: got {path!r}; allowed: "loop" or "layers"')
        self._path, self._device_name = path, device
        self._device = _device(device)
        self._networks: dict[_Key, tuple[Network, Model]] = {}
        self._stacks: dict[_Key, DenseStack | None] = {}
        self._data: WeakKeyDictionary[Scenario, DataTensors] = WeakKeyDictionary()
        self._repeats: WeakKeyDictionary[Scenario, bool] = WeakKeyDictionary()
        self._last: DataTensors | None = None
        keep_freed_memory()

    def __reduce__(self) -> tuple[type["TorchEngine"], tuple[TrainingPath, str]]:
        return TorchEngine, (self._path, self._device_name)  # what it has built is built again elsewhere

    @property
    def name(self) -> str:
        """Either "torch-loop" or "torch-layers", with the kind of device appended if it is not the CPU."""
        return f"torch-{self._path}" + ("" if self._device.type == "cpu" else f"-{self._device.type}")

    def initial_model(self, scenario: Scenario) -> Model:
        """(P,) the module as its factory makes it, drawn from a stream of the scenario's seed; see `build_network`."""
        return self._network(scenario)[1].copy()

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> list[Training]:
        """Train every job; equal jobs are trained once and share their result.

        Raises:
            ConfigurationError: A job names no or unknown clients, or its start model does not fit the scenario, or
                training diverges or fails.
        """
        first = self.initial_model(scenario)
        distinct: dict[JobKey, tuple[Job, Model]] = {}
        keys = []
        for job in jobs:
            cohort = as_cohort(job.cohort, clients=scenario.clients)
            start = _start(job, first)
            keys.append(make_key(job, cohort, start))
            distinct.setdefault(keys[-1], (job, start))
        with quiet_torch(self._device):
            work = list(distinct.values())
            parts = [work[start : start + ROWS] for start in range(0, len(work), ROWS)]  # bounds the uploads in memory
            trained = [result for part in parts for result in self._train_distinct(scenario, part)]
        done = dict(zip(distinct, trained, strict=True))
        return [done[key] for key in keys]

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> Iterator[list[Scores]]:
        """Scores of the module in evaluation mode."""
        data, first, stack = self._tensors(scenario), self._network(scenario)[1], self._stacks.get(_key(scenario))
        for start in range(0, len(models), ROWS):
            some = models[start : start + ROWS]
            if stack is not None and clients is None and len(data.test_inputs):
                with quiet_torch(self._device), torch.inference_mode():
                    scored = stack.score([_fit_to(model, first) for model in some], data.test_inputs, ROWS_AT_ONCE)
                yield from (_split(scores, data.test_sizes) for scores in scored)
                continue
            for index, model in enumerate(some, start):
                inputs, sizes = data.test_shares(None if clients is None else clients[index].tolist())
                yield _split(self._score(scenario, model, inputs), sizes)

    def accuracies(self, scenario: Scenario, models: Sequence[Model]) -> list[float]:
        """Accuracy of each model on the clean test set of all clients."""
        inputs, labels = self._tensors(scenario).global_test_inputs, scenario.global_test_labels
        return [accuracy_of(self._score(scenario, model, inputs).cpu().numpy(), labels) for model in models]

    def client_accuracies(self, scenario: Scenario, model: Model) -> Floats:
        """(N,) accuracy of the model on each client's own clean test share."""
        inputs = self._tensors(scenario).as_inputs(np.concatenate(scenario.clean_test_inputs))
        scores = self._score(scenario, model, inputs).cpu().numpy()
        ends = np.cumsum([len(labels) for labels in scenario.clean_test_labels])[:-1]
        shares = zip(np.split(scores, ends), scenario.clean_test_labels, strict=True)
        return np.array([accuracy_of(own, labels) for own, labels in shares])

    def losses(self, scenario: Scenario, model: Model, *, clients: Ints | None = None) -> ClientLosses:
        """Each client's loss of `model` on its own training samples, in evaluation mode.

        A user's own loss is called for each sample alone, since it returns one number.
        """
        network, asked = self._network(scenario)[0], None if clients is None else clients.tolist()
        inputs, labels, sizes = self._tensors(scenario).train_shares(asked)
        scores = self._score(scenario, model, inputs)
        with quiet_torch(self._device), torch.inference_mode():
            losses = network.losses(scores, labels).double().cpu().numpy()
        ends = np.cumsum([0, *sizes]).tolist()
        own = (losses[start:end] for start, end in pairwise(ends))
        return summarise_losses(
            scenario.clients, dict(zip(range(scenario.clients) if asked is None else asked, own, strict=True))
        )

    def _train_distinct(self, scenario: Scenario, jobs: list[tuple[Job, Model]]) -> list[Training]:
        network, _ = self._network(scenario)
        data, stack = self._tensors(scenario), self._stack(scenario)
        cohorts = [as_cohort(job.cohort, clients=scenario.clients) for job, _ in jobs]
        arrivals = [
            draw_arrivals(scenario, cohort, seed=job.seed, trial=job.trial, slot=job.slot)
            for cohort, (job, _) in zip(cohorts, jobs, strict=True)
        ]
        models = [start for _, start in jobs]
        signals = [
            watch_uploads(scenario, job, cohort, lambda model: self._validate(scenario, model))
            for cohort, (job, _) in zip(cohorts, jobs, strict=True)
        ]
        for round_ in range(scenario.config.rounds_per_slot):
            # An upload that will not arrive is not trained.
            trainings = [
                plan_local_training(scenario, jobs[index][0], client, round_, models[index])
                for index, cohort in enumerate(cohorts)
                for client, arrived in zip(cohort, arrivals[index][round_], strict=True)
                if arrived and trains_locally(scenario, client)
            ]
            trained = iter(
                train_one_by_one(network, scenario.config.model, data, trainings)
                if stack is None
                else stack.train(scenario.config.model, data, trainings)
            )
            for index, cohort in enumerate(cohorts):
                job, start, arrived = jobs[index][0], models[index], arrivals[index][round_]
                received = [
                    make_upload(
                        scenario,
                        client,
                        start,
                        next(trained) if trains_locally(scenario, client) else start,
                        seed=job.seed,
                        trial=job.trial,
                        slot=job.slot,
                        round_=round_,
                    )
                    if there
                    else start
                    for client, there in zip(cohort, arrived, strict=True)
                ]
                uploads = np.stack(received)
                signals[index].add(uploads, start, arrived, round_)
                models[index] = aggregate(uploads, scenario.sizes[list(cohort)], arrived, start)
        return [
            as_training(scenario, model, arrived, watched)
            for model, arrived, watched in zip(models, arrivals, signals, strict=True)
        ]

    def _validate(self, scenario: Scenario, model: Model) -> float:
        """Score of a model on the server's validation samples, as [validation] says."""
        config, labels = scenario.config.validation, scenario.validation_labels
        assert config is not UNSET
        scores = self._score(scenario, model, self._tensors(scenario).validation_inputs)
        if config.score == "accuracy":
            return accuracy_of(scores.cpu().numpy(), labels)
        with quiet_torch(self._device), torch.no_grad():
            return -float(self._network(scenario)[0].loss(scores, torch.tensor(labels, device=self._device)))

    def _score(self, scenario: Scenario, model: Model, inputs: Tensor) -> Tensor:
        """(D, C) scores of inputs as `DataTensors` holds them."""
        network, first = self._network(scenario)
        if not len(inputs):
            return torch.empty((0, scenario.classes))
        at_once = SCORED_AT_ONCE
        if self._path == "layers":
            at_once = IMAGES_AT_ONCE if network.convolves else ROWS_AT_ONCE
        with quiet_torch(self._device), torch.inference_mode():
            network.load(_fit_to(model, first))
            network.module.eval()
            return torch.cat([network.body(piece) for piece in torch.split(inputs, at_once)])

    def _network(self, scenario: Scenario) -> tuple[Network, Model]:
        """The network of the scenario and its initial model, built once."""
        key = _key(scenario)
        if key not in self._networks:
            config, seed, features, classes = key
            network = build_network(config, seed=seed, features=features, classes=classes, device=self._device)
            if self._path == "layers":
                with quiet_torch(self._device):
                    self._stacks[key] = hasten(network, config, features, classes)
            self._networks[key] = (network, network.read())
        return self._networks[key]

    def _stack(self, scenario: Scenario) -> DenseStack | None:
        """What trains the scenario's models in stacks, if they can be."""
        network, _ = self._network(scenario)
        stack = self._stacks.get(key := _key(scenario))
        if stack is None:
            return None
        if scenario not in self._repeats:
            self._repeats[scenario] = repeats(stack, network, key[0], self._tensors(scenario), *key[2:])
        return stack if self._repeats[scenario] else None

    def _tensors(self, scenario: Scenario) -> DataTensors:
        """The scenario's data as tensors, kept as long as the scenario is: trials take turns, each with its own."""
        if scenario not in self._data:
            with quiet_torch(self._device):
                self._data[scenario] = DataTensors(scenario, self._network(scenario)[0])
        data, last = self._data[scenario], self._last
        held = sum(one.products_bytes for one in self._data.values())
        if last is not None and last is not data and held > PRODUCTS_LIMIT:
            last.forget_products()
        self._last = data
        return data


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.zeros(1, device=name).device  # "cuda" becomes the current one, such as "cuda:0"
    except (RuntimeError, AssertionError) as error:
        raise ConfigurationError(
            f'device: got {name!r}, which cannot be used: {error}; allowed: "auto", "cpu" or "cuda" where there is one'
        ) from error


def _key(scenario: Scenario) -> _Key:
    return scenario.config.model, scenario.config.seed, scenario.features, scenario.classes


def _start(job: Job, first: Model) -> Model:
    if not job.cohort:
        raise ConfigurationError("cohort: got no clients; a job needs at least one")
    return first if job.start is None else _fit_to(job.start, first)


def _split(scores: Tensor, sizes: Sequence[int]) -> list[Scores]:
    """Scores (sum of sizes, C) of each client alone."""
    whole, ends = scores.cpu().numpy(), np.cumsum([0, *sizes]).tolist()
    return [whole[start:end] for start, end in pairwise(ends)]


def _fit_to(model: Model, first: Model) -> Model:
    if model.shape != first.shape or not np.isfinite(model).all():
        raise ConfigurationError(
            f"start: got a model of shape {model.shape}; the scenario needs finite numbers of shape {first.shape}"
        )
    return model.astype(first.dtype)
