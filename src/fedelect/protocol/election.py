"""How a cohort follows from a frozen map: one pure function, so whoever has the same map has the same cohort."""

import functools
import math
from collections.abc import Iterable, Mapping

import numpy as np

from fedelect.errors import AvailabilityError
from fedelect.protocol.configuration import ElectionSettings, PeerConfig
from fedelect.protocol.statements import SignedValue
from fedelect.rules import COLD_START_LIMIT, CohortStatistics, SetPrior, belief_value, elect_set
from fedelect.rules.cold_start import ColdStart
from fedelect.rules.election import Election, elect
from fedelect.vocabulary import Floats, Ints

Played = tuple[CohortStatistics, tuple[int, ...]]
"""The cohorts of history with what each was worth, and whoever was in one of them; the rule "bp-gp" asks for it."""


def decide(
    values: Mapping[int, SignedValue | None],
    *,
    pulls: Ints,
    config: PeerConfig,
    slot: int,
    available: Iterable[int] | None = None,
    played: Played | None = None,
) -> Election:
    """The cohort for `slot`: the next cold-start group, else what the configuration's rule says.

    Under "bp-ucb" those are the highest indices. The exploration term of every index follows from `pulls`, which
    everybody has from the same certificates. Under "bp-gp" it is the set that may be worth most, given what those of
    history were worth (`played`, the last one by this very map); the index is that set's bound.

    Args:
        values: client -> its value, or None if it is proven to have lied. Only clients with a value can be elected.
        pulls: (N,) how often each client has been elected.
        config: What all peers share.
        slot: The slot to elect for.
        available: Restricts whom to elect; None means all.
        played: What history says, under "bp-gp"; None for an empty one.

    Raises:
        AvailabilityError: Fewer than K clients can be elected.
    """
    clients, settings = config.clients, config.settings
    claims = {client: value for client, value in values.items() if value is not None}
    eligible = np.zeros(clients, dtype=np.bool_)
    eligible[list(claims)] = True
    if available is not None:
        here = np.zeros(clients, dtype=np.bool_)
        here[list(available)] = True
        eligible &= here
    count = np.count_nonzero(eligible)
    if count < settings.budget:
        raise AvailabilityError(f"{count} of {clients} clients can be elected but a cohort takes {settings.budget}")
    sets, tried = played or (empty_statistics(settings), ())
    by_set = settings.rule == "bp-gp"
    cold_start = ColdStart(clients, settings.budget, settings.seed)
    cold_start.mark_tried(tried if by_set else tuple(np.flatnonzero(pulls).tolist()))
    opening = not by_set or len(sets) < COLD_START_LIMIT
    fresh = cold_start.next_cohort(slot, eligible) if opening else None
    if fresh is not None:
        return Election(fresh, ())
    if by_set:
        return _by_set(sets, config, slot, np.flatnonzero(eligible))
    return elect(
        _numbers(claims, "mean", clients),
        np.maximum(pulls, 1),  # a client that has no value may be untried; it is not eligible then
        _numbers(claims, "belief", clients),
        slot=slot,
        budget=settings.budget,
        exploration=settings.exploration_weight,
        tie_seed=settings.seed,
        eligible=np.flatnonzero(eligible),
    )


def empty_statistics(settings: ElectionSettings) -> CohortStatistics:
    """Cohort statistics before the first observation, as the rule "bp-gp" starts."""
    return CohortStatistics(settings.budget, forgetting=settings.forgetting, memory=settings.memory)


def worth_of(values: Mapping[int, SignedValue | None], clients: int) -> float:
    """What a frozen map says that the last cohort is worth; nan if nobody has a belief."""
    claims = {client: value for client, value in values.items() if value is not None}
    worth = belief_value(_numbers(claims, "belief", clients))
    return math.nan if worth is None else worth


def _by_set(sets: CohortStatistics, config: PeerConfig, slot: int, eligible: Ints) -> Election:
    evidence = tuple(part.tobytes() for part in sets.evidence())
    return _elected(evidence, config, slot, tuple(eligible.tolist()))


@functools.lru_cache(maxsize=8)  # the search takes its time; simulated peers, who share a process, share its result
def _elected(evidence: tuple[bytes, ...], config: PeerConfig, slot: int, eligible: tuple[int, ...]) -> Election:
    cohorts = np.frombuffer(evidence[0], dtype=np.int64).reshape(-1, config.settings.budget)
    means, weights, scatter, noise = (np.frombuffer(part) for part in evidence[1:])
    return elect_set(
        cohorts,
        means,
        weights,
        scatter,
        clients=config.clients,
        slot=slot,
        exploration=config.settings.exploration_weight,
        seed=config.settings.seed,
        prior=SetPrior(),
        added_noise=noise,
        eligible=np.array(eligible),
    )


def _numbers(claims: Mapping[int, SignedValue], name: str, clients: int) -> Floats:
    """(N,) the number of this name in each value; nan where there is none."""
    numbers = np.full(clients, np.nan)
    for client, value in claims.items():
        numbers[client] = getattr(value, name)
    return numbers
