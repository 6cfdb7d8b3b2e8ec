"""What peers say to each other, and what a peer asks of its host.

All values are frozen. A message carries the hash of the configuration that its sender runs under; a peer under
another one refuses it. No message and no effect carries an index: everyone computes those alone.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from fedelect.vocabulary import Cohort


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """What one client says of itself in one slot. Equal to another claim if all bits are equal, nan included.

    Attributes:
        mean: Mean of its own opinions while elected, in [0, 1]; nan if it has none yet.
        belief: Its unnormalised belief, finite and >= 0; nan if it has none.
    """

    mean: float
    belief: float

    @classmethod
    def of(cls, mean: float, belief: float) -> "Claim":
        """A claim with one bit pattern for nan and one for zero."""
        return cls(*(math.nan if math.isnan(value) else value + 0.0 for value in (mean, belief)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Claim) and self._bits() == other._bits()

    def __hash__(self) -> int:
        return hash(self._bits())

    def _bits(self) -> bytes:
        return struct.pack("<2d", self.mean, self.belief)

    def fault(self) -> str | None:
        """What is wrong with the claim, or None."""
        if not (math.isnan(self.mean) or 0.0 <= self.mean <= 1.0):
            return f"the mean must be in [0, 1], or nan if there is none, got {self.mean!r}"
        if not (math.isnan(self.belief) or 0.0 <= self.belief < math.inf):
            return f"the belief must be finite and >= 0, or nan if there is none, got {self.belief!r}"
        return None


class Verdict(Enum):
    """What stands in the map in place of a claim."""

    EXCLUDED = "excluded"
    """The client made two different claims in one slot; it cannot be elected."""


Entry = Claim | Verdict
"""What is known of one client: its claim, or that it is excluded."""

Values = Mapping[int, Entry]
"""A partial map: client -> what is known of it."""


@dataclass(frozen=True, slots=True)
class BeliefMessage:
    """The belief propagation message of `sender` to its neighbour `receiver` in one round; eq. `BPrewrite`.

    Attributes:
        configuration: Hash of the sender's configuration.
        slot: The slot whose model was judged, from 1.
        round: From 1.
        sender: A client.
        receiver: One of its neighbours.
        value: nu, finite.
    """

    configuration: str
    slot: int
    round: int
    sender: int
    receiver: int
    value: float


@dataclass(frozen=True, slots=True)
class GossipMessage:
    """Part of what `sender` knows of who claims what. Merging it twice, or in any order, changes nothing.

    Attributes:
        configuration: Hash of the sender's configuration.
        slot: The slot whose model was judged, from 1.
        sender: A client.
        receiver: One of its neighbours.
        values: client -> claim, or that the client is excluded; copied and read only.
        wants_reply: The sender still lacks values: the receiver answers, once, with what the sender has not shown to
            have. An answer never wants a reply, so that two peers cannot keep each other busy.
    """

    configuration: str
    slot: int
    sender: int
    receiver: int
    values: Values
    wants_reply: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))


Message = BeliefMessage | GossipMessage
"""Whatever travels between neighbours."""


class Wait(Enum):
    """What a deadline is for."""

    RESEND = "resend"
    """Time to say again what a neighbour has not shown to have."""

    SLOT = "slot"
    """Time is up: agree now or skip the slot."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment the peer asked to be told of."""

    wait: Wait
    slot: int


@dataclass(frozen=True, slots=True)
class Send:
    """Deliver `message` to its receiver, if you can; a lost one is sent again later."""

    message: Message


@dataclass(frozen=True, slots=True)
class SetDeadline:
    """Call `deadline_passed(deadline)` when `after_s` seconds have gone by."""

    deadline: Deadline
    after_s: float


@dataclass(frozen=True, slots=True)
class BeliefSettled:
    """All rounds are done; the host answers with `propose(mean, belief)`.

    Attributes:
        slot: The slot.
        belief: This client's belief; nan under the "evidence" reading if it has no opinion.
        residual: How far its own messages still moved in the last round; a diagnostic.
    """

    slot: int
    belief: float
    residual: float


@dataclass(frozen=True, slots=True)
class CohortAgreed:
    """From the same complete map, every peer computes this cohort; it trains in slot + 1.

    Attributes:
        slot: The slot whose opinions were exchanged.
        cohort: Who trains in slot + 1.
        indices: The members' indices in cohort order; empty in the cold start.
    """

    slot: int
    cohort: Cohort
    indices: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SlotSkipped:
    """No cohort came of this slot.

    Attributes:
        slot: The slot whose opinions were exchanged.
        reason: Why, in words.
        missing: The clients that were waited for, if that was why.
    """

    slot: int
    reason: str
    missing: tuple[int, ...] = ()


Effect = Send | SetDeadline | BeliefSettled | CohortAgreed | SlotSkipped
"""What a peer asks of its host, or tells it."""
