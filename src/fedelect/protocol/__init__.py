"""Clients elect who trains next, with nobody in the middle: a pure state machine without input or output.

`Peer` takes events and returns effects; whoever hosts it (the simulator, or a real process) carries them out. The
federation's server needs `PeerConfig`, a verifier and `CertificateChain`, and nothing else of this.
"""

from fedelect.protocol.configuration import MEMORY as MEMORY
from fedelect.protocol.configuration import RULES as RULES
from fedelect.protocol.configuration import PeerConfig as PeerConfig
from fedelect.protocol.history import Admission as Admission
from fedelect.protocol.history import CertificateChain as CertificateChain
from fedelect.protocol.history import ImpossibleMove as ImpossibleMove
from fedelect.protocol.history import OwnRewards as OwnRewards
from fedelect.protocol.history import Proof as Proof
from fedelect.protocol.history import TwoValues as TwoValues
from fedelect.protocol.history import TwoVotes as TwoVotes
from fedelect.protocol.history import to_claim as to_claim
from fedelect.protocol.peer import Peer as Peer
from fedelect.protocol.signed import BLIND_BYTES as BLIND_BYTES
from fedelect.protocol.signed import Appraisal as Appraisal
from fedelect.protocol.signed import Certificate as Certificate
from fedelect.protocol.signed import KeyedHashSigner as KeyedHashSigner
from fedelect.protocol.signed import KeyedHashVerifier as KeyedHashVerifier
from fedelect.protocol.signed import SignedValue as SignedValue
from fedelect.protocol.signed import Signer as Signer
from fedelect.protocol.signed import Statement as Statement
from fedelect.protocol.signed import Verifier as Verifier
from fedelect.protocol.signed import Vote as Vote
from fedelect.protocol.signed import map_hash as map_hash
from fedelect.protocol.signed import simulated_signers as simulated_signers
from fedelect.protocol.slot import BeliefExchange as BeliefExchange
from fedelect.protocol.slot import Entry as Entry
from fedelect.protocol.slot import decide as decide
from fedelect.protocol.slot import worth_of as worth_of
from fedelect.protocol.transitions import OPEN as OPEN
from fedelect.protocol.transitions import TRANSITIONS as TRANSITIONS
from fedelect.protocol.transitions import Event as Event
from fedelect.protocol.transitions import State as State
from fedelect.protocol.transitions import mermaid as mermaid
from fedelect.protocol.transitions import next_state as next_state
from fedelect.protocol.wire import FRAME_LIMIT as FRAME_LIMIT
from fedelect.protocol.wire import AppraisalMessage as AppraisalMessage
from fedelect.protocol.wire import AppraisalRequest as AppraisalRequest
from fedelect.protocol.wire import BeliefMessage as BeliefMessage
from fedelect.protocol.wire import BeliefSettled as BeliefSettled
from fedelect.protocol.wire import CohortAgreed as CohortAgreed
from fedelect.protocol.wire import Deadline as Deadline
from fedelect.protocol.wire import Effect as Effect
from fedelect.protocol.wire import GossipMessage as GossipMessage
from fedelect.protocol.wire import HistoryAdvanced as HistoryAdvanced
from fedelect.protocol.wire import HistoryMessage as HistoryMessage
from fedelect.protocol.wire import HistoryRequest as HistoryRequest
from fedelect.protocol.wire import LiarProven as LiarProven
from fedelect.protocol.wire import Message as Message
from fedelect.protocol.wire import Persist as Persist
from fedelect.protocol.wire import Record as Record
from fedelect.protocol.wire import Send as Send
from fedelect.protocol.wire import SetDeadline as SetDeadline
from fedelect.protocol.wire import SlotSkipped as SlotSkipped
from fedelect.protocol.wire import Wait as Wait
from fedelect.protocol.wire import decode_message as decode_message
from fedelect.protocol.wire import decode_record as decode_record
from fedelect.protocol.wire import encode as encode

__all__ = [
    "BLIND_BYTES",
    "FRAME_LIMIT",
    "MEMORY",
    "OPEN",
    "RULES",
    "TRANSITIONS",
    "Admission",
    "Appraisal",
    "AppraisalMessage",
    "AppraisalRequest",
    "BeliefExchange",
    "BeliefMessage",
    "BeliefSettled",
    "Certificate",
    "CertificateChain",
    "CohortAgreed",
    "Deadline",
    "Effect",
    "Entry",
    "Event",
    "GossipMessage",
    "HistoryAdvanced",
    "HistoryMessage",
    "HistoryRequest",
    "ImpossibleMove",
    "KeyedHashSigner",
    "KeyedHashVerifier",
    "LiarProven",
    "Message",
    "OwnRewards",
    "Peer",
    "PeerConfig",
    "Persist",
    "Proof",
    "Record",
    "Send",
    "SetDeadline",
    "SignedValue",
    "Signer",
    "SlotSkipped",
    "State",
    "Statement",
    "TwoValues",
    "TwoVotes",
    "Verifier",
    "Vote",
    "Wait",
    "decide",
    "decode_message",
    "decode_record",
    "encode",
    "map_hash",
    "mermaid",
    "next_state",
    "simulated_signers",
    "to_claim",
    "worth_of",
]
