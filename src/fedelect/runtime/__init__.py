"""Peers as real processes: identities, links over mutual TLS, the host of a peer, and many of them on one machine.

Needs the extra `peer`. The rest is imported from its own modules: `fedelect.runtime.identity` (keys, certificates,
folders), `node` (the host), `transport` (links), `process` and `launch` (processes), `demo` (a federation to look at).
"""

from fedelect.runtime.signing import Ed25519Signer, Ed25519Verifier

__all__ = ["Ed25519Signer", "Ed25519Verifier"]
