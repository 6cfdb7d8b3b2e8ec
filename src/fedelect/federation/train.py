"""L rounds of FedAvg by a cohort: the plain reference loop behind the seam `train(scenario, jobs)`.

A job's result depends on the scenario and the job alone, bit for bit: batch orders and upload luck come from streams
named by (trial, slot, round, client), and jobs are trained one at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.aggregation import aggregate
from fedelect.errors import ConfigurationError
from fedelect.federation.linear.model import LOSSES, Model, mean_loss
from fedelect.federation.local_training import batch_orders, train_locally
from fedelect.scenario import Scenario, draw_arrivals
from fedelect.vocabulary import Cohort, Floats, as_cohort


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One slot of one trial to be trained.

    Attributes:
        cohort: The clients that train.
        start: (F+1, C) model to start from; None for the initial model.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: Number of the slot.
    """

    cohort: Cohort
    start: NDArray[np.floating[Any]] | None = None
    seed: int
    trial: int = 0
    slot: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """What came of a job; the arrays are read only.

    Attributes:
        model: (F+1, C) the global model after the last round.
        arrivals: (L, K) whose upload arrived in each round, columns in order of client number.
        losses: (L, N) after each round the new global model's mean loss over each client's own training samples;
            None unless asked for.
    """

    model: Model
    arrivals: NDArray[np.bool_]
    losses: Floats | None = None


def initial_model(scenario: Scenario) -> Model:
    """(F+1, C) zeros in the scenario's precision: the model every cold start begins with."""
    return np.zeros((scenario.features + 1, scenario.classes), dtype=scenario.config.model.precision)


def train(scenario: Scenario, jobs: Sequence[Job], *, losses: bool = False) -> list[Training]:
    """Train each job; equal jobs are trained once and share their result.

    Args:
        scenario: The world.
        jobs: What to train; the results come in the same order.
        losses: Whether to compute the training loss after each round.

    Raises:
        ConfigurationError: A job names no or unknown clients, or its start model does not fit the scenario, or
            training diverges.
    """
    done: dict[JobKey, Training] = {}
    results = []
    for job in jobs:
        cohort, start, key = checked(scenario, job)
        if key not in done:
            with np.errstate(over="ignore", invalid="ignore"):  # divergence is told apart below
                done[key] = _train_one(scenario, cohort, start, job, losses=losses)
        results.append(done[key])
    return results


JobKey = tuple[Cohort, bytes, int, int, int]
"""What jobs that are equal have in common: cohort, start model, seed, trial, slot."""


def checked(scenario: Scenario, job: Job) -> tuple[Cohort, Model, JobKey]:
    """The job's cohort in order, its start model in the scenario's precision, and what it is known by.

    Raises:
        ConfigurationError: The job does not fit the scenario.
    """
    cohort = as_cohort(job.cohort, clients=scenario.clients)
    start = _start_model(scenario, job)
    return cohort, start, (cohort, start.tobytes(), job.seed, job.trial, job.slot)


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
    for round_ in range(config.rounds_per_slot):
        # An upload that will not arrive is not trained: nobody would see it.
        uploads = np.stack(
            [
                _local_model(scenario, model, client, job, round_) if arrived else model
                for client, arrived in zip(cohort, arrivals[round_], strict=True)
            ]
        )
        model = aggregate(uploads, sizes, arrivals[round_], model)
        if losses:
            data = zip(scenario.train_inputs, scenario.train_labels, strict=True)
            round_losses.append([mean_loss(loss, model, inputs, labels) for inputs, labels in data])
    return finished(scenario, model, arrivals, np.array(round_losses) if losses else None)


def finished(scenario: Scenario, model: Model, arrivals: NDArray[np.bool_], losses: Floats | None = None) -> Training:
    """What came of a job, made read only.

    Raises:
        ConfigurationError: The training diverged.
    """
    if not np.isfinite(model).all():
        settings = scenario.config.model
        raise ConfigurationError(
            f"model.step: got {settings.step}, under which training leaves the range of "
            f"{settings.precision}; allowed: a smaller step"
        )
    model.flags.writeable = arrivals.flags.writeable = False
    return Training(model=model, arrivals=arrivals, losses=losses)


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
