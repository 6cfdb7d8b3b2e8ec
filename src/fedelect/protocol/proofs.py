"""Proofs of misbehaviour: two signed statements of one client that contradict each other. Anyone can check them.

Three kinds can be proven: two values for one slot on one history; two votes for one slot on one history; and a mean
that its client's elections do not allow: the sum of rewards grows by at most 1 for each election, and not without one.
Statements on different histories are never compared.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.chain import CertificateChain, statement_fault
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.signing import Verifier
from fedelect.protocol.statements import SignedValue, Vote

_ROUNDING = 1e-9  # a mean of thousands of opinions, summed in floats, is within this of the exact one


@dataclass(frozen=True, slots=True)
class TwoValues:
    """A client signed two different values for one slot on one history."""

    one: SignedValue
    other: SignedValue

    @property
    def client(self) -> int:
        """The client that misbehaved."""
        return self.one.client


@dataclass(frozen=True, slots=True)
class TwoVotes:
    """A client signed two different statements for one slot on one history."""

    one: Vote
    other: Vote

    @property
    def client(self) -> int:
        """The client that misbehaved."""
        return self.one.client


@dataclass(frozen=True, slots=True)
class ImpossibleMove:
    """A client's mean changed along one history in a way that its elections do not allow."""

    one: SignedValue
    other: SignedValue

    @property
    def client(self) -> int:
        """The client that misbehaved."""
        return self.one.client


Proof = TwoValues | TwoVotes | ImpossibleMove
"""Any proof. Peers that hold it never elect the client again under this configuration."""


def can_move(before: float, after: float, elections: int) -> bool:
    """Whether a mean can change from `before` to `after` (nan: no rewards yet) in this number of elections.

    An elected client need not give an opinion, so the number of rewards behind a mean is unknown; any number is
    allowed.
    """
    if math.isnan(after):
        return math.isnan(before)
    if math.isnan(before):
        return elections > 0
    if elections == 0:
        return before == after
    low, high = before / (1 + elections), (before + elections) / (1 + elections)
    return low - _ROUNDING <= after <= high + _ROUNDING


def check_proof(
    proof: Proof, *, config: PeerConfig, verifier: Verifier, chain: CertificateChain, previous: bytes
) -> None:
    """Raise RemoteProtocolError unless this proves that `proof.client` misbehaved.

    An `ImpossibleMove` is checked on the branch of `chain` that ends with `previous`, the certificate that the message
    builds on: sender and receiver share that branch, whichever of them knows others.
    """
    if not 0 <= proof.client < config.clients or proof.other.client != proof.client:
        raise RemoteProtocolError("a proof must be two things that one client of this election signed")
    fault = _CHECKS[type(proof)](proof, config, chain, previous)
    if fault is not None:
        raise RemoteProtocolError(f"this proves nothing against client {proof.client}: {fault}")
    for said in (proof.one, proof.other):
        content = said.statement.content if isinstance(said, Vote) else said.content
        if not verifier.verify(config.keys[proof.client], content, said.signature):
            raise RemoteProtocolError(f"a proof against client {proof.client} holds what it did not sign")


def _two_values(proof: Proof, config: PeerConfig, chain: CertificateChain, previous: bytes) -> str | None:
    one, other = proof.one, proof.other
    assert isinstance(one, SignedValue) and isinstance(other, SignedValue)
    if (one.configuration, one.slot, one.previous) != (config.digest, other.slot, other.previous):
        return "the values are for different slots, histories or elections"
    if one == other or other.configuration != config.digest:
        return "the values do not contradict each other"
    return None


def _two_votes(proof: Proof, config: PeerConfig, chain: CertificateChain, previous: bytes) -> str | None:
    assert isinstance(proof.one, Vote) and isinstance(proof.other, Vote)
    one, other = proof.one.statement, proof.other.statement
    faults = [fault for fault in (statement_fault(one, config), statement_fault(other, config)) if fault]
    if faults:
        return faults[0]
    if (one.slot, one.previous) != (other.slot, other.previous):
        return "the votes are for different slots or histories"
    return "the votes are the same" if one == other else None


def _impossible_move(proof: Proof, config: PeerConfig, chain: CertificateChain, previous: bytes) -> str | None:
    one, other = proof.one, proof.other
    assert isinstance(one, SignedValue) and isinstance(other, SignedValue)
    if not one.configuration == other.configuration == config.digest:
        return "the values are of another election"
    if is_impossible_move(one, other, chain, previous):
        return None
    return "the mean can have moved so, as far as the history tells that the message builds on"


def is_impossible_move(one: SignedValue, other: SignedValue, chain: CertificateChain, previous: bytes) -> bool:
    """Whether two values of one client, the first from an earlier slot, contradict each other.

    Both must build on certificates of the branch that ends with `previous`; the elections between these count.
    """
    if one.slot >= other.slot or chain.elections_between(one.client, other.previous, previous) is None:
        return False
    elections = chain.elections_between(one.client, one.previous, other.previous)
    return elections is not None and not can_move(one.mean, other.mean, elections)


_CHECKS: dict[type, Callable[[Proof, PeerConfig, CertificateChain, bytes], str | None]] = {
    TwoValues: _two_values,
    TwoVotes: _two_votes,
    ImpossibleMove: _impossible_move,
}
