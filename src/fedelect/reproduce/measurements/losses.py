"""Figure `1_2` (a): the training loss after each round, with different numbers of randomly selected clients."""

import functools

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.federation import Job, train
from fedelect.reproduce.catalogue import BUDGETS, TRIALS
from fedelect.reproduce.measurements.context import Context
from fedelect.reproduce.measurements.parts import Parts
from fedelect.reproduce.series import World
from fedelect.scenario import Dataset, ScenarioConfig, build_scenario
from fedelect.seeds import derive
from fedelect.selectors import RandomCohort

TOGETHER = 10
"""Trials in one part of the measurement."""


class Losses(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Training loss in the first slot.

    Attributes:
        losses: By number of clients, and in it for each trial and round, the new global model's mean hinge loss over
            all training samples of the clients selected.
    """

    losses: dict[int, list[list[float]]]


def measure_losses(context: Context, parts: Parts) -> Losses:
    """Train one slot of each trial with random cohorts of each size, by the plain loop, which reports losses."""
    trials = min(TRIALS, context.preset.trials or TRIALS)
    library = context.library
    sizes = [budget for budget in BUDGETS if budget <= library.base.clients]
    requests = {
        f"{budget} clients, trials from {first}": (
            World(budget=budget).config(library.base),
            list(range(first, min(first + TOGETHER, trials))),
        )
        for budget in sizes
        for first in range(0, trials, TOGETHER)
    }
    make = functools.partial(_losses, dataset=context.dataset, seed=library.seed)
    made = parts.made(list[list[float]], make, requests)
    losses: dict[int, list[list[float]]] = {budget: [] for budget in sizes}
    for name, (config, _) in requests.items():
        losses[config.budget] += made[name]
    return Losses(losses=losses)


def _losses(config: ScenarioConfig, trials: list[int], *, dataset: Dataset, seed: int) -> list[list[float]]:
    """One list for each trial: the loss after each round."""
    world = build_scenario(config, dataset)
    results: list[list[float]] = []
    with threadpool_limits(limits=1, user_api="blas"):
        for trial in trials:
            chosen = RandomCohort(clients=config.clients, budget=config.budget, seed=derive(seed, "selection", trial))
            job = Job(cohort=chosen.ask().cohort, seed=seed, trial=trial, slot=1)
            (training,) = train(world, [job], losses=True)
            assert training.losses is not None
            results.append(np.round(training.losses, 6).tolist())
    return results
