"""Peers as real processes: identities, links over mutual TLS, the host of a peer, the FL server's side of elections.

Needs the extra `peer`. The rest is imported from its own modules: `fedelect.runtime.identity` (keys, certificates,
folders), `node` (the host), `transport` (links), `process` and `launch` (processes), `server`, `demo`.
"""

from fedelect.runtime.signing import Ed25519Signer, Ed25519Verifier

__all__ = ["Ed25519Signer", "Ed25519Verifier"]
