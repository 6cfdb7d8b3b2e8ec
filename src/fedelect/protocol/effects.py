"""Effects: what a peer asks of its host and reports to it. The host carries them out in order."""

from dataclasses import dataclass
from enum import Enum

from fedelect.protocol.messages import Message
from fedelect.protocol.proofs import Proof
from fedelect.protocol.statements import Appraisal, Certificate, SignedValue, Vote
from fedelect.vocabulary import Cohort

Record = SignedValue | Vote | Certificate | Proof | Appraisal
"""What a peer stores: its own values and votes, certificates, proofs of misbehaviour, appraisals of cohorts."""


class Wait(Enum):
    """What a deadline is for."""

    RESEND = "resend"
    """Resend what a neighbour has not acknowledged, and count silent intervals."""

    SLOT = "slot"
    """Give the slot up."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline that the peer has set."""

    wait: Wait
    slot: int


@dataclass(frozen=True, slots=True)
class Send:
    """Deliver `message` to its receiver, best effort; the peer resends lost ones."""

    message: Message


@dataclass(frozen=True, slots=True)
class SetDeadline:
    """Call `deadline_passed(deadline)` after `after_s` seconds."""

    deadline: Deadline
    after_s: float


@dataclass(frozen=True, slots=True)
class Persist:
    """Append `record` to stable storage, and call `persisted(record)` once it survives a crash, not before.

    A value or vote is not sent until then. After a restart the peer is restored from all records, in order.
    """

    record: Record


@dataclass(frozen=True, slots=True)
class BeliefSettled:
    """The belief is settled; the host replies with `propose(mean, belief, blind)`.

    Repeated if history grew before the peer voted, for the mean may have changed.

    Attributes:
        slot: The slot that is elected for.
        belief: This client's belief; nan under the "evidence" reading if it has no opinion.
        residual: Change of its own messages in the last round; a diagnostic.
    """

    slot: int
    belief: float
    residual: float


@dataclass(frozen=True, slots=True)
class CohortAgreed:
    """The slot is decided: a quorum has certified this cohort, and no other can be certified.

    Attributes:
        certificate: For the server.
        indices: The members' indices in cohort order; empty in the cold start, or if this peer voted otherwise.
    """

    certificate: Certificate
    indices: tuple[float, ...]

    @property
    def slot(self) -> int:
        """The slot that was elected for."""
        return self.certificate.slot

    @property
    def cohort(self) -> Cohort:
        """The clients that train in it."""
        return self.certificate.cohort


@dataclass(frozen=True, slots=True)
class SlotSkipped:
    """This peer saw no certificate for the slot; it may still learn of one later.

    Attributes:
        slot: The slot that was elected for.
        reason: Why, in words.
        missing: The clients that it waited for, if that is the reason.
    """

    slot: int
    reason: str
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryAdvanced:
    """The peer received certificates; `head` is the last. The next slot must be a later one."""

    head: Certificate


@dataclass(frozen=True, slots=True)
class MisbehaviourProven:
    """A client is proven to have misbehaved. For the log: the peer no longer elects that client."""

    proof: Proof


Effect = (
    Send | SetDeadline | Persist | BeliefSettled | CohortAgreed | SlotSkipped | HistoryAdvanced | MisbehaviourProven
)
"""Any effect."""
