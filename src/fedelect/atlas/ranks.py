"""Numbers of cohorts: the index of a cohort among all C(N, K), in the order of `itertools.combinations`.

The combinatorial number system, for whole arrays at a time.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Ints, check_budget

_MOST = 2**62  # cohorts that a 64-bit integer can number with room to spare


def cohort_ranks(cohorts: ArrayLike, *, clients: int) -> Ints:
    """The number of each cohort, from 0.

    >>> cohort_ranks([[0, 1], [0, 2], [3, 4]], clients=5)
    array([0, 1, 9])

    Args:
        cohorts: (..., K) members in ascending order.
        clients: N.

    Returns:
        (...)

    Raises:
        ConfigurationError: A row of `cohorts` is not a cohort, or there are too many cohorts to number.
    """
    members = np.asarray(cohorts)
    if members.ndim < 1 or not members.size or members.dtype.kind not in "iu":
        raise ConfigurationError(f"cohorts must be client numbers of shape (..., K), got shape {members.shape}")
    budget = members.shape[-1]
    sound = bool((members[..., :1] >= 0).all() and (members[..., -1:] < clients).all())
    if not sound or not (np.diff(members.astype(np.int64), axis=-1) > 0).all():
        raise ConfigurationError(f"a cohort is distinct clients of 0..{clients - 1} in ascending order")
    binomials = _binomials(clients, budget)
    # As many cohorts come after one as there are ways to go wrong upwards at each of its members.
    after = binomials[clients - 1 - members, budget - np.arange(budget)].sum(axis=-1)
    return np.asarray(binomials[clients, budget] - 1 - after, dtype=np.int64)


def cohorts_at(ranks: ArrayLike, *, clients: int, budget: int) -> Ints:
    """The cohorts of the given numbers: (...) -> (..., K), members in ascending order.

    >>> cohorts_at([0, 9], clients=5, budget=2).tolist()
    [[0, 1], [3, 4]]

    Raises:
        ConfigurationError: There is no cohort of such a number, or there are too many cohorts to number.
    """
    binomials = _binomials(clients, budget)
    numbers = np.asarray(ranks, dtype=np.int64)
    total = int(binomials[clients, budget])
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < total:
        raise ConfigurationError(f"cohorts of {budget} out of {clients} clients are numbered 0..{total - 1}")
    left = total - 1 - numbers
    cohorts = np.empty((*numbers.shape, budget), dtype=np.int64)
    for place in range(budget):
        column = binomials[:, budget - place]
        largest = np.searchsorted(column, left, side="right") - 1
        left = left - column[largest]
        cohorts[..., place] = clients - 1 - largest
    return cohorts


def _binomials(clients: int, budget: int) -> Ints:
    """(N + 1, K + 1) binomial coefficients, m over j."""
    check_budget(clients, budget)
    if math.comb(clients, budget) > _MOST:
        raise ConfigurationError(f"there are too many cohorts of {budget} out of {clients} clients to be numbered")
    # Entries that a cohort never asks for may be larger than the last: they are cut off.
    rows = [[min(math.comb(m, j), _MOST) for j in range(budget + 1)] for m in range(clients + 1)]
    return np.array(rows, dtype=np.int64)
