"""A peer's TLS files, and the two sides of mutual TLS that they allow."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedelect.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsFiles:
    """Paths of a peer's TLS files.

    Attributes:
        ca: Certificate of the federation's CA.
        certificate: This peer's certificate; its common name is the peer's name.
        key: Its private key.
    """

    ca: Path
    certificate: Path
    key: Path


def make_contexts(tls: TlsFiles) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts to listen and to call with: TLS 1.3, both sides certified by the federation's CA.

    Raises:
        ConfigurationError: A file is missing or cannot be used.
    """
    for path in (tls.ca, tls.certificate, tls.key):
        if not path.is_file():
            raise ConfigurationError(f"no TLS without {path}; a peer does not start unprotected: restore the file")
    listening, calling = (ssl.SSLContext(side) for side in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT))
    try:
        for context in (listening, calling):
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(tls.ca)
            context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the TLS files in {tls.certificate.parent} cannot be used: {error}; is the key the certificate's?"
        ) from error
    calling.check_hostname = True  # a called neighbour must be certified for the host that the roster names
    listening.num_tickets = 0  # sessions are not resumed: every link shows its certificate
    return listening, calling


def certified_name(transport: Any) -> str | None:
    """Return the common name in the other side's verified certificate; None unless it has exactly one."""
    certificate = transport.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else None
