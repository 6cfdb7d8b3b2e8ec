"""The certificate authority of a federation, and the TLS certificates that it signs. Needs the extra `peer`."""

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from fedelect.errors import ConfigurationError, MissingExtraError
from fedelect.runtime.identity.files import CA_KEY_NAME, CA_NAME, read_file

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingExtraError("identities of real peers", "peer") from error

VALID_DAYS = 825
"""Validity of a peer's certificate; see `renew`."""

CA_VALID_DAYS = 3650
"""Validity of the CA's own certificate."""


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
        """Create a new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _make_name("fedelect federation CA")
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
        builder = _builder(name, name, key.public_key(), CA_VALID_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
        return cls(key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()))

    @classmethod
    def read(cls, folder: Path) -> "Authority":
        """Read the authority in the folder `ca` of a federation.

        Raises:
            ConfigurationError: It is missing, incomplete, or has expired.
        """
        missing = [name for name in (CA_NAME, CA_KEY_NAME) if not os.path.isfile(folder / name)]
        if missing:
            raise ConfigurationError(
                f"{folder} has no {' and no '.join(missing)}; name the folder `ca` that `fedelect peers init` made"
            )
        try:
            certificate = x509.load_pem_x509_certificate(read_file(folder / CA_NAME))
            key = serialization.load_pem_private_key(read_file(folder / CA_KEY_NAME, secret=True), password=None)
        except ConfigurationError:
            raise  # a file that is not there; it is a ValueError too
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"{folder} holds no certificate authority: {error}; restore it") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ConfigurationError(f"{folder / CA_KEY_NAME} is not the key of {folder / CA_NAME}; restore both")
        if certificate.not_valid_after_utc < datetime.datetime.now(datetime.UTC):
            raise ConfigurationError(
                f"the CA in {folder} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; found a new federation"
            )
        return cls(key, certificate)

    @property
    def certificate_pem(self) -> bytes:
        """Its certificate, public."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Its secret."""
        return _key_pem(self.key)

    def certify(self, name: str, host: str, valid_days: float = VALID_DAYS) -> tuple[bytes, bytes]:
        """Issue a certificate for `name`, listening on `host` (a name or IP address); return it and its key, both PEM.

        It is valid for `valid_days`, but not longer than the CA itself.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        bare = host.strip("[]")
        try:
            alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(bare))
        except ValueError:
            alternative = x509.DNSName(bare)
        until = self.certificate.not_valid_after_utc
        builder = _builder(_make_name(name), self.certificate.subject, key.public_key(), valid_days, until)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = builder.add_extension(purposes, critical=False).sign(self.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)


def common_name(certificate: x509.Certificate) -> str:
    """Return the common name of a certificate."""
    return ", ".join(str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid_days: float,
    until: datetime.datetime | None = None,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    end = now + datetime.timedelta(days=valid_days)
    begin = min(now, end) - datetime.timedelta(hours=1)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin)
    return builder.not_valid_after(end if until is None else min(end, until))


def _make_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
