"""Figure `1_2` (a): the training loss after each round, with different numbers of randomly selected clients."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.federation import Job, train
from fedelect.reproduce.catalogue import BUDGETS, TRIALS
from fedelect.reproduce.measurements.context import Context
from fedelect.reproduce.series import World
from fedelect.scenario import Dataset, ScenarioConfig, build_scenario
from fedelect.seeds import derive
from fedelect.selectors import RandomCohort


class Losses(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Training loss in the first slot.

    Attributes:
        losses: By number of clients, and in it for each trial and round, the new global model's mean hinge loss over
            all training samples of the clients selected.
    """

    losses: dict[int, list[list[float]]]


def measure_losses(context: Context) -> Losses:
    """Train one slot of each trial with random cohorts of each size, by the plain loop, which reports losses."""
    trials = min(TRIALS, context.preset.trials or TRIALS)
    library = context.library
    sizes = [budget for budget in BUDGETS if budget <= library.base.clients]
    work = [(World(budget=budget).config(library.base), trial) for trial in range(trials) for budget in sizes]
    losses: dict[int, list[list[float]]] = {budget: [] for budget in sizes}
    with ProcessPoolExecutor(context.workers, mp_context=get_context("spawn")) as pool:
        chunks = [work[first :: context.workers * 4] for first in range(context.workers * 4)]
        tasks = [pool.submit(_losses, chunk, context.dataset, library.seed) for chunk in chunks if chunk]
        by_work = {
            (config.budget, trial): values
            for task in tasks
            for (config, trial), values in zip(*task.result(), strict=True)
        }
    for budget in sizes:
        losses[budget] = [by_work[budget, trial] for trial in range(trials)]
    return Losses(losses=losses)


def _losses(
    work: list[tuple[ScenarioConfig, int]], dataset: Dataset, seed: int
) -> tuple[list[tuple[ScenarioConfig, int]], list[list[float]]]:
    worlds = {config.budget: build_scenario(config, dataset) for config, _ in work}
    results = []
    with threadpool_limits(limits=1, user_api="blas"):
        for config, trial in work:
            chosen = RandomCohort(clients=config.clients, budget=config.budget, seed=derive(seed, "selection", trial))
            job = Job(cohort=chosen.ask().cohort, seed=seed, trial=trial, slot=1)
            (training,) = train(worlds[config.budget], [job], losses=True)
            assert training.losses is not None
            results.append(np.round(training.losses, 6).tolist())
    return work, results
