"""Upper confidence indices, and the top K of them.

`bp_ucb_index` uses exactly rounded operations only (+, *, /, sqrt, `math.fsum`, and ln by `decimal`), so different
machines agree to the bit.
"""

import decimal
import functools
import math

import numpy as np

from fedelect.seeds import rank_key
from fedelect.vocabulary import Cohort, Floats, Ints


@functools.lru_cache(maxsize=4096)
def ln_slot(slot: int) -> float:
    """Natural logarithm of the slot number, the same float on every machine."""
    return float(decimal.Context(prec=25).ln(decimal.Decimal(slot)))


def ucb_index(mean: float, pulls: int, *, slot: int, exploration: float) -> float:
    """Optimistic value of an arm: mean + mu * sqrt(ln t / Pi); eq. `ucb-index`. `pulls` must be at least 1."""
    return mean + exploration * math.sqrt(math.log(slot) / pulls)


def noise_adjusted(exploration: float, noise_variance: float) -> float:
    """Exploration weight for rewards with added noise: mu * sqrt(1 + 4 * variance of the noise).

    A reward in [0, 1] is sub-Gaussian with variance factor 1/4; independent noise adds its variance to that, and the
    width of a confidence interval grows with the square root. Without noise nothing changes.
    """
    return exploration * math.sqrt(1.0 + 4.0 * noise_variance)


def bp_ucb_index(mean: Floats, pulls: Floats | Ints, beliefs: Floats, *, slot: int, exploration: float) -> Floats:
    """Optimistic value of each client: mean + b / N + mu * sqrt(ln t / Pi); eq. `ucb1`.

    Args:
        mean: (N,) mean of the client's own opinions; nan where it has given none yet, which counts as the
            average of the others' means (0 if there is none).
        pulls: (N,) number of elections, at least 1.
        beliefs: (N,) unnormalised; divided by their sum over the clients that have one; nan counts as 0.
        slot: The slot to elect for, t.
        exploration: mu.

    Returns:
        (N,) indices.
    """
    known = mean[~np.isnan(mean)]
    typical = math.fsum(known.tolist()) / known.size if known.size else 0.0
    filled = np.where(np.isnan(mean), typical, mean)
    held = np.where(np.isnan(beliefs), 0.0, beliefs)
    total = math.fsum(held.tolist())
    share = held / total if total > 0.0 else held
    bonus = exploration * np.sqrt(ln_slot(slot) / pulls)
    return filled + share / mean.size + bonus


def top_k(values: Floats, k: int, *, among: Ints, tie_seed: int | str, slot: int) -> Cohort:
    """Return the `k` members of `among` with the highest values, sorted by number.

    Equal values are ordered by a hash of (tie_seed, slot, client), never by client number.

    Args:
        values: (N,) one value for each client; no nan among those in `among`.
        k: At most the size of `among`.
        among: Sorted, distinct client numbers to choose from.
        tie_seed: Key of the tie hash.
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
