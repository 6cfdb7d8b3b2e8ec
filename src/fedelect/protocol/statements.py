"""What peers sign, as canonical bytes: values, votes, certificates, what they pass on.

The bytes of each kind begin with its own name and version, so that a signature of one kind is never valid for another.
Numbers are little-endian, floats are their eight IEEE bytes. Equality is equality of these bytes: nan equals nan, and
signatures are not compared.

The identity of a certificate is the hash of its statement, not of its signatures: two peers may hold different quorums
of signatures to one statement.
"""

import functools
import hashlib
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fedelect.vocabulary import Cohort

DIGEST_BYTES = 32
"""Length of every hash: of a configuration, a map, a statement."""

BLIND_BYTES = 16
"""Length of the blind in a value."""

_VALUE = b"fedelect/value/2\0"
_VOTE = b"fedelect/vote/2\0"
_MAP = b"fedelect/map/2\0"
_SEAL = b"fedelect/appraisal/1\0"
_RELAY = b"fedelect/relay/1\0"


def digest(content: bytes) -> bytes:
    """BLAKE2b, 32 bytes."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, eq=False)
class SignedValue:
    """A client's claim about itself in the election for one slot.

    Attributes:
        configuration: Hash of the configuration.
        slot: The slot that is elected for, from 1.
        previous: Identity of the certificate it builds on; the hash of the configuration where there is none yet.
        client: The client.
        mean: Mean of its own opinions in the slots in which it was elected, in [0, 1]; nan if it has none.
        belief: Its unnormalised belief, in [0, 1]; nan if it has none.
        blind: 16 random bytes, fresh in every value, seen by peers only. They keep others from finding the map
            behind a hash by trial.
        signature: By the client, of `content`.
    """

    configuration: bytes
    slot: int
    previous: bytes
    client: int
    mean: float
    belief: float
    blind: bytes
    signature: bytes = b""

    @functools.cached_property
    def content(self) -> bytes:
        """The bytes that are signed."""
        head = struct.pack("<32sQ32s", self.configuration, self.slot, self.previous)
        return _VALUE + head + struct.pack("<Idd16s", self.client, self.mean, self.belief, self.blind)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SignedValue) and self.content == other.content)

    def __hash__(self) -> int:
        return hash(self.content)

    def fault(self) -> str | None:
        """Why the numbers or the blind are invalid, or None."""
        if len(self.blind) != BLIND_BYTES:
            return f"the blind must be {BLIND_BYTES} random bytes, got {len(self.blind)}"
        for name, number in (("mean", self.mean), ("belief", self.belief)):
            if not (math.isnan(number) or 0.0 <= number <= 1.0):
                return f"the {name} must be in [0, 1], or nan if there is none, got {number!r}"
        return None


def canonical_float(number: float) -> float:
    """`number` with one bit pattern for nan and one for zero."""
    return math.nan if math.isnan(number) else number + 0.0


@dataclass(frozen=True, eq=False)
class Statement:
    """What a quorum certifies: the cohort of `slot`, on top of which history, from which map.

    Attributes:
        configuration: Hash of the configuration.
        slot: The slot that was elected for, from 1.
        previous: Identity of the certificate before it; the hash of the configuration for the first.
        cohort: The clients that train in `slot`, sorted.
        map_hash: Hash of the frozen map; see `map_hash`. The map itself stays among the peers. Under the rule
            "bp-gp", the seal of an `Appraisal`.
    """

    configuration: bytes
    slot: int
    previous: bytes
    cohort: Cohort
    map_hash: bytes

    @functools.cached_property
    def content(self) -> bytes:
        """The bytes that are signed."""
        head = struct.pack(
            "<32sQ32s32sI", self.configuration, self.slot, self.previous, self.map_hash, len(self.cohort)
        )
        return _VOTE + head + struct.pack(f"<{len(self.cohort)}I", *self.cohort)

    @functools.cached_property
    def identity(self) -> bytes:
        """Hash of the content: the name of the certificate of this statement."""
        return digest(self.content)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Statement) and self.content == other.content)

    def __hash__(self) -> int:
        return hash(self.content)


@dataclass(frozen=True, slots=True)
class Vote:
    """One client's signature to a statement; an honest client gives at most one for each slot.

    Attributes:
        statement: What is signed.
        client: The signer.
        signature: Of the statement's content.
    """

    statement: Statement
    client: int
    signature: bytes


@dataclass(frozen=True, slots=True)
class Certificate:
    """A statement and the signatures of a quorum. The federation's server sees nothing else of an election.

    Attributes:
        statement: What is certified.
        signatures: (client, signature) pairs in order of client, at least as many as the configuration's quorum.
    """

    statement: Statement
    signatures: tuple[tuple[int, bytes], ...]

    @property
    def identity(self) -> bytes:
        """What the next value, vote and certificate refer to as `previous`."""
        return self.statement.identity

    @property
    def slot(self) -> int:
        """The slot that was elected for."""
        return self.statement.slot

    @property
    def cohort(self) -> Cohort:
        """The clients that train in that slot."""
        return self.statement.cohort


@dataclass(frozen=True, eq=False)
class Appraisal:
    """Worth of the cohort that trained before a certified slot, by that slot's map; only under the rule "bp-gp".

    Under that rule the hash in a statement is `seal`, over the hash of the map and the worth. So an appraisal can be
    checked with the certificate and without the map, and the certificate alone does not reveal the worth.

    Attributes:
        certificate: Identity of the certificate of that slot.
        values: Hash of its frozen map; see `map_hash`.
        worth: Of the cohort of the certificate before, as `belief_value` has it; nan if no client had a belief.
    """

    certificate: bytes
    values: bytes
    worth: float

    @functools.cached_property
    def seal(self) -> bytes:
        """The `map_hash` in the certificate's statement."""
        return seal_map(self.values, self.worth)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Appraisal) and (self.certificate, self.seal) == (other.certificate, other.seal)
        )

    def __hash__(self) -> int:
        return hash((self.certificate, self.seal))


def relay_content(configuration: bytes, slot: int, previous: bytes, client: int, value: SignedValue | None) -> bytes:
    """The bytes that a peer signs when it passes on the value of `client`, or (None) a proof against it."""
    about = bytes(DIGEST_BYTES) if value is None else digest(value.content)
    return _RELAY + struct.pack("<32sQ32sI32s", configuration, slot, previous, client, about)


def seal_map(values: bytes, worth: float) -> bytes:
    """Hash of the hash of a map and the worth that follows from it."""
    return digest(_SEAL + struct.pack("<32sd", values, worth))


def map_hash(values: Mapping[int, SignedValue | None], available: Iterable[int] | None = None) -> bytes:
    """Hash of a frozen map. It hides the map from anyone who lacks the blind of at least one value in it.

    Args:
        values: client -> its value, or None if it is proven to have misbehaved.
        available: Clients that could be elected; None means all.
    """
    parts = [_MAP]
    there = None if available is None else sorted(set(available))
    parts.append(b"all" if there is None else struct.pack(f"<I{len(there)}I", len(there), *there))
    for client in sorted(values):
        value = values[client]
        parts.append(struct.pack("<I?", client, value is None))
        if value is not None:
            parts.append(struct.pack("<dd16s", value.mean, value.belief, value.blind))
    return digest(b"".join(parts))
