"""What all peers of one election share. Its hash names the election in every message and every signature."""

import functools
import math
import struct
from dataclasses import dataclass

from fedelect.equations.beliefs import check_exchange
from fedelect.errors import ConfigurationError
from fedelect.protocol.graph import neighbourhoods, surviving_diameter
from fedelect.protocol.statements import digest
from fedelect.rules import RULE_VERSION
from fedelect.vocabulary import check_budget

READINGS = ("ising", "evidence")
"""The two readings of the paper's beliefs; see docs/BELIEFS.md."""

RULES = {"bp-ucb": 0.01, "bp-gp": 2.0}
"""How a cohort follows from maps and history, and the exploration that each rule takes unless told."""

MEMORY = 96
"""Most cohorts that the rule "bp-gp" remembers unless told."""

_NAME = b"fedelect/configuration/1\0"


@dataclass(frozen=True, kw_only=True)
class PeerConfig:
    """What all peers of one election must have in common. Nothing in it is secret.

    Attributes:
        clients: N.
        budget: K.
        edges: (one, other) links of the graph, each once.
        couplings: J of each link, in the order of `edges`.
        keys: Public key of each client, in client order; what they mean is up to the verifier.
        rule: "bp-ucb" (the paper's: the highest indices) or "bp-gp" (the set that may be worth most).
        exploration: mu under "bp-ucb", how much to hope for under "bp-gp"; None for the rule's own.
        forgetting: Under "bp-gp", what is left of a worth's weight after each slot.
        memory: Under "bp-gp", most cohorts remembered.
        seed: Fixes cold-start groups and ties.
        reading: "ising" (messages between neighbours) or "evidence" (belief = opinion squared, no messages).
        rounds: Rounds of belief messages in each slot.
        damping: Share of the old message that is kept, in [0, 1).
        faults: f, how many peers may fail in one slot while the others still decide. The graph must stay connected
            without any f of them.
        lying: Whether those f may lie (then N >= 3f + 1 and the quorum is larger) or only crash.
        resend_s: After how many seconds to say things again.
        patience: After how many of these intervals of silence a neighbour is no longer waited for in this slot.
        slot_s: After how many seconds to give the slot up.
    """

    clients: int
    budget: int
    edges: tuple[tuple[int, int], ...]
    couplings: tuple[float, ...]
    keys: tuple[bytes, ...]
    rule: str = "bp-ucb"
    exploration: float | None = None
    forgetting: float = 1.0
    memory: int = MEMORY
    seed: int = 1
    reading: str = "ising"
    rounds: int = 10
    damping: float = 0.0
    faults: int = 0
    lying: bool = False
    resend_s: float = 0.5
    patience: int = 8
    slot_s: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple((int(one), int(other)) for one, other in self.edges))
        object.__setattr__(self, "couplings", tuple(map(float, self.couplings)))
        object.__setattr__(self, "keys", tuple(map(bytes, self.keys)))
        check_budget(self.clients, self.budget)
        check_exchange(self.rounds, self.damping)
        self._check_rule()
        if self.reading not in READINGS:
            raise ConfigurationError(f"reading must be one of {', '.join(READINGS)}, got {self.reading!r}")
        if not (0.0 < self.resend_s < self.slot_s < math.inf and self.patience >= 1):
            raise ConfigurationError(
                f"deadlines must satisfy 0 < resend_s < slot_s and patience >= 1, got {self.resend_s!r} and "
                f"{self.slot_s!r} seconds and patience {self.patience!r}"
            )
        if len(self.keys) != self.clients or len(set(self.keys)) != self.clients:
            raise ConfigurationError(
                f"keys must be {self.clients} different public keys, one for each client, got {len(set(self.keys))}"
            )
        self._check_faults()
        self.neighbours  # noqa: B018  a graph that cannot be used is refused now, not later
        self.flood_rounds  # noqa: B018

    def _check_rule(self) -> None:
        if self.rule not in RULES:
            raise ConfigurationError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")
        if not 0.0 <= self.optimism < math.inf:
            raise ConfigurationError(f"exploration must be a finite number >= 0, got {self.exploration!r}")
        if not (0.0 < self.forgetting <= 1.0 and self.memory >= 2):
            raise ConfigurationError(
                f"forgetting must be > 0 and <= 1 and memory at least 2, got {self.forgetting!r} and {self.memory!r}"
            )
        if self.rule == "bp-ucb" and (self.forgetting, self.memory) != (1.0, MEMORY):
            raise ConfigurationError("forgetting and memory are the rule bp-gp's; leave them out, or set that rule")

    def _check_faults(self) -> None:
        if self.faults < 0:
            raise ConfigurationError(f"faults must be at least 0, got {self.faults}")
        if self.lying and self.clients < 3 * self.faults + 1:
            raise ConfigurationError(
                f"{self.faults} lying peers need at least {3 * self.faults + 1} clients, got {self.clients}"
            )
        if self.clients - self.faults < self.quorum:
            raise ConfigurationError(
                f"{self.faults} faults leave {self.clients - self.faults} of {self.clients} clients, fewer than the "
                f"{self.quorum} signatures of a certificate; lower `faults`"
            )

    @property
    def optimism(self) -> float:
        """`exploration`, or the rule's own."""
        return RULES[self.rule] if self.exploration is None else self.exploration

    @property
    def quorum(self) -> int:
        """How many signatures make a certificate: any two such sets share a peer that signs once in a slot."""
        return (self.clients + (self.faults if self.lying else 0)) // 2 + 1

    @functools.cached_property
    def neighbours(self) -> tuple[dict[int, float], ...]:
        """For each client, neighbour -> coupling J, in order of number. Read only."""
        return neighbourhoods(self.clients, self.edges, self.couplings)

    @functools.cached_property
    def flood_rounds(self) -> int:
        """R = (f + 1) D', D' being the largest diameter after any at most f peers have failed."""
        return (self.faults + 1) * surviving_diameter(self.clients, self.edges, self.faults)

    @functools.cached_property
    def digest(self) -> bytes:
        """Hash of all of the above, 32 bytes; floats count to the last bit. It also stands for the empty history.

        Under "bp-gp" it also holds the version of the rule, whose constants are no settings.
        """
        fields = [
            struct.pack("<QQd", self.clients, self.budget, self.optimism),
            str(self.seed).encode(),
            self.reading.encode(),
            struct.pack("<Qd", self.rounds, self.damping),
            struct.pack("<Q?", self.faults, self.lying),
            struct.pack("<dQd", self.resend_s, self.patience, self.slot_s),
            *(struct.pack("<QQd", *edge, coupling) for edge, coupling in zip(self.edges, self.couplings, strict=True)),
            *self.keys,
        ]
        name = _NAME
        if self.rule == "bp-gp":
            fields.append(struct.pack("<dQ", self.forgetting, self.memory))
            name = f"fedelect/configuration/bp-gp/{RULE_VERSION}\0".encode()
        return digest(name + b"".join(struct.pack("<I", len(field)) + field for field in fields))
