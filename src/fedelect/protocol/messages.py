"""What peers say to each other. All values are frozen.

Every message carries the hash of the configuration that its sender runs under and, but for those about history itself,
the slot and the history it builds on. No message carries an index: everyone computes those alone.
"""

from dataclasses import dataclass

from fedelect.protocol.gossip import Entry
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
    """All that `sender` knows of values and votes and `receiver` has not shown to know.

    Attributes:
        configuration: Hash of the sender's configuration.
        sender: A client.
        receiver: One of its neighbours.
        slot: The slot that is elected for, from 1.
        previous: Identity of the certificate that all of it builds on.
        round: The sender's round of flooding: 0 before it begins, R + 1 once its map is frozen.
        entries: Signed values, and proofs of lies.
        votes: Signed votes.
        wants_reply: The sender is still waiting: a receiver that has decided answers with the certificate.
    """

    configuration: bytes
    sender: int
    receiver: int
    slot: int
    previous: bytes
    round: int
    entries: tuple[Entry, ...] = ()
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
    """`sender` does not know what some cohorts were worth, and cannot vote; only under the rule "bp-gp".

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
    """Those of the appraisals that were asked for which `sender` has.

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
"""A question about history."""

Reply = HistoryMessage | AppraisalMessage
"""What is told of history."""

Message = BeliefMessage | GossipMessage | HistoryRequest | HistoryMessage | AppraisalRequest | AppraisalMessage
"""Whatever travels between neighbours."""
