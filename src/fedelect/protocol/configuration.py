"""Settings and configuration of an election. The hash of the configuration is in every message and signature."""

import functools
import math
import struct
from dataclasses import dataclass
from typing import Any, Protocol, Self

from fedelect.equations.beliefs import check_exchange
from fedelect.errors import ConfigurationError
from fedelect.protocol.graph import neighbourhoods, surviving_diameter
from fedelect.protocol.statements import digest
from fedelect.rules import RULE_VERSION
from fedelect.vocabulary import check_budget

READINGS = ("ising", "evidence")
"""The two readings of the paper's beliefs; see docs/BELIEFS.md."""

RULES = {"bp-ucb": 0.01, "bp-gp": 2.0}
"""Election rules: how a cohort follows from maps and history. Each with its default exploration."""

MEMORY = 96
"""Default of the largest number of cohorts that the rule "bp-gp" remembers."""

_NAME = b"fedelect/configuration/1\0"


class _Beliefs(Protocol):
    @property
    def reading(self) -> str: ...
    @property
    def rounds(self) -> int: ...
    @property
    def damping(self) -> float: ...


class _Scenario(Protocol):
    @property
    def budget(self) -> int: ...
    @property
    def beliefs(self) -> _Beliefs: ...


_LARGEST_COUNT = 10**9


@dataclass(frozen=True, kw_only=True)
class ElectionSettings:
    """Settings of an election, independent of the members of a federation.

    Attributes:
        budget: K, the size of a cohort.
        rule: "bp-ucb" (the paper's: the highest indices) or "bp-gp" (the set with the highest acquisition value).
        exploration: mu under "bp-ucb", weight of the standard deviation under "bp-gp"; None for the rule's default.
        forgetting: Under "bp-gp", factor on the weight of every observation after each slot, in (0, 1].
        memory: Under "bp-gp", largest number of cohorts remembered.
        seed: Fixes cold-start groups and ties.
        reading: "ising" (messages between neighbours) or "evidence" (belief = opinion squared, no messages).
        rounds: Rounds of belief messages in each slot.
        damping: Share of the old message that is kept, in [0, 1).
        max_faulty: f, largest number of peers that may fail in one slot while the others still decide. The graph must
            stay connected without any f of them.
        byzantine: Whether those f may send anything (then N >= 3f + 1 and the quorum is larger) or only crash.
        resend_s: Resend interval: seconds after which a peer repeats unacknowledged messages.
        silent_intervals: Resend intervals of silence after which a neighbour is not waited for in this slot, at least
            2: within one interval a neighbour that repeats itself once in each may still seem silent.
        slot_s: Seconds after which a peer gives the slot up.
    """

    budget: int
    rule: str = "bp-ucb"
    exploration: float | None = None
    forgetting: float = 1.0
    memory: int = MEMORY
    seed: int = 1
    reading: str = "ising"
    rounds: int = 10
    damping: float = 0.0
    max_faulty: int = 0
    byzantine: bool = False
    resend_s: float = 0.5
    silent_intervals: int = 8
    slot_s: float = 60.0

    def __post_init__(self) -> None:
        check_exchange(self.rounds, self.damping)
        self._check_rule()
        if self.reading not in READINGS:
            raise ConfigurationError(f"reading must be one of {', '.join(READINGS)}, got {self.reading!r}")
        if not (0.0 < self.resend_s < self.slot_s < math.inf and self.silent_intervals >= 2):
            raise ConfigurationError(
                f"deadlines must satisfy 0 < resend_s < slot_s and silent_intervals >= 2, got {self.resend_s!r} and "
                f"{self.slot_s!r} seconds and {self.silent_intervals!r} silent intervals"
            )
        for name in ("rounds", "silent_intervals", "memory"):
            if getattr(self, name) > _LARGEST_COUNT:
                raise ConfigurationError(f"{name} must be at most {_LARGEST_COUNT}, got {getattr(self, name)}")
        if self.max_faulty < 0:
            raise ConfigurationError(f"max_faulty must be at least 0, got {self.max_faulty}")
        if self.byzantine not in (True, False):
            raise ConfigurationError(f"byzantine must be true or false, got {self.byzantine!r}")

    def _check_rule(self) -> None:
        if self.rule not in RULES:
            raise ConfigurationError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")
        if not 0.0 <= self.exploration_weight < math.inf:
            raise ConfigurationError(f"exploration must be a finite number >= 0, got {self.exploration!r}")
        if not (0.0 < self.forgetting <= 1.0 and self.memory >= 2):
            raise ConfigurationError(
                f"forgetting must be > 0 and <= 1 and memory at least 2, got {self.forgetting!r} and {self.memory!r}"
            )
        if self.rule == "bp-ucb" and (self.forgetting, self.memory) != (1.0, MEMORY):
            raise ConfigurationError("forgetting and memory are the rule bp-gp's; leave them out, or set that rule")

    @classmethod
    def for_scenario(cls, config: _Scenario, **settings: Any) -> Self:
        """Settings with a scenario's budget and belief exchange; `settings` are attributes of this class."""
        beliefs = config.beliefs
        exchange: dict[str, Any] = {"reading": beliefs.reading, "rounds": beliefs.rounds, "damping": beliefs.damping}
        return cls(budget=config.budget, **(exchange | settings))

    @property
    def exploration_weight(self) -> float:
        """`exploration`, or the rule's default."""
        return RULES[self.rule] if self.exploration is None else self.exploration


