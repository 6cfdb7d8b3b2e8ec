"""Clients elect who trains next, with nobody in the middle: a pure state machine without input or output.

`Peer` takes events and returns effects; whoever hosts it (the simulator, or a real process) carries them out. The
federation's server needs `PeerConfig`, a verifier and `CertificateChain`, and nothing else of this.
"""

from fedelect.protocol.belief_exchange import BeliefExchange
from fedelect.protocol.chain import Admission, CertificateChain
from fedelect.protocol.codec import FRAME_LIMIT, decode_message, decode_record, encode
from fedelect.protocol.configuration import MEMORY, RULES, ElectionSettings, PeerConfig
from fedelect.protocol.effects import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    HistoryAdvanced,
    MisbehaviourProven,
    Persist,
    Record,
    Send,
    SetDeadline,
    SlotSkipped,
    Wait,
)
from fedelect.protocol.election import decide, worth_of
from fedelect.protocol.flooding import Entry
from fedelect.protocol.messages import (
    AppraisalMessage,
    AppraisalRequest,
    BeliefMessage,
    GossipMessage,
    HistoryMessage,
    HistoryRequest,
    Message,
)
from fedelect.protocol.peer import Peer
from fedelect.protocol.proofs import ImpossibleMove, Proof, TwoValues, TwoVotes
from fedelect.protocol.rewards import OwnRewards, to_claim
from fedelect.protocol.signing import KeyedHashSigner, KeyedHashVerifier, Signer, Verifier, simulated_signers
from fedelect.protocol.statements import BLIND_BYTES, Appraisal, Certificate, SignedValue, Statement, Vote, map_hash
from fedelect.protocol.transitions import OPEN, TRANSITIONS, Event, State, mermaid, next_state

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
    "ElectionSettings",
    "Entry",
    "Event",
    "GossipMessage",
    "HistoryAdvanced",
    "HistoryMessage",
    "HistoryRequest",
    "ImpossibleMove",
    "KeyedHashSigner",
    "KeyedHashVerifier",
    "Message",
    "MisbehaviourProven",
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
