"""Names of the files of a peer's identity; read and write them, secrets included."""

import os
from pathlib import Path

from fedelect.errors import ConfigurationError
from fedelect.records.files import sync_folder

CA_NAME = "ca.pem"
"""File of the federation's certificate authority, in each peer's folder."""
CERTIFICATE_NAME = "certificate.pem"
"""File of a peer's own certificate."""
TLS_KEY_NAME = "tls.key"
"""File of the private key of a peer's links."""
SIGNING_KEY_NAME = "signing.key"
"""File of the private key with which a peer signs its values and votes."""
CA_KEY_NAME = "ca.key"

PUBLIC_PREFIX = "ed25519:"
"""Prefix of a public key that people exchange: without it a secret looks the same."""


def read_file(path: Path, *, secret: bool = False) -> bytes:
    """Read a file; ConfigurationError if it is missing, or is a secret that others can read."""
    try:
        if secret and os.name == "posix" and path.stat().st_mode & 0o077:
            raise ConfigurationError(f"others can read the secret {path}; run: chmod 600 {path}")
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}; a peer starts only with its keys and TLS files: restore it"
        ) from error


def write_file(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Write a new file; ConfigurationError if that fails or the file exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
        with open(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise _cannot_write(path, error) from error


def replace_identity_file(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Replace a file durably; a crash leaves the old or the new one."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        write_file(new, content, secret=secret)
        with open(new, "rb") as file:
            os.fsync(file.fileno())
        os.replace(new, path)
        sync_folder(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot write {path}: {error.strerror}; name a folder, new or empty, that may be written to, and check that "
        f"there is room"
    )
