"""What is signed, and by whom: canonical bytes, values, votes, certificates, signers."""

from fedelect.protocol.signed.signing import KeyedHashSigner as KeyedHashSigner
from fedelect.protocol.signed.signing import KeyedHashVerifier as KeyedHashVerifier
from fedelect.protocol.signed.signing import Signer as Signer
from fedelect.protocol.signed.signing import Verifier as Verifier
from fedelect.protocol.signed.signing import simulated_signers as simulated_signers
from fedelect.protocol.signed.statements import BLIND_BYTES as BLIND_BYTES
from fedelect.protocol.signed.statements import Appraisal as Appraisal
from fedelect.protocol.signed.statements import Certificate as Certificate
from fedelect.protocol.signed.statements import SignedValue as SignedValue
from fedelect.protocol.signed.statements import Statement as Statement
from fedelect.protocol.signed.statements import Vote as Vote
from fedelect.protocol.signed.statements import map_hash as map_hash

__all__ = [
    "BLIND_BYTES",
    "Appraisal",
    "Certificate",
    "KeyedHashSigner",
    "KeyedHashVerifier",
    "SignedValue",
    "Signer",
    "Statement",
    "Verifier",
    "Vote",
    "map_hash",
    "simulated_signers",
]
