"""How a cohort follows from a frozen map: one pure function, so whoever has the same map has the same cohort."""

import functools
import math
from collections.abc import Iterable, Mapping

import numpy as np

from fedelect.errors import AvailabilityError, LocalProtocolError
from fedelect.protocol.chain import CertificateChain
from fedelect.protocol.configuration import ElectionSettings, PeerConfig
from fedelect.protocol.statements import SignedValue
from fedelect.rules import (
    COLD_START_LIMIT,
    CohortStatistics,
    ColdStart,
    Election,
    SetPrior,
    belief_value,
    elect,
    elect_set,
)
from fedelect.vocabulary import Floats, Ints


class OwnRewards:
    """One client's opinions by slot, and their mean over the slots in which it was elected.

    Others check that a claimed mean moves only with elections. So an opinion must be there before its client first
    claims a mean on top of that slot's certificate: one that comes later is not counted.

    Args:
        client: Whose they are.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self._opinions: dict[int, float] = {}
        self._closed = 0  # opinions of slots up to this one are settled

    def give(self, slot: int, opinion: float) -> bool:
        """The client judged the model trained in `slot`; returns whether that can still count (nan: no opinion)."""
        if not (math.isnan(opinion) or 0.0 <= opinion <= 1.0):
            raise LocalProtocolError(f"an opinion must be in [0, 1], or nan if there is none, got {opinion!r}")
        if slot <= self._closed or math.isnan(opinion):
            return False
        self._opinions[slot] = opinion
        return True

    def close(self, slot: int) -> None:
        """Settle the slots up to `slot`, as a claim on top of its certificate did."""
        self._closed = max(self._closed, slot)

    def claim(self, chain: CertificateChain) -> float:
        """The mean to propose on top of `chain`; nan if there are no rewards yet. Settles the slots up to its head."""
        self.close(chain.slot)
        total, count = 0.0, 0
        for certificate in chain.certificates:
            if self._client in certificate.cohort and certificate.slot in self._opinions:
                total, count = total + self._opinions[certificate.slot], count + 1
        return total / count if count else math.nan


def prepare_claim(
    chain: CertificateChain, *, rule: str, mean: float, belief: float, judged: int
) -> tuple[float, float]:
    """The mean and belief that a host proposes for its client on top of `chain`.

    Under "bp-gp" a belief is about the model that the last certified cohort trained, or there is none: what is said on
    top of a certificate counts for its cohort, and older news would count for the wrong one. No mean is told.

    Args:
        chain: History as its peer knows it now.
        rule: Of the configuration.
        mean: As `OwnRewards.claim` has it.
        belief: As given by `BeliefSettled`.
        judged: The slot whose model the opinion behind that belief is of; 0 if none.
    """
    if rule == "bp-gp":
        return math.nan, belief if judged == chain.slot > 0 else math.nan
    return mean, belief if judged > 0 else math.nan


CohortHistory = tuple[CohortStatistics, tuple[int, ...]]
"""The cohorts of history with what each was worth, and whoever was in one of them; the rule "bp-gp" asks for it."""


def elect_cohort(
    values: Mapping[int, SignedValue | None],
    *,
    pulls: Ints,
    config: PeerConfig,
    slot: int,
    available: Iterable[int] | None = None,
    played: CohortHistory | None = None,
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


def cohort_worth(values: Mapping[int, SignedValue | None], clients: int) -> float:
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
