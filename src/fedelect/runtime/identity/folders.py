"""Create, read and check the folders of a federation of real peers.

`create_federation` writes a folder for each peer, to be brought to its machine; the CA's, to be locked away; and the
server's, which holds the roster and no key. A peer has two secrets, in files that only their owner can read: one signs
its messages in elections, the other is for TLS. The party that creates the keys could sign for every client: it must
not be the operator of the FL server.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from fedelect.errors import ConfigurationError
from fedelect.protocol import ElectionSettings, PeerConfig
from fedelect.runtime.identity.authority import Authority, common_name
from fedelect.runtime.identity.files import (
    CA_KEY_NAME,
    CA_NAME,
    CERTIFICATE_NAME,
    SIGNING_KEY_NAME,
    TLS_KEY_NAME,
    read_file,
    write_file,
)
from fedelect.runtime.roster import ROSTER_NAME, Member, Roster, encode_roster, read_roster
from fedelect.runtime.signing import SECRET_BYTES, Ed25519Signer
from fedelect.runtime.transport.tls import TlsFiles


@dataclass(frozen=True, slots=True)
class Identity:
    """A peer's folder, read and checked.

    Attributes:
        folder: The folder.
        roster: The federation.
        config: Configuration of the election.
        client: Its number.
        signer: Its secret.
        tls: Its TLS files.
        expires: Expiry of its certificate.
    """

    folder: Path
    roster: Roster
    config: PeerConfig
    client: int
    signer: Ed25519Signer
    tls: TlsFiles
    expires: datetime.datetime


def member_names(clients: int) -> tuple[str, ...]:
    """Return the names of peers, in client order.

    >>> member_names(3)
    ('peer00', 'peer01', 'peer02')
    """
    return tuple(f"peer{client:02d}" for client in range(clients))


def create_federation(
    out: Path,
    *,
    addresses: Sequence[str],
    edges: Sequence[tuple[int, int]],
    couplings: Sequence[float],
    settings: ElectionSettings,
    keys: Sequence[bytes] | None = None,
) -> Roster:
    """Write the folders of a new federation: `ca`, `server` and one for each peer.

    Args:
        out: The folder to hold them; it must not exist, or be empty.
        addresses: Address each client listens on, host:port, in client order.
        edges: (one, other) links of the graph.
        couplings: J of each link.
        settings: Settings of the election.
        keys: Public keys that the clients made (`new_signing_key`), in client order; then no signing secret is
            written, and each client adds its own to its folder. None to make all of them here.

    Raises:
        ConfigurationError: No election can be held like this, or the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{out} is not empty; name a new folder, for keys are never overwritten")
    if keys is not None and (len(keys) != len(addresses) or any(len(key) != SECRET_BYTES for key in keys)):
        raise ConfigurationError(
            f"there must be a public key of {SECRET_BYTES} bytes for each of the {len(addresses)} clients, got "
            f"{len(keys)} keys of {sorted(set(map(len, keys)))} bytes"
        )
    signers = [Ed25519Signer.generate() for _ in addresses] if keys is None else []
    public = [signer.key for signer in signers] if keys is None else keys
    members = tuple(
        Member(name=name, address=address, key=key.hex())
        for name, address, key in zip(member_names(len(addresses)), addresses, public, strict=True)
    )
    roster = Roster(members=members, edges=tuple(edges), couplings=tuple(couplings), settings=settings)
    roster.config()
    authority = Authority.generate()
    write_file(out / "ca" / CA_NAME, authority.certificate_pem)
    write_file(out / "ca" / CA_KEY_NAME, authority.key_pem, secret=True)
    for holder in ("ca", "server"):
        write_file(out / holder / ROSTER_NAME, encode_roster(roster))
    for member in members:
        folder = out / member.name
        certificate, key = authority.certify(member.name, member.address.rpartition(":")[0])
        write_file(folder / ROSTER_NAME, encode_roster(roster))
        write_file(folder / CA_NAME, authority.certificate_pem)
        write_file(folder / CERTIFICATE_NAME, certificate)
        write_file(folder / TLS_KEY_NAME, key, secret=True)
    for member, signer in zip(members, signers, strict=False):  # none if the clients have their own
        _write_signing_key(out / member.name, signer)
    return roster


