"""What all peers of one election share, and what a peer must remember between slots."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedelect.equations.beliefs import check_exchange
from fedelect.errors import ConfigurationError
from fedelect.seeds import rank_key
from fedelect.vocabulary import Cohort, as_cohort, check_budget

READINGS = ("ising", "evidence")
"""The two readings of the paper's beliefs; see docs/BELIEFS.md."""


@dataclass(frozen=True, kw_only=True)
class PeerConfig:
    """What all peers of one election must have in common; its hash travels in every message.

    Attributes:
        clients: N.
        budget: K.
        exploration: mu.
        seed: Fixes cold-start groups and ties; known to all.
        reading: "ising" (messages between neighbours) or "evidence" (belief = opinion squared, no messages).
        rounds: Rounds of belief messages in each slot.
        damping: Share of the old message that is kept, in [0, 1).
        resend_s: After how many seconds without progress to say things again.
        slot_s: After how many seconds to give the slot up.
        graph: Any text that names the graph and its couplings (a hash, say), so that peers of different graphs
            refuse each other.
    """

    clients: int
    budget: int
    exploration: float = 0.01
    seed: int = 1
    reading: str = "ising"
    rounds: int = 10
    damping: float = 0.0
    resend_s: float = 0.5
    slot_s: float = 60.0
    graph: str = ""

    def __post_init__(self) -> None:
        check_budget(self.clients, self.budget)
        check_exchange(self.rounds, self.damping)
        if not 0.0 <= self.exploration < math.inf:
            raise ConfigurationError(f"exploration must be a finite number >= 0, got {self.exploration!r}")
        if self.reading not in READINGS:
            raise ConfigurationError(f"reading must be one of {', '.join(READINGS)}, got {self.reading!r}")
        if not 0.0 < self.resend_s < self.slot_s < math.inf:
            raise ConfigurationError(
                f"deadlines must satisfy 0 < resend_s < slot_s, got {self.resend_s!r} and {self.slot_s!r} seconds"
            )

    @functools.cached_property
    def digest(self) -> str:
        """Hash of all of the above, 32 hexadecimal digits; floats count to the last bit."""
        return rank_key(repr(self)).hex()


@dataclass(frozen=True, slots=True)
class History:
    """What a peer must not forget between slots.

    Attributes:
        slot: The last slot begun; 0 before the first.
        pulls: How often each client has been elected, N counts.
        elected: Who trains in slot + 1, not yet counted in `pulls`; None if there is nobody.
    """

    slot: int
    pulls: tuple[int, ...]
    elected: Cohort | None

    def check(self, config: PeerConfig) -> None:
        """Raise ConfigurationError unless this can be the history of a peer under `config`."""
        if self.slot < 0 or len(self.pulls) != config.clients or min(self.pulls) < 0:
            raise ConfigurationError(
                f"a history needs a slot >= 0 and {config.clients} counts of pulls >= 0, got slot {self.slot} and "
                f"pulls {list(self.pulls)}"
            )
        if self.elected is not None:
            cohort = as_cohort(self.elected, clients=config.clients, what="the elected cohort")
            if len(cohort) != config.budget:
                raise ConfigurationError(f"the elected cohort {list(cohort)} does not have {config.budget} members")


def couplings_by_neighbour(
    config: PeerConfig, client: int, neighbours: Sequence[int], couplings: Sequence[float]
) -> dict[int, float]:
    """The coupling J of the link to each neighbour, in client order, checked."""
    as_cohort([client], clients=config.clients, what="client")
    linked = as_cohort(neighbours, clients=config.clients, what=f"neighbours of client {client}")
    if client in linked:
        raise ConfigurationError(f"client {client} is listed as its own neighbour; remove it")
    if len(couplings) != len(linked) or not all(math.isfinite(coupling) for coupling in couplings):
        raise ConfigurationError(
            f"couplings must be one finite number for each of the {len(linked)} neighbours of client {client}, "
            f"got {list(couplings)}"
        )
    given = dict(zip(map(int, neighbours), map(float, couplings), strict=True))
    return {neighbour: given[neighbour] for neighbour in linked}
