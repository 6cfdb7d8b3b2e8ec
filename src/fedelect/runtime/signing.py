"""Ed25519 signatures behind the protocol's `Signer` and `Verifier`. Needs the extra `peer` (cryptography)."""

from typing import Self, final

from fedelect.errors import ConfigurationError, MissingExtraError

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
except ImportError as error:
    raise MissingExtraError("signing by real peers", "peer") from error

SECRET_BYTES = 32
"""Length of a secret, and of a public key."""


@final
class Ed25519Signer:
    """Signs with one client's secret.

    Args:
        secret: 32 bytes, from `generate` or a key file; with them anybody can sign for the client.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise ConfigurationError(f"an ed25519 secret has {SECRET_BYTES} bytes, got {len(secret)}")
        self._private = Ed25519PrivateKey.from_private_bytes(secret)
        self._key = self._private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> Self:
        """Return a signer with a new secret from the operating system."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def secret(self) -> bytes:
        """The 32 bytes to keep in a file that only this client can read."""
        return self._private.private_bytes_raw()

    @property
    def key(self) -> bytes:
        """The public key, 32 bytes, for `PeerConfig.keys`."""
        return self._key

    def sign(self, message: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._private.sign(message)


@final
class Ed25519Verifier:
    """Checks ed25519 signatures; keys are parsed once."""

    def __init__(self) -> None:
        self._keys: dict[bytes, Ed25519PublicKey] = {}

    def verify(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Return whether the holder of `key` signed `message`; False for an invalid key or signature."""
        try:
            public = self._keys.get(key)
            if public is None:
                public = self._keys[key] = Ed25519PublicKey.from_public_bytes(key)
            public.verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True
