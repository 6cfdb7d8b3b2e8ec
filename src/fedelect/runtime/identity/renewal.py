"""Renew a peer's TLS certificate and key before they expire. Its signing key stays."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes

from fedelect.errors import ConfigurationError
from fedelect.runtime.identity.authority import Authority, common_name
from fedelect.runtime.identity.files import CA_NAME, CERTIFICATE_NAME, TLS_KEY_NAME, read_file, replace_identity_file
from fedelect.runtime.roster import ROSTER_NAME, Roster, read_roster

RENEW_DAYS = 60
"""A peer warns at its start, and every day, when its certificate has fewer days left."""


@dataclass(frozen=True, slots=True)
class RenewedCertificate:
    """A certificate that the CA has renewed.

    Attributes:
        name: The member's name.
        host: Its host, by the CA's own roster.
        expires: Expiry of the certificate.
    """

    name: str
    host: str
    expires: datetime.datetime


def renew(member: str, folder: Path, ca: Path) -> RenewedCertificate:
    """Give `member`, whose folder is `folder`, a new TLS certificate and key.

    Name and host come from the caller and the CA's own roster; the folder may come from anybody, and must agree with
    them. Only its roster, CA certificate and old certificate are read, so copies of these three are enough. The old
    certificate may have expired.

    Args:
        member: Its name in the roster.
        folder: The peer's folder, or those three files of it.
        ca: The folder of the CA that the federation was founded with.

    Raises:
        ConfigurationError: It is another CA, there is no such member, or the folder is not its.
    """
    authority = Authority.read(ca)
    roster = _own_roster(ca)
    hosts = {one.name: one.address.rpartition(":")[0] for one in roster.members}
    if member not in hosts:
        raise ConfigurationError(
            f"{member!r} is not in {ca / ROSTER_NAME}; name one of its members, {min(hosts)} to {max(hosts)}"
        )
    trusted, old = (_certificate(folder / name) for name in (CA_NAME, CERTIFICATE_NAME))
    if trusted != authority.certificate:
        raise ConfigurationError(
            f"{ca} is another CA than the one this peer's neighbours trust: SHA-256 {_print(authority.certificate)}, "
            f"but {folder / CA_NAME} has {_print(trusted)}; renew with the CA that the federation was founded with"
        )
    if read_roster(folder) != roster:
        raise ConfigurationError(
            f"{folder / ROSTER_NAME} is not the roster of this CA, {ca / ROSTER_NAME}: put that one in its place, or "
            f"ask where the folder comes from"
        )
    try:
        old.verify_directly_issued_by(trusted)
    except (InvalidSignature, ValueError) as error:
        raise ConfigurationError(
            f"{folder / CERTIFICATE_NAME} is not of the CA in {folder / CA_NAME}; restore the peer's own"
        ) from error
    if common_name(old) != member:
        raise ConfigurationError(
            f"{folder / CERTIFICATE_NAME} is of {common_name(old)!r}, not of {member!r}; name the folder's own member"
        )
    certificate, key = authority.certify(member, hosts[member])
    replace_identity_file(folder / TLS_KEY_NAME, key, secret=True)
    replace_identity_file(folder / CERTIFICATE_NAME, certificate)
    return RenewedCertificate(member, hosts[member], _certificate(folder / CERTIFICATE_NAME).not_valid_after_utc)


def _own_roster(ca: Path) -> Roster:
    if not (ca / ROSTER_NAME).exists():
        raise ConfigurationError(
            f"{ca} holds no {ROSTER_NAME}, and whom to certify is not taken from "
            f"what an applicant brings: copy {ROSTER_NAME} into it from the folder `server` that was made with it"
        )
    return read_roster(ca)


def _certificate(path: Path) -> x509.Certificate:
    content = read_file(path)
    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError as error:
        raise ConfigurationError(f"{path} is no certificate: {error}; restore it") from error


def _print(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()[:16]
