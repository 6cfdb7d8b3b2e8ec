"""Interfaces of signing and verifying, and a cheap implementation for simulations.

The protocol contains no cryptography: it passes bytes to a `Signer` and a `Verifier`. Real peers use ed25519
(`fedelect.runtime.signing`). The keyed hash here is symmetric: a verifier can also forge, so it is only for peers in
one process.
"""

import hashlib
import hmac
from typing import Protocol, final, runtime_checkable

from fedelect.seeds import rank_key


@runtime_checkable
class Signer(Protocol):
    """Signs with one client's secret key."""

    @property
    def key(self) -> bytes:
        """The public key, as in the configuration."""

    def sign(self, message: bytes) -> bytes:
        """The signature of `message`."""


@runtime_checkable
class Verifier(Protocol):
    """Checks signatures; needs no secret."""

    def verify(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Whether the holder of `key` signed `message`. Never raises, whatever the bytes are."""


@final
class KeyedHashSigner:
    """Signs with a keyed BLAKE2b hash; the key is the secret. For simulations only."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @property
    def key(self) -> bytes:
        """The secret itself: with a keyed hash there is no other key to check with."""
        return self._key

    def sign(self, message: bytes) -> bytes:
        """Sixteen bytes."""
        return hashlib.blake2b(message, key=self._key, digest_size=16).digest()


@final
class KeyedHashVerifier:
    """Checks what `KeyedHashSigner` signed."""

    def verify(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Whether `signature` is the keyed hash of `message`."""
        return hmac.compare_digest(hashlib.blake2b(message, key=key, digest_size=16).digest(), signature)


def simulated_signers(clients: int, seed: int = 1) -> tuple[KeyedHashSigner, ...]:
    """One keyed-hash signer for each of `clients` simulated clients."""
    return tuple(KeyedHashSigner(rank_key(seed, "signing", client)) for client in range(clients))
