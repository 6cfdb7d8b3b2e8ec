"""What a client claims, and how a cohort follows from a frozen map of all claims.

`elect_cohort` is a pure function: peers with the same map and history have the same cohort.
"""

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

    Peers check that a claimed mean changes only with elections. So an opinion counts only if it is given before its
    client first claims a mean on top of that slot's certificate.

    Args:
        client: The client.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self._opinions: dict[int, float] = {}
        self._closed = 0  # opinions of slots up to this one are closed

    def give(self, slot: int, opinion: float) -> bool:
        """Add the opinion on the model trained in `slot` (nan: none); returns whether it counts."""
        if not (math.isnan(opinion) or 0.0 <= opinion <= 1.0):
            raise LocalProtocolError(f"an opinion must be in [0, 1], or nan if there is none, got {opinion!r}")
        if slot <= self._closed or math.isnan(opinion):
            return False
        self._opinions[slot] = opinion
        return True

    def close(self, slot: int) -> None:
        """Accept no more opinions of slots up to `slot`, as after a claim on top of its certificate."""
        self._closed = max(self._closed, slot)

    def claim(self, chain: CertificateChain) -> float:
        """The mean to propose on top of `chain`; nan without rewards. Closes the slots up to its head."""
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

    Under "bp-gp" no mean is claimed, and a belief only on the model of the last certified cohort: claims on top of a
    certificate count for its cohort.

    Args:
        chain: History as its peer knows it now.
        rule: The configuration's rule.
        mean: From `OwnRewards.claim`.
        belief: From `BeliefSettled`.
        judged: The slot of the model that the opinion behind that belief is on; 0 if none.
    """
    if rule == "bp-gp":
        return math.nan, belief if judged == chain.slot > 0 else math.nan
    return mean, belief if judged > 0 else math.nan


CohortHistory = tuple[CohortStatistics, tuple[int, ...]]
"""Statistics of the cohorts of history, and the clients in them; for the rule "bp-gp"."""


def elect_cohort(
    values: Mapping[int, SignedValue | None],
    *,
    pulls: Ints,
    config: PeerConfig,
    slot: int,
    available: Iterable[int] | None = None,
    played: CohortHistory | None = None,
) -> Election:
    """The cohort for `slot`: the next cold-start group, else by the configuration's rule.

    Under "bp-ucb" the clients with the highest indices; their exploration terms follow from `pulls`, which all peers
    have from the same certificates. Under "bp-gp" the set with the highest acquisition value given `played`, in which
    this map gives the worth of the last cohort; the index is that set's bound.

    Args:
        values: client -> its value, None if proven to have misbehaved. Only clients with a value can be elected.
        pulls: (N,) elections of each client.
        config: What all peers share.
        slot: The slot to elect for.
        available: The clients that can be elected; None means all.
        played: Under "bp-gp", the cohorts of history; None for an empty one.

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
        np.maximum(pulls, 1),  # a client without a value may be untried; it is not eligible then
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
    """Worth of the last cohort by a frozen map; nan if no client has a belief."""
    claims = {client: value for client, value in values.items() if value is not None}
    worth = belief_value(_numbers(claims, "belief", clients))
    return math.nan if worth is None else worth


def _by_set(sets: CohortStatistics, config: PeerConfig, slot: int, eligible: Ints) -> Election:
    evidence = tuple(part.tobytes() for part in sets.evidence())
    return _elect(evidence, config, slot, tuple(eligible.tolist()))


@functools.lru_cache(maxsize=8)  # the search is slow; simulated peers share its result
def _elect(evidence: tuple[bytes, ...], config: PeerConfig, slot: int, eligible: tuple[int, ...]) -> Election:
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