def new_signing_key(folder: Path) -> bytes:
    """Make a client's signing secret in its folder; return the public key, for `create_federation`.

    Raises:
        ConfigurationError: There is one already.
    """
    if (folder / SIGNING_KEY_NAME).exists():
        raise ConfigurationError(f"{folder / SIGNING_KEY_NAME} is there already, and keys are never overwritten")
    signer = Ed25519Signer.generate()
    _write_signing_key(folder, signer)
    return signer.key


def _write_signing_key(folder: Path, signer: Ed25519Signer) -> None:
    write_file(folder / SIGNING_KEY_NAME, signer.secret.hex().encode() + b"\n", secret=True)


def read_identity(folder: Path) -> Identity:
    """Read a peer's folder and check that key, certificate, CA and roster belong together.

    Raises:
        ConfigurationError: Something is missing or does not belong together; the message says what.
    """
    roster = read_roster(folder)
    config = roster.config()
    text = read_file(folder / SIGNING_KEY_NAME, secret=True).decode("ascii", errors="replace").strip()
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise ConfigurationError(f"{folder / SIGNING_KEY_NAME} holds no key: {SECRET_BYTES} bytes in hexadecimal")
    signer = Ed25519Signer(secret)
    if signer.key not in config.keys:
        raise ConfigurationError(
            f"the key in {folder / SIGNING_KEY_NAME} is not in the roster; this peer is no member: put back the key "
            f"that it was founded with, or have it enrolled in a new roster"
        )
    client = config.keys.index(signer.key)
    tls = TlsFiles(ca=folder / CA_NAME, certificate=folder / CERTIFICATE_NAME, key=folder / TLS_KEY_NAME)
    expires = _check_tls(tls, roster.members[client].name)
    return Identity(folder, roster, config, client, signer, tls, expires)


def _check_tls(tls: TlsFiles, name: str) -> datetime.datetime:
    """Check the TLS files; return the certificate's expiry."""
    try:
        authority = x509.load_pem_x509_certificate(read_file(tls.ca))
        certificate = x509.load_pem_x509_certificate(read_file(tls.certificate))
        key = serialization.load_pem_private_key(read_file(tls.key, secret=True), password=None)
        certificate.verify_directly_issued_by(authority)
    except ConfigurationError:
        raise  # a file that is not there; it is a ValueError too
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ConfigurationError(
            f"the TLS files in {tls.ca.parent} do not belong together: {str(error) or 'not signed by this CA'}; a "
            f"peer does not start without TLS: restore {CA_NAME}, {CERTIFICATE_NAME} and {TLS_KEY_NAME}"
        ) from error
    if common_name(certificate) != name:
        raise ConfigurationError(
            f"{tls.certificate} is of {common_name(certificate)!r}, but the roster calls the holder of this key "
            f"{name!r}; restore the file"
        )
    if key.public_key() != certificate.public_key():
        raise ConfigurationError(
            f"{tls.key} is not the key of {tls.certificate}; restore both from one source. If a renewal was "
            f"interrupted, another one mends it: {_renewal(tls, name)}"
        )
    now = datetime.datetime.now(datetime.UTC)
    if certificate.not_valid_before_utc > now:
        raise ConfigurationError(
            f"{tls.certificate} is good only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on, and this "
            f"machine's clock says {now:%Y-%m-%d %H:%M}; set the clock"
        )
    if certificate.not_valid_after_utc < now:
        raise ConfigurationError(
            f"{tls.certificate} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; {_renewal(tls, name)}"
        )
    return certificate.not_valid_after_utc


def _renewal(tls: TlsFiles, name: str) -> str:
    folder = tls.certificate.parent
    return f"the holder of the CA runs: fedelect peers renew {name} --folder {folder} --ca CA_FOLDER"
