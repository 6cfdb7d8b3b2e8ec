"""Messages between neighbours. All values are frozen.

Every message carries the hash of its sender's configuration and, except for messages about history, the slot and the
certificate it builds on. No message carries an index: every peer computes those itself.
"""

from dataclasses import dataclass

from fedelect.protocol.gossip import Relayed
from fedelect.protocol.statements import Appraisal, Certificate, Vote


@dataclass(frozen=True, slots=True)
class BeliefMessage:
    """The belief propagation message of `sender` to its neighbour `receiver` in one round; eq. `BPrewrite`.

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        slot: The slot that is elected for, from 1.
        previous: Identity of the sender's last certificate.
        round: From 1.
        value: nu, finite.
    """

    configuration: bytes
    sender: int
    receiver: int
    slot: int
    previous: bytes
    round: int
    value: float


@dataclass(frozen=True, slots=True)
class GossipMessage:
    """The values and votes that `sender` knows and `receiver` has not acknowledged.

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        slot: The slot that is elected for, from 1.
        previous: Identity of the certificate that all of them build on.
        round: The sender's round of flooding: 0 before it begins, R + 1 once its map is frozen.
        entries: Signed values and proofs of misbehaviour, with the signatures of those that passed them on.
        votes: Signed votes.
        wants_reply: The sender is still waiting: a receiver that has decided answers with the certificate.
    """

    configuration: bytes
    sender: int
    receiver: int
    slot: int
    previous: bytes
    round: int
    entries: tuple[Relayed, ...] = ()
    votes: tuple[Vote, ...] = ()
    wants_reply: bool = False


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """`sender` lacks certificates: it asks for those after the first name in `locator` that `receiver` knows.

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        locator: Identities of certificates from the newest backwards, ever farther apart.
    """

    configuration: bytes
    sender: int
    receiver: int
    locator: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """Certificates that `receiver` lacks, oldest first.

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        certificates: Each builds on the one before.
    """

    configuration: bytes
    sender: int
    receiver: int
    certificates: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class AppraisalRequest:
    """`sender` lacks appraisals, without which it cannot vote; only under the rule "bp-gp".

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        certificates: Identities of the certificates whose appraisals it lacks.
    """

    configuration: bytes
    sender: int
    receiver: int
    certificates: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AppraisalMessage:
    """The requested appraisals that `sender` has.

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        appraisals: Each is checked against its certificate.
    """

    configuration: bytes
    sender: int
    receiver: int
    appraisals: tuple[Appraisal, ...]


Request = HistoryRequest | AppraisalRequest
"""A request for history."""

Reply = HistoryMessage | AppraisalMessage
"""A reply to such a request."""

Message = BeliefMessage | GossipMessage | HistoryRequest | HistoryMessage | AppraisalRequest | AppraisalMessage
"""Any message."""
