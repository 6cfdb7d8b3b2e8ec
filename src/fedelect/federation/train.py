"""L rounds of FedAvg by a cohort with linear models: the reference that faster engines are compared with.

A job's result depends on the scenario and the job alone, bit for bit: batch orders and upload luck come from streams
named by (trial, slot, round, client), and jobs are trained one at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from fedelect.equations.aggregation import aggregate
from fedelect.equations.scores import accuracy_of, linear_scores
from fedelect.errors import ConfigurationError
from fedelect.federation.linear.model import LOSSES, LinearLoss, Model, Scores, gradient, mean_loss
from fedelect.federation.uploads import UploadSignals, make_upload, trains_locally
from fedelect.scenario import Scenario, draw_arrivals
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Floats, Ints, as_cohort

Shuffle = Literal["epoch", "round", "slot"]
"""How often a client shuffles its samples: `model.shuffle`."""

JobKey = tuple[Cohort, bytes, int, int, int, bool, bool]
"""Cohort, start model, seed, trial, slot, whether updates and contributions are asked for; the same for equal jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One slot of one trial to be trained.

    Attributes:
        cohort: The clients that train.
        start: (F+1, C) model to start from; None for the initial model.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: Number of the slot.
        updates: Whether to project what each member uploads; `Training.updates`.
        contributions: Whether to estimate what each member contributed; `Training.contributions`. Needs [validation].
    """

    cohort: Cohort
    start: NDArray[np.floating[Any]] | None = None
    seed: int
    trial: int = 0
    slot: int = 1
    updates: bool = False
    contributions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """The result of a job; the arrays are read only.

    Attributes:
        model: (F+1, C) the global model after the last round.
        arrivals: (L, K) whose upload arrived in each round, columns in order of client number.
        losses: (L, N) after each round the new global model's mean loss over each client's own training samples;
            None unless asked for.
        updates: (K, 64) random projection of the change that each member uploaded, summed over the rounds in which it
            arrived, in order of client number; nan for members of whom nothing arrived. None unless asked for.
        contributions: (K,) GTG-Shapley estimate of each member by the score on the server's validation samples, summed
            over rounds; nan for members of whom nothing arrived. None unless asked for.
    """

    model: Model
    arrivals: NDArray[np.bool_]
    losses: Floats | None = None
    updates: Floats | None = None
    contributions: Floats | None = None


class ClientLosses(NamedTuple):
    """Losses of one model.

    Attributes:
        mean: (N,) mean over each client's own training samples.
        rms: (N,) root of the mean of their squares.
    """

    mean: Floats
    rms: Floats

    def among(self, clients: Ints | None) -> "ClientLosses":
        """The losses of some clients alone, nan for the others; None for all."""
        if clients is None:
            return self
        kept = np.full((2, self.mean.size), np.nan)
        kept[:, clients] = self.mean[clients], self.rms[clients]
        return ClientLosses(*kept)


def initial_model(scenario: Scenario) -> Model:
    """(F+1, C) zeros in the scenario's precision: the model every cold start begins with."""
    return np.zeros((scenario.features + 1, scenario.classes), dtype=scenario.config.model.precision)


def train(scenario: Scenario, jobs: Sequence[Job], *, losses: bool = False) -> list[Training]:
    """Train each job; equal jobs are trained once and share their result.

    Args:
        scenario: The clients and their data.
        jobs: What to train; the results come in the same order.
        losses: Whether to compute the training loss after each round.

    Raises:
        ConfigurationError: A job names no or unknown clients, or its start model does not fit the scenario, or
            training diverges.
    """
    done: dict[JobKey, Training] = {}
    results = []
    for job in jobs:
        cohort, start, key = validate_job(scenario, job)
        if key not in done:
            with np.errstate(over="ignore", invalid="ignore"):  # `as_training` reports divergence
                done[key] = _train_one(scenario, cohort, start, job, losses=losses)
        results.append(done[key])
    return results


def validate_job(scenario: Scenario, job: Job) -> tuple[Cohort, Model, JobKey]:
    """Return the job's cohort in order, its start model in the scenario's precision, and its key.

    Raises:
        ConfigurationError: The job does not fit the scenario.
    """
    cohort = as_cohort(job.cohort, clients=scenario.clients)
    start = _start_model(scenario, job)
    return cohort, start, make_key(job, cohort, start)


