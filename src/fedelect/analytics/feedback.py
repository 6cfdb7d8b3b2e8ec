"""Feedback of one slot under federated analytics (FA) and democratized analytics (DA).

The dense form of DA: one array program computes the beliefs of all clients at once. It gives, to the bit, what the
peers of `fedelect.protocol` settle on message by message, and is the reference they are tested against. No server sees
any of this in a real federation.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import ArrayLike

from fedelect.equations.beliefs import evidence_belief, local_field, path_loss_coupling, settle
from fedelect.errors import FeedbackError
from fedelect.records import Exchange
from fedelect.scenario.config import ScenarioConfig
from fedelect.vocabulary import Feedback, Floats, Ints, Signal


class LinkedClients(Protocol):
    """The part of a scenario that the exchange of beliefs depends on."""

    @property
    def config(self) -> ScenarioConfig:
        """The configuration; its `beliefs` part is used."""

    @property
    def clients(self) -> int:
        """N."""

    @property
    def edges(self) -> Ints:
        """(M, 2) undirected links."""

    @property
    def edge_lengths_km(self) -> Floats:
        """(M,) length of each link in km."""


def federated_feedback(
    opinions: ArrayLike, extra: Mapping[Signal, Floats] | None = None, *, reward: float | None = None
) -> Feedback:
    """Feedback under FA: the opinions (N,) and their mean reach the server; eq. `est_opinion`.

    Clients without an opinion (nan) are left out of the mean.

    Args:
        opinions: (N,) in [0, 1].
        extra: Other signals that the clients report; see `fedelect.vocabulary.EXTRA_SIGNALS`.
        reward: The reward, if it is not the mean of all these opinions.
    """
    reports: dict[str, Any] = dict(extra or {})
    return Feedback(opinions=opinions, reward=reward, **reports)


def democratized_feedback(scenario: LinkedClients, opinions: ArrayLike) -> tuple[Feedback, Exchange]:
    """Feedback under DA: beliefs settled from opinions, and how the exchange of beliefs went.

    Args:
        scenario: The graph, and the settings of [beliefs].
        opinions: (N,) in [0, 1]; nan where a client has none. Under the reading "evidence" such a client has no belief
            (nan); under "ising" it has no evidence of its own but still a belief, from its neighbours.
    """
    given = Feedback(opinions=opinions).opinions  # checks that they are opinions
    if given is None or given.size != scenario.clients:
        size = None if given is None else given.size
        raise FeedbackError(f"opinions has {size} values but there are {scenario.clients} clients")
    settings = scenario.config.beliefs
    if settings.reading == "evidence":  # needs no messages
        exchange = Exchange(rounds=0, residual=0.0, outcome="settled", messages=0)
        return Feedback(opinions=given, beliefs=evidence_belief(given)), exchange
    settling = settle(
        local_field(given),
        scenario.edges,
        link_couplings(scenario),
        rounds=settings.rounds,
        damping=settings.damping,
    )
    rounds = settling.residuals.size
    exchange = Exchange(
        rounds=rounds,
        residual=float(settling.residuals[-1]),
        outcome=str(settling.outcome),
        messages=2 * len(scenario.edges) * rounds,
    )
    return Feedback(opinions=given, beliefs=settling.beliefs), exchange


def link_couplings(scenario: LinkedClients) -> Floats:
    """(M,) coupling of every link: the paper's -C d^beta with the constants of [beliefs]."""
    beliefs = scenario.config.beliefs
    lengths = scenario.edge_lengths_km
    return path_loss_coupling(lengths, scale=beliefs.coupling_scale, exponent=beliefs.coupling_exponent)
