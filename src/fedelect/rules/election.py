"""The election of K clients by their indices: what `BpUcb` and every peer compute from the same values."""

from typing import NamedTuple

import numpy as np

from fedelect.equations.indices import bp_ucb_index
from fedelect.equations.top_k import top_k
from fedelect.errors import AvailabilityError
from fedelect.vocabulary import Cohort, Floats, Ints


class Election(NamedTuple):
    """The elected cohort (sorted) and the index of each member, in cohort order."""

    cohort: Cohort
    indices: tuple[float, ...]


def elect(
    mean: Floats,
    pulls: Floats | Ints,
    beliefs: Floats,
    *,
    slot: int,
    budget: int,
    exploration: float,
    tie_seed: int | str,
    eligible: Ints | None = None,
) -> Election:
    """The `budget` eligible clients with the highest BP-UCB index.

    Args:
        mean: (N,) see `bp_ucb_index`; likewise `pulls` and `beliefs`.
        pulls: (N,).
        beliefs: (N,).
        slot: The slot to elect for.
        budget: K, how many to elect.
        exploration: mu.
        tie_seed: Selector seed or configuration hash; ties are ordered by hash of (tie_seed, slot, client).
        eligible: Client numbers to choose from; all if None.
    """
    index = bp_ucb_index(mean, pulls, beliefs, slot=slot, exploration=exploration)
    candidates = np.arange(mean.size) if eligible is None else np.unique(eligible)
    if candidates.size < budget:
        raise AvailabilityError(f"{candidates.size} clients can be elected but the budget is {budget}")
    cohort = top_k(index, budget, among=candidates, tie_seed=tie_seed, slot=slot)
    return Election(cohort, tuple(index[list(cohort)].tolist()))
