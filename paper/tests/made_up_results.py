"""Results that nobody ran: blocks with given opinions and cohorts, written as real ones are."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paper import AbstractResultStore, RunRequest, Series
from paper.blocks import Block, write_block
from paper.player import block_key


def put(
    store: AbstractResultStore,
    series: Series,
    opinions: ArrayLike,
    *,
    cohorts: ArrayLike | None = None,
    untrained: float = 0.1,
    **beliefs: Any,
) -> None:
    """Keep (trials, T) opinions as the results of a series, in blocks of the store's size.

    Args:
        store: Where to keep them.
        series: The series.
        opinions: (trials, T).
        cohorts: (trials, T, K), or (K,) for all slots; the first K clients if None.
        untrained: Mean opinion of the untrained model.
        beliefs: `belief_sums` and the like, of every block.
    """
    values = np.asarray(opinions, dtype=np.float64)
    budget = series.world.budget
    shape = (*values.shape, budget)
    elected = np.broadcast_to(np.arange(budget) if cohorts is None else np.asarray(cohorts), shape).astype(np.uint8)
    for task in store.tasks([RunRequest(series=series, trials=len(values), slots=values.shape[1])]):
        members = slice(task.first_trial, task.first_trial + store.block)
        block = Block(
            key=block_key(task, store.data_digest, "made-up"),
            first_trial=task.first_trial,
            untrained=untrained,
            cohorts=elected[members],
            opinions=values[members],
            **beliefs,
        )
        write_block(task.path, block)
