"""How a cohort follows from a frozen map: one pure function, so whoever has the same map has the same cohort."""

from collections.abc import Iterable, Mapping

import numpy as np

from fedelect.equations.cold_start import ColdStart
from fedelect.equations.indices import Election, elect
from fedelect.errors import AvailabilityError
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.signed import SignedValue
from fedelect.vocabulary import Ints


def decide(
    values: Mapping[int, SignedValue | None],
    *,
    pulls: Ints,
    config: PeerConfig,
    slot: int,
    available: Iterable[int] | None = None,
) -> Election:
    """The cohort for `slot`: the next cold-start group, else the highest BP-UCB indices.

    The exploration term of every index follows from `pulls`, which everybody has from the same certificates.

    Args:
        values: client -> its value, or None if it is proven to have lied. Only clients with a value can be elected.
        pulls: (N,) how often each client has been elected.
        config: What all peers share.
        slot: The slot to elect for.
        available: Restricts whom to elect; None means all.

    Raises:
        AvailabilityError: Fewer than K clients can be elected.
    """
    claims = {client: value for client, value in values.items() if value is not None}
    eligible = np.zeros(config.clients, dtype=np.bool_)
    eligible[list(claims)] = True
    if available is not None:
        here = np.zeros(config.clients, dtype=np.bool_)
        here[list(available)] = True
        eligible &= here
    count = np.count_nonzero(eligible)
    if count < config.budget:
        raise AvailabilityError(
            f"{count} of {config.clients} clients can be elected but a cohort takes {config.budget}"
        )
    cold_start = ColdStart(config.clients, config.budget, config.seed)
    cold_start.mark_tried(tuple(np.flatnonzero(pulls).tolist()))
    fresh = cold_start.next_cohort(slot, eligible)
    if fresh is not None:
        return Election(fresh, ())
    means, beliefs = np.full((2, config.clients), np.nan)
    for client, value in claims.items():
        means[client], beliefs[client] = value.mean, value.belief
    return elect(
        means,
        np.maximum(pulls, 1),  # a client that has no value may be untried; it is not eligible then
        beliefs,
        slot=slot,
        budget=config.budget,
        exploration=config.exploration,
        tie_seed=config.seed,
        eligible=np.flatnonzero(eligible),
    )