def make_key(job: Job, cohort: Cohort, start: Model) -> JobKey:
    """Return what tells a job from others; cohort and start model as they are trained."""
    return cohort, start.tobytes(), job.seed, job.trial, job.slot, job.updates, job.contributions


def _start_model(scenario: Scenario, job: Job) -> Model:
    first = initial_model(scenario)
    if not job.cohort:
        raise ConfigurationError("cohort: got no clients; a job needs at least one")
    if job.start is None:
        return first
    if job.start.shape != first.shape or not np.isfinite(job.start).all():
        raise ConfigurationError(
            f"start: got a model of shape {job.start.shape}; the scenario needs finite numbers of shape {first.shape}"
        )
    return job.start.astype(first.dtype)


def _train_one(scenario: Scenario, cohort: Cohort, start: Model, job: Job, *, losses: bool) -> Training:
    config = scenario.config
    loss = LOSSES[config.model.kind]
    sizes = scenario.sizes[list(cohort)]
    arrivals = draw_arrivals(scenario, cohort, seed=job.seed, trial=job.trial, slot=job.slot)
    model = start
    round_losses = []
    signals = watch_uploads(scenario, job, cohort, lambda model: score_linear(scenario, model))
    for round_ in range(config.rounds_per_slot):
        # An upload that will not arrive is not trained.
        uploads = np.stack(
            [
                _upload(scenario, model, client, job, round_) if arrived else model
                for client, arrived in zip(cohort, arrivals[round_], strict=True)
            ]
        )
        signals.add(uploads, model, arrivals[round_], round_)
        model = aggregate(uploads, sizes, arrivals[round_], model)
        if losses:
            data = zip(scenario.train_inputs, scenario.train_labels, strict=True)
            round_losses.append([mean_loss(loss, model, inputs, labels) for inputs, labels in data])
    return as_training(scenario, model, arrivals, signals, losses=np.array(round_losses) if losses else None)


def watch_uploads(scenario: Scenario, job: Job, cohort: Cohort, score: Callable[[Model], float]) -> UploadSignals:
    """Return what collects the signals that `job` asks for; `score` scores a model on the validation samples.

    Raises:
        ConfigurationError: It asks for contributions, and the server holds no samples.
    """
    if job.contributions and not len(scenario.validation_labels):
        raise ConfigurationError(
            "validation: got none, but contributions are scored on samples that the server holds; allowed: a table "
            "[validation] in the scenario, such as share = 0.1"
        )
    return UploadSignals(
        scenario,
        cohort,
        score,
        updates=job.updates,
        contributions=job.contributions,
        name=(job.seed, job.trial, job.slot),
    )


def as_training(
    scenario: Scenario,
    model: Model,
    arrivals: NDArray[np.bool_],
    signals: UploadSignals,
    *,
    losses: Floats | None = None,
) -> Training:
    """Return the result of a job, read only.

    Raises:
        ConfigurationError: The training diverged.
    """
    if not np.isfinite(model).all():
        settings = scenario.config.model
        flaws = [kind for kind in ("free_riders", "flipped_updates", "scaled_updates") if kind in scenario.flaws]
        also = f", or weaker flaws of updates ({', '.join(flaws)})" if flaws else ""
        raise ConfigurationError(
            f"model.step: got {settings.step}, under which training leaves the range of "
            f"{settings.precision}; allowed: a smaller step{also}"
        )
    model.flags.writeable = arrivals.flags.writeable = False
    return Training(
        model=model,
        arrivals=arrivals,
        losses=losses,
        updates=signals.updates,
        contributions=signals.contributions,
    )


def _upload(scenario: Scenario, model: Model, client: int, job: Job, round_: int) -> Model:
    trained = _local_model(scenario, model, client, job, round_) if trains_locally(scenario, client) else model
    return make_upload(scenario, client, model, trained, seed=job.seed, trial=job.trial, slot=job.slot, round_=round_)


