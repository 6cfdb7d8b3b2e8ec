"""Democratized analytics, dense form: opinions -> beliefs over the graph of clients, all at once.

No server sees any of this in a real federation. Here one array program stands for all the clients; it gives, to the
bit, what the message-by-message peers of `fedelect.protocol` settle on, and is the reference they are tested against.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fedelect.equations.beliefs import (
    Coupling,
    Outcome,
    Settled,
    evidence_belief,
    local_field,
    path_loss_coupling,
    settle,
)
from fedelect.errors import ConfigurationError, FeedbackError
from fedelect.scenario.config import ScenarioConfig
from fedelect.vocabulary import Feedback, Floats, Ints


class LinkedClients(Protocol):
    """What of a scenario the exchange of beliefs depends on."""

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


@dataclass(frozen=True, slots=True)
class Exchange:
    """How one slot's exchange of beliefs went, for the record.

    Attributes:
        rounds: Rounds of messages; 0 under the "evidence" reading, which needs none.
        residual: How far a message still moved in the last round.
        outcome: Settled, or rounds exhausted with advice.
    """

    rounds: int
    residual: float
    outcome: Outcome


@dataclass(frozen=True, slots=True, eq=False)
class Digest:
    """What democratized analytics makes of one slot's opinions.

    Attributes:
        feedback: Opinions and beliefs, for the selector that stands for the clients' own books.
        exchange: How the exchange went.
    """

    feedback: Feedback
    exchange: Exchange


def couplings_of(scenario: LinkedClients, coupling: Coupling | None = None) -> Floats:
    """(M,) coupling of every link of `scenario`: by `coupling`, or the paper's -C d^beta from the configuration."""
    lengths = scenario.edge_lengths_km
    if coupling is None:
        beliefs = scenario.config.beliefs
        return path_loss_coupling(lengths, scale=beliefs.coupling_scale, exponent=beliefs.coupling_exponent)
    couplings = np.array(coupling(lengths), dtype=np.float64)
    if couplings.shape != lengths.shape or not np.isfinite(couplings).all():
        raise ConfigurationError(
            f"the coupling function must give one finite number for each of the {lengths.size} links, "
            f"got shape {couplings.shape}: {couplings}"
        )
    return couplings


def democratized(scenario: LinkedClients, opinions: ArrayLike, *, coupling: Coupling | None = None) -> Digest:
    """Settle beliefs from opinions, by the reading and for the number of rounds that the scenario sets.

    Args:
        scenario: The graph and the settings.
        opinions: (N,) in [0, 1]; nan where a client has none. Under "evidence" such a client has no belief (nan);
            under "ising" it has no evidence of its own but still a belief, from its neighbours.
        coupling: Lengths in km -> couplings; None for the paper's.
    """
    given = Feedback(opinions=opinions).opinions  # checks that they are opinions
    if given is None or given.size != scenario.clients:
        size = None if given is None else given.size
        raise FeedbackError(f"opinions has {size} values but there are {scenario.clients} clients")
    settings = scenario.config.beliefs
    if settings.reading == "evidence":
        feedback = Feedback(opinions=given, beliefs=evidence_belief(given))
        return Digest(feedback, Exchange(0, 0.0, Settled(0, 0.0)))
    settling = settle(
        local_field(given),
        scenario.edges,
        couplings_of(scenario, coupling),
        rounds=settings.rounds,
        damping=settings.damping,
    )
    residual = float(settling.residuals[-1])
    feedback = Feedback(opinions=given, beliefs=settling.beliefs)
    return Digest(feedback, Exchange(settling.residuals.size, residual, settling.outcome))