@dataclass(frozen=True, kw_only=True)
class PeerConfig:
    """One election: its members, their graph and how they elect. All peers must have the same; nothing in it is secret.

    Attributes:
        clients: N.
        edges: (one, other) links of the graph, each once.
        couplings: J of each link, in the order of `edges`.
        keys: Public key of each client, in client order; the verifier defines their meaning.
        settings: How they elect.
    """

    clients: int
    edges: tuple[tuple[int, int], ...]
    couplings: tuple[float, ...]
    keys: tuple[bytes, ...]
    settings: ElectionSettings

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple((int(one), int(other)) for one, other in self.edges))
        object.__setattr__(self, "couplings", tuple(map(float, self.couplings)))
        object.__setattr__(self, "keys", tuple(map(bytes, self.keys)))
        check_budget(self.clients, self.settings.budget)
        if len(self.keys) != self.clients or len(set(self.keys)) != self.clients:
            raise ConfigurationError(
                f"keys must be {self.clients} different public keys, one for each client, got {len(set(self.keys))}"
            )
        self._check_quorum()
        self.neighbours  # noqa: B018  a graph that cannot be used is refused now, not later
        self.flood_rounds  # noqa: B018
        self._check_time()

    def _check_quorum(self) -> None:
        faulty = self.settings.max_faulty
        if self.settings.byzantine and self.clients < 3 * faulty + 1:
            raise ConfigurationError(
                f"{faulty} byzantine peers need at least {3 * faulty + 1} clients, got {self.clients}"
            )
        if self.clients - faulty < self.quorum:
            raise ConfigurationError(
                f"{faulty} faulty peers leave {self.clients - faulty} of {self.clients} clients, fewer than the "
                f"{self.quorum} signatures of a certificate; lower `max_faulty`"
            )
        if self.clients - faulty < self.settings.budget:
            raise ConfigurationError(
                f"{faulty} faulty peers leave {self.clients - faulty} of {self.clients} clients, fewer than a cohort "
                f"of {self.settings.budget}; lower `max_faulty` or the budget"
            )

    def _check_time(self) -> None:
        chosen, intervals = self.settings, self.longest_intervals
        if chosen.byzantine and intervals * chosen.resend_s > chosen.slot_s:
            raise ConfigurationError(
                f"{chosen.max_faulty} byzantine peers can make an election take {intervals} resend intervals of "
                f"{chosen.resend_s:g} s, got a slot of {chosen.slot_s:g} s; raise `slot_s` to "
                f"{math.ceil(intervals * chosen.resend_s)}, or lower `silent_intervals` or `max_faulty`"
            )

    @property
    def quorum(self) -> int:
        """Signatures that make a certificate: any two such sets share a peer that signs once in a slot."""
        return (self.clients + (self.settings.max_faulty if self.settings.byzantine else 0)) // 2 + 1

    @functools.cached_property
    def neighbours(self) -> tuple[dict[int, float], ...]:
        """For each client, neighbour -> coupling J, in order of number. Read only."""
        return neighbourhoods(self.clients, self.edges, self.couplings)

    @functools.cached_property
    def flood_rounds(self) -> int:
        """R = (f + 1) D', D' being the largest diameter after any at most f peers have failed."""
        return (self.settings.max_faulty + 1) * self._diameter

    @property
    def windows(self) -> int:
        """Windows of the flood: in window w a value counts only with w signatures. One where peers only crash."""
        return self.settings.max_faulty + 1 if self.settings.byzantine else 1

    @property
    def window_rounds(self) -> int:
        """Rounds in each window: D', or all where there is one window."""
        return self.flood_rounds // self.windows

    @property
    def exchange_intervals(self) -> int:
        """With Byzantine peers, resend intervals after which the exchange of beliefs is over for every peer."""
        chosen = self.settings
        return chosen.rounds + chosen.silent_intervals if chosen.reading == "ising" else 0

    @property
    def window_intervals(self) -> int:
        """With Byzantine peers, resend intervals after which a window is over for every peer.

        Peers may begin `silent_intervals` apart, and a value takes two intervals to the next peer: until that one's
        next repetition, and on the way.
        """
        return self.settings.silent_intervals + 2 * self._diameter

    @property
    def longest_intervals(self) -> int:
        """With Byzantine peers, resend intervals after which all others have decided: each phase at its longest."""
        votes = 2 * (self._diameter + 1)
        return self.exchange_intervals + self.windows * self.window_intervals + votes

    @functools.cached_property
    def _diameter(self) -> int:
        return surviving_diameter(self.clients, self.edges, self.settings.max_faulty)

    @functools.cached_property
    def digest(self) -> bytes:
        """Hash of all of the above, 32 bytes; floats count to the last bit. It also stands for the empty history.

        Under "bp-gp" it also holds the version of the rule, whose constants are no settings.
        """
        chosen = self.settings
        fields = [
            struct.pack("<QQd", self.clients, chosen.budget, chosen.exploration_weight),
            str(chosen.seed).encode(),
            chosen.reading.encode(),
            struct.pack("<Qd", chosen.rounds, chosen.damping),
            struct.pack("<Q?", chosen.max_faulty, chosen.byzantine),
            struct.pack("<dQd", chosen.resend_s, chosen.silent_intervals, chosen.slot_s),
            *(struct.pack("<QQd", *edge, coupling) for edge, coupling in zip(self.edges, self.couplings, strict=True)),
            *self.keys,
        ]
        name = _NAME
        if chosen.rule == "bp-gp":
            fields.append(struct.pack("<dQ", chosen.forgetting, chosen.memory))
            name = f"fedelect/configuration/bp-gp/{RULE_VERSION}\0".encode()
        return digest(name + b"".join(struct.pack("<I", len(field)) + field for field in fields))
