"""Who is who among real peers: a CA, keys and certificates, and the folder of each peer. Needs the extra `peer`.

`found` deals everything in one place: a folder for each peer, which is all that the peer needs and is to be brought to
its machine; the CA's, which is to be locked away; and the server's, which holds the roster and no key at all. Two
secrets belong to a peer, in files that only its owner can read: one signs what it says in elections, the other is for
TLS. Who deals the keys could speak for everybody: that must not be whoever runs the FL server.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedelect.errors import ConfigurationError, MissingExtraError
from fedelect.protocol import PeerConfig
from fedelect.runtime.roster import ROSTER_NAME, Member, Roster, Settings, encode_roster, read_roster
from fedelect.runtime.signing import SECRET_BYTES, Ed25519Signer
from fedelect.runtime.transport.zenoh_links import TlsFiles

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingExtraError("identities of real peers", "peer") from error

CA_NAME, CERTIFICATE_NAME, TLS_KEY_NAME, SIGNING_KEY_NAME = "ca.pem", "certificate.pem", "tls.key", "signing.key"

VALID_DAYS = 825
"""How long certificates are good for."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A peer's folder, read and found to be whole.

    Attributes:
        folder: The folder.
        roster: Who else is there.
        config: How they elect.
        client: Which of them this is.
        signer: Its secret.
        tls: Where its TLS files lie.
    """

    folder: Path
    roster: Roster
    config: PeerConfig
    client: int
    signer: Ed25519Signer
    tls: TlsFiles


def member_names(clients: int) -> tuple[str, ...]:
    """What peers are called, in client order.

    >>> member_names(3)
    ('peer00', 'peer01', 'peer02')
    """
    return tuple(f"peer{client:02d}" for client in range(clients))


def found(
    out: Path,
    *,
    addresses: Sequence[str],
    edges: Sequence[tuple[int, int]],
    couplings: Sequence[float],
    settings: Settings,
) -> Roster:
    """Write the folders of a new federation: `ca`, `server` and one for each peer.

    Args:
        out: The folder to hold them; it must not exist, or be empty.
        addresses: Where each client listens, host:port, in client order.
        edges: (one, other) links of the graph.
        couplings: J of each link.
        settings: How they elect.

    Raises:
        ConfigurationError: No election can be held like this, or the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{out} is not empty; name a new folder, for keys are never overwritten")
    signers = [Ed25519Signer.generate() for _ in addresses]
    names = member_names(len(addresses))
    members = tuple(
        Member(name=name, address=address, key=signer.key.hex())
        for name, address, signer in zip(names, addresses, signers, strict=True)
    )
    roster = Roster(members=members, edges=tuple(edges), couplings=tuple(couplings), settings=settings)
    roster.config()
    authority = Authority.generate()
    _write(out / "ca" / CA_NAME, authority.certificate_pem)
    _write(out / "ca" / "ca.key", authority.key_pem, secret=True)
    _write(out / "server" / ROSTER_NAME, encode_roster(roster))
    for member, signer in zip(members, signers, strict=True):
        folder = out / member.name
        certificate, key = authority.certify(member.name, member.address.rpartition(":")[0])
        _write(folder / ROSTER_NAME, encode_roster(roster))
        _write(folder / CA_NAME, authority.certificate_pem)
        _write(folder / CERTIFICATE_NAME, certificate)
        _write(folder / TLS_KEY_NAME, key, secret=True)
        _write(folder / SIGNING_KEY_NAME, signer.secret.hex().encode() + b"\n", secret=True)
    return roster


def read_identity(folder: Path) -> Identity:
    """A peer's folder, checked: its keys are in the roster, its certificate is its own and of the CA.

    Raises:
        ConfigurationError: Something is missing or does not belong together; the message says what.
    """
    roster = read_roster(folder)
    config = roster.config()
    text = _read(folder / SIGNING_KEY_NAME, secret=True).decode("ascii", errors="replace").strip()
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
    _check_tls(tls, roster.members[client].name)
    return Identity(folder, roster, config, client, signer, tls)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority.

    Attributes:
        key: Its private key.
        certificate: Signed by itself.
    """

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def generate(cls) -> "Authority":
        """A fresh one."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _named("fedelect federation CA")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(name, name, key.public_key()).add_extension(x509.BasicConstraints(True, 0), critical=True)
        return cls(key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()))

    @property
    def certificate_pem(self) -> bytes:
        """Its certificate, for everybody."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Its secret."""
        return _key_pem(self.key)

    def certify(self, name: str, host: str) -> tuple[bytes, bytes]:
        """A certificate for `name`, listening on `host` (a name or IP address), and its private key, both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        bare = host.strip("[]")
        try:
            alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(bare))
        except ValueError:
            alternative = x509.DNSName(bare)
        builder = _builder(_named(name), self.certificate.subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = builder.add_extension(purposes, critical=False).sign(self.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
    return builder.not_valid_after(now + datetime.timedelta(days=VALID_DAYS))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _check_tls(tls: TlsFiles, name: str) -> None:
    try:
        authority = x509.load_pem_x509_certificate(_read(tls.ca))
        certificate = x509.load_pem_x509_certificate(_read(tls.certificate))
        key = serialization.load_pem_private_key(_read(tls.key, secret=True), password=None)
        certificate.verify_directly_issued_by(authority)
    except ConfigurationError:
        raise  # a file that is not there; it is a ValueError too
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ConfigurationError(
            f"the TLS files in {tls.ca.parent} do not belong together: {str(error) or 'not signed by this CA'}; a "
            f"peer does not start without TLS: restore {CA_NAME}, {CERTIFICATE_NAME} and {TLS_KEY_NAME}"
        ) from error
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [name]:
        raise ConfigurationError(
            f"{tls.certificate} is of {names}, but the roster calls the holder of this key {name!r}; restore the file"
        )
    if key.public_key() != certificate.public_key():
        raise ConfigurationError(f"{tls.key} is not the key of {tls.certificate}; restore both from one source")
    if certificate.not_valid_after_utc < datetime.datetime.now(datetime.UTC):
        raise ConfigurationError(f"{tls.certificate} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; renew it")


def _read(path: Path, *, secret: bool = False) -> bytes:
    try:
        if secret and os.name == "posix" and path.stat().st_mode & 0o077:
            raise ConfigurationError(f"others can read the secret {path}; run: chmod 600 {path}")
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}; a peer starts only with its keys and TLS files: restore it"
        ) from error


def _write(path: Path, content: bytes, *, secret: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    with open(descriptor, "wb") as file:
        file.write(content)
