"""Hierarchical clustering by Ward's criterion."""

import numpy as np

from fedelect.selectors.literature.updates import squared_distances
from fedelect.vocabulary import Floats


def merge_by_ward(rows: Floats) -> list[tuple[int, int]]:
    """The n - 1 merges of the rows (n, d), in order; the i-th makes cluster n + i out of two earlier ones.

    Two clusters are merged whose union has the least additional sum of squares. Distances are updated by the formula of
    Lance and Williams, at a cost of O(n^2) for each merge.
    """
    count = len(rows)
    distances = squared_distances(rows, rows)
    np.fill_diagonal(distances, np.inf)
    names, sizes = np.arange(count), np.ones(count)
    merges = list[tuple[int, int]]()
    for step in range(count - 1):
        first, second = sorted(divmod(int(np.argmin(distances)), count))
        low, high = sorted((int(names[first]), int(names[second])))
        merges.append((low, high))
        total = sizes + sizes[first] + sizes[second]
        with np.errstate(invalid="ignore"):  # infinite for what was merged before
            joined = (sizes + sizes[first]) * distances[first] + (sizes + sizes[second]) * distances[second]
            joined = (joined - sizes * distances[first, second]) / total
        joined[~np.isfinite(joined)] = np.inf
        joined[[first, second]] = np.inf
        distances[first], distances[:, first] = joined, joined
        distances[second], distances[:, second] = np.inf, np.inf
        sizes[first] += sizes[second]
        names[first] = count + step
    return merges
