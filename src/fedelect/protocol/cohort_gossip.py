"""How claims spread, and how a cohort follows from them.

What is known of a client can only grow: nothing < its claim < excluded (it made two different claims). `merge` is the
least upper bound of two partial maps: idempotent, commutative, associative. So a message may come twice, late or
in any order, and two peers that have seen the same claims hold the same map.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from fedelect.equations.cold_start import ColdStart
from fedelect.equations.indices import Election, elect
from fedelect.errors import AvailabilityError
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.messages import Claim, Entry, Values, Verdict
from fedelect.vocabulary import Ints


def join(one: Entry, other: Entry) -> Entry:
    """The least that is known of a client given both."""
    return one if one == other else Verdict.EXCLUDED


def merge(one: Values, other: Values) -> dict[int, Entry]:
    """All that is known given both maps."""
    merged = dict(one)
    for client, entry in other.items():
        merged[client] = join(merged.get(client, entry), entry)
    return merged


class CohortGossip:
    """One peer's map of claims in one slot, and what each neighbour has shown to know of it."""

    def __init__(self, neighbours: Iterable[int]) -> None:
        self.values: dict[int, Entry] = {}
        self._shown: dict[int, dict[int, Entry]] = {neighbour: {} for neighbour in neighbours}

    def learn(self, values: Values, *, source: int | None = None) -> dict[int, Entry]:
        """Merge in what neighbour `source` (None: this peer itself) said; returns the entries that changed."""
        if source is not None:
            self._shown[source] = merge(self._shown[source], values)
        merged = merge(self.values, values)
        fresh = {client: merged[client] for client in values if self.values.get(client) != merged[client]}
        self.values = merged
        return fresh

    def unshown(self, neighbour: int, among: Values | None = None) -> dict[int, Entry]:
        """The entries (of `among`, else of all) that `neighbour` has not shown to know."""
        shown = self._shown[neighbour]
        entries = self.values if among is None else among
        return {client: entry for client, entry in entries.items() if shown.get(client) != entry}

    def unknown(self, clients: int) -> tuple[int, ...]:
        """The clients of whom nothing is known."""
        return tuple(client for client in range(clients) if client not in self.values)


def decide(
    values: Mapping[int, Entry],
    *,
    pulls: Ints,
    cold_start: ColdStart,
    config: PeerConfig,
    slot: int,
    available: Iterable[int] | None = None,
) -> Election:
    """The cohort for `slot` from a complete map: a pure function, so whoever has the same map has the same cohort.

    Args:
        values: client -> claim, or that it is excluded.
        pulls: (N,) how often each client has been elected.
        cold_start: Which clients have been tried.
        config: What all peers share.
        slot: The slot to elect for.
        available: Restricts whom to elect; None means all.

    Raises:
        AvailabilityError: Fewer than K clients can be elected.
    """
    claims = {client: entry for client, entry in values.items() if isinstance(entry, Claim)}
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
    fresh = cold_start.next_cohort(slot, eligible)
    if fresh is not None:
        return Election(fresh, ())
    means, beliefs = np.full((2, config.clients), np.nan)
    for client, claim in claims.items():
        means[client], beliefs[client] = claim.mean, claim.belief
    return elect(
        means,
        np.maximum(pulls, 1),  # an excluded client may be untried; it is not eligible then
        beliefs,
        slot=slot,
        budget=config.budget,
        exploration=config.exploration,
        tie_seed=config.seed,
        eligible=np.flatnonzero(eligible),
    )
