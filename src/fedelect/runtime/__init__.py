"""Peers as real processes: so far, the signatures that real peers use. Needs the extra `peer`."""

from fedelect.runtime.signing import Ed25519Signer as Ed25519Signer
from fedelect.runtime.signing import Ed25519Verifier as Ed25519Verifier

__all__ = ["Ed25519Signer", "Ed25519Verifier"]