def _local_model(scenario: Scenario, model: Model, client: int, job: Job, round_: int) -> Model:
    settings = scenario.config.model
    orders = batch_orders(
        int(scenario.sizes[client]),
        settings.epochs,
        seed=job.seed,
        trial=job.trial,
        slot=job.slot,
        round_=round_,
        client=client,
        shuffle=settings.shuffle,
    )
    return train_locally(
        LOSSES[settings.kind],
        model,
        scenario.train_inputs[client],
        scenario.train_labels[client],
        orders,
        step=settings.step,
        batch=settings.batch,
    )


def batch_orders(
    samples: int, epochs: int, *, seed: int, trial: int, slot: int, round_: int, client: int, shuffle: Shuffle = "epoch"
) -> Ints:
    """Order in which a client visits its samples in each epoch of a round.

    It depends on these numbers only, never on who else trains, so selectors compared in a trial share it. The
    stream is ("training", trial, slot, round, client), without the round where one order serves the whole slot.

    Returns:
        (E, D) each row a permutation of 0 .. D-1; read only and all rows the same unless shuffled every epoch.
    """
    if shuffle == "slot":
        rng = stream(seed, "training", trial, slot, client)
    else:
        rng = stream(seed, "training", trial, slot, round_, client)
    if shuffle == "epoch":
        return np.stack([rng.permutation(samples) for _ in range(epochs)])
    return np.broadcast_to(rng.permutation(samples), (epochs, samples))


def train_locally(
    loss: LinearLoss, model: Model, inputs: Scores, labels: Ints, orders: Ints, *, step: float, batch: int
) -> Model:
    """Minibatch SGD through the samples in the given orders; the last batch of an epoch may be shorter.

    Args:
        loss: Which loss.
        model: (F+1, C) to start from; not changed.
        inputs: (D, F).
        labels: (D,).
        orders: (E, D) from `batch_orders`.
        step: Step size.
        batch: B; a gradient is the mean over its batch, whatever the batch's length.

    Returns:
        (F+1, C).
    """
    targets = loss.targets(labels, model.shape[1], model.dtype)
    for order in orders:
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            model = model - step * gradient(loss, model, inputs[chosen], targets[chosen])
    return model


def summarise_losses(clients: int, sample_losses: Mapping[int, Floats]) -> ClientLosses:
    """Reduce the losses (D_n,) of clients' samples, by client, to mean and root mean square; nan for the others."""
    mean, rms = np.full((2, clients), np.nan)
    for client, own in sample_losses.items():
        mean[client], rms[client] = own.mean(), np.sqrt(np.mean(own**2))
    return ClientLosses(mean, rms)


def linear_losses(scenario: Scenario, model: Model, clients: Ints | None = None) -> ClientLosses:
    """Losses of a linear model (F+1, C): the hinge or softmax loss that it is trained with.

    Args:
        scenario: The clients and their data.
        model: The model.
        clients: Whose losses to compute; None for all.
    """
    loss = LOSSES[scenario.config.model.kind]
    samples = {}
    for client in range(scenario.clients) if clients is None else clients.tolist():
        targets = loss.targets(scenario.train_labels[client], model.shape[1], model.dtype)
        scores = linear_scores(model, scenario.train_inputs[client])
        samples[client] = loss.values(scores, targets).astype(np.float64)
    return summarise_losses(scenario.clients, samples)


def linear_client_accuracies(scenario: Scenario, model: Model) -> Floats:
    """(N,) accuracy of a linear model (F+1, C) on each client's own clean test share; nan where that is empty."""
    shares = zip(scenario.clean_test_inputs, scenario.clean_test_labels, strict=True)
    return np.array([accuracy_of(linear_scores(model, inputs), labels) for inputs, labels in shares])


def score_linear(scenario: Scenario, model: Model) -> float:
    """Score of a linear model (F+1, C) on the server's validation samples, as [validation] says."""
    config, labels = scenario.config.validation, scenario.validation_labels
    assert config is not UNSET
    scores = linear_scores(model, scenario.validation_inputs)
    if config.score == "accuracy":
        return accuracy_of(scores, labels)
    loss = LOSSES[scenario.config.model.kind]
    return -float(loss.values(scores, loss.targets(labels, model.shape[1], model.dtype)).mean(dtype=np.float64))
