"""Ranking with a stated tie rule."""

import numpy as np

from fedelect.seeds import rank_key
from fedelect.vocabulary import Cohort, Floats, Ints


def top_k(values: Floats, k: int, *, among: Ints, tie_seed: int | str, slot: int) -> Cohort:
    """The `k` members of `among` with the highest value, sorted by number.

    Equal values are ordered by a hash of (tie_seed, slot, client), never by client number.

    Args:
        values: (N,) one value for each client; no nan among those in `among`.
        k: How many; at most the size of `among`.
        among: Sorted, distinct client numbers to choose from.
        tie_seed: What the tie hash is keyed with.
        slot: The slot the ranking is for.
    """
    candidates = values[among]
    threshold = np.partition(candidates, candidates.size - k)[candidates.size - k]
    above = among[candidates > threshold]
    tied = among[candidates == threshold].tolist()
    room = k - above.size
    if len(tied) > room:
        tied.sort(key=lambda client: rank_key(tie_seed, slot, client))
    return tuple(sorted([*above.tolist(), *tied[:room]]))
