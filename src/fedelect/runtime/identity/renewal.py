"""A new TLS certificate and key for a peer, before the old one expires. What it signs elections with stays."""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes

from fedelect.errors import ConfigurationError
from fedelect.runtime.identity.authority import Authority, common_name
from fedelect.runtime.identity.files import CA_NAME, CERTIFICATE_NAME, TLS_KEY_NAME, read_file, replace_file
from fedelect.runtime.roster import read_roster

RENEW_DAYS = 60
"""A peer says at its start when its certificate has fewer days left."""


def renew(folder: Path, ca: Path) -> datetime.datetime:
    """Give the peer of `folder` a new TLS certificate and key; returns when that expires.

    Only the roster, the CA's certificate and the old certificate are read, so they may be copies that were brought to
    the CA without the signing key. The old certificate may have expired.

    Args:
        folder: The peer's folder, or those three files of it.
        ca: The folder of the CA that the federation was founded with.

    Raises:
        ConfigurationError: It is another CA, or the folder is no member's.
    """
    authority = Authority.read(ca)
    roster = read_roster(folder)
    trusted, old = (_certificate(folder / name) for name in (CA_NAME, CERTIFICATE_NAME))
    if trusted != authority.certificate:
        raise ConfigurationError(
            f"{ca} is another CA than the one this peer's neighbours trust: SHA-256 {_print(authority.certificate)}, "
            f"but {folder / CA_NAME} has {_print(trusted)}; renew with the CA that the federation was founded with"
        )
    try:
        old.verify_directly_issued_by(trusted)
    except (InvalidSignature, ValueError) as error:
        raise ConfigurationError(
            f"{folder / CERTIFICATE_NAME} is not of the CA in {folder / CA_NAME}; restore the peer's own"
        ) from error
    members = {member.name: member for member in roster.members}
    name = common_name(old)
    if name not in members:
        raise ConfigurationError(f"{folder / CERTIFICATE_NAME} is of {name!r}, which is not in the roster")
    certificate, key = authority.certify(name, members[name].address.rpartition(":")[0])
    replace_file(folder / TLS_KEY_NAME, key, secret=True)
    replace_file(folder / CERTIFICATE_NAME, certificate)
    return _certificate(folder / CERTIFICATE_NAME).not_valid_after_utc


def _certificate(path: Path) -> x509.Certificate:
    content = read_file(path)
    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError as error:
        raise ConfigurationError(f"{path} is no certificate: {error}; restore it") from error


def _print(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()[:16]
