"""Clients elect who trains next without a coordinator: a pure state machine without input or output.

`Peer` takes events and returns effects; its host (the simulator, or a real process) carries them out. The federation's
server needs only `PeerConfig`, a verifier and `CertificateChain`. Messages, effects, statements and proofs are imported
from their modules.
"""

from fedelect.protocol.chain import Admission, CertificateChain
from fedelect.protocol.codec import FRAME_LIMIT, decode_message, decode_record, encode
from fedelect.protocol.configuration import RULES, ElectionSettings, PeerConfig
from fedelect.protocol.election import OwnRewards, prepare_claim
from fedelect.protocol.peer import Peer
from fedelect.protocol.signing import KeyedHashVerifier, Signer, Verifier, simulated_signers
from fedelect.protocol.statements import BLIND_BYTES, Certificate
from fedelect.protocol.transitions import OPEN_STATES, State

__all__ = [
    "BLIND_BYTES",
    "FRAME_LIMIT",
    "OPEN_STATES",
    "RULES",
    "Admission",
    "Certificate",
    "CertificateChain",
    "ElectionSettings",
    "KeyedHashVerifier",
    "OwnRewards",
    "Peer",
    "PeerConfig",
    "Signer",
    "State",
    "Verifier",
    "decode_message",
    "decode_record",
    "encode",
    "prepare_claim",
    "simulated_signers",
]
