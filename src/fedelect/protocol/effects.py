"""What a peer asks of its host, and what it tells it. The host carries effects out in the order they are given."""

from dataclasses import dataclass
from enum import Enum

from fedelect.protocol.messages import Message
from fedelect.protocol.proofs import Proof
from fedelect.protocol.statements import Appraisal, Certificate, SignedValue, Vote
from fedelect.vocabulary import Cohort

Record = SignedValue | Vote | Certificate | Proof | Appraisal
"""What a peer must not forget: its own values and votes, certified history, proofs of lies, what cohorts were worth."""


class Wait(Enum):
    """What a deadline is for."""

    RESEND = "resend"
    """Time to say again what a neighbour has not shown to have, and to notice who has gone silent."""

    SLOT = "slot"
    """Time is up: the slot is skipped."""


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
class Persist:
    """Append `record` to stable storage, and call `persisted(record)` once it would survive a crash, not before.

    A value or vote is not sent until then. After a restart the peer is made from all records, in order.
    """

    record: Record


@dataclass(frozen=True, slots=True)
class BeliefSettled:
    """The belief is there; the host answers with `propose(mean, belief, blind)`.

    It is said again if history moved on before the peer had voted: the mean may have to be another.

    Attributes:
        slot: The slot that is elected for.
        belief: This client's belief; nan under the "evidence" reading if it has no opinion.
        residual: How far its own messages still moved in the last round; a diagnostic.
    """

    slot: int
    belief: float
    residual: float


@dataclass(frozen=True, slots=True)
class CohortAgreed:
    """The slot is decided: a majority has certified this cohort, and nobody can certify another.

    Attributes:
        certificate: To be shown to the server.
        indices: The members' indices in cohort order; empty in the cold start, or if this peer's own map was another.
    """

    certificate: Certificate
    indices: tuple[float, ...]

    @property
    def slot(self) -> int:
        """The slot that was elected for."""
        return self.certificate.slot

    @property
    def cohort(self) -> Cohort:
        """Who trains in it."""
        return self.certificate.cohort


@dataclass(frozen=True, slots=True)
class SlotSkipped:
    """This peer saw no certificate for the slot; it may still learn of one later.

    Attributes:
        slot: The slot that was elected for.
        reason: Why, in words.
        missing: The clients that were waited for, if that was why.
    """

    slot: int
    reason: str
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryAdvanced:
    """The peer learnt of certificates that others made; `head` is the last. The next slot must be a later one."""

    head: Certificate


@dataclass(frozen=True, slots=True)
class MisbehaviourProven:
    """Somebody lied, and here is the proof. For the log: the peer itself no longer elects that client."""

    proof: Proof


Effect = (
    Send | SetDeadline | Persist | BeliefSettled | CohortAgreed | SlotSkipped | HistoryAdvanced | MisbehaviourProven
)
"""What a peer asks of its host, or tells it."""
