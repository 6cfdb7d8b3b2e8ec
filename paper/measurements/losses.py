"""Figure `1_2` (a): the training loss after each round, with different numbers of randomly selected clients."""

import functools

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.federation import Job, train
from fedelect.scenario import Dataset, ScenarioConfig, build_scenario
from fedelect.seeds import derive
from fedelect.selectors import RandomCohort
from fedelect.vocabulary import Cohort, Floats, Ints
from paper.catalogue import BUDGETS, TRIALS
from paper.measurements.context import Context
from paper.measurements.parts import MeasurementParts
from paper.series import World

SETTINGS = {"cohort sizes": BUDGETS, "trials": TRIALS}
"""What the measurement depends on besides the scenario."""

TOGETHER = 10
"""Trials in one part of the measurement."""


class RoundLosses(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mean hinge loss of the new global model after each round of a slot.

    Attributes:
        objective: Mean over all N clients of the loss on the client's own training samples: what federated learning
            minimises, by the paper's definition.
        selected: Mean over all training samples of the clients selected.
    """

    objective: list[float]
    selected: list[float]


class Losses(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Training losses in the first slot.

    Attributes:
        losses: By number of clients, those of each trial.
    """

    losses: dict[int, list[RoundLosses]]


def measure_losses(context: Context, parts: MeasurementParts) -> Losses:
    """Train one slot of each trial with random cohorts of each size, by the plain loop, which reports losses."""
    trials = min(TRIALS, context.preset.trials or TRIALS)
    store = context.store
    sizes = [budget for budget in BUDGETS if budget <= store.base.clients]
    requests = {
        f"{budget} clients, trials from {first}": (
            World(budget=budget).config(store.base),
            list(range(first, min(first + TOGETHER, trials))),
        )
        for budget in sizes
        for first in range(0, trials, TOGETHER)
    }
    make = functools.partial(_losses, dataset=context.dataset, seed=store.seed)
    made = parts.compute(list[RoundLosses], make, requests)
    losses: dict[int, list[RoundLosses]] = {budget: [] for budget in sizes}
    for name, (config, _) in requests.items():
        losses[config.budget] += made[name]
    return Losses(losses=losses)


def _losses(config: ScenarioConfig, trials: list[int], *, dataset: Dataset, seed: int) -> list[RoundLosses]:
    """The losses of each trial."""
    world = build_scenario(config, dataset)
    results = []
    with threadpool_limits(limits=1, user_api="blas"):
        for trial in trials:
            chosen = RandomCohort(clients=config.clients, budget=config.budget, seed=derive(seed, "selection", trial))
            cohort = chosen.ask().cohort
            (training,) = train(world, [Job(cohort=cohort, seed=seed, trial=trial, slot=1)], losses=True)
            assert training.losses is not None
            results.append(round_losses(training.losses, cohort, world.sizes))
    return results


def round_losses(losses: Floats, cohort: Cohort, sizes: Ints) -> RoundLosses:
    """The two means of each round, to six decimals.

    Args:
        losses: (L, N) mean loss on each client's samples after each round.
        cohort: Who trained.
        sizes: (N,) how many samples each client has.
    """
    members = list(cohort)
    objective, selected = losses.mean(axis=1), np.average(losses[:, members], axis=1, weights=sizes[members])
    return RoundLosses(objective=objective.round(6).tolist(), selected=selected.round(6).tolist())
