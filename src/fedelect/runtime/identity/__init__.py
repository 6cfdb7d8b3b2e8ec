"""Identities of real peers: CA, keys, certificates, and the folder of each peer. Needs the extra `peer`."""

from fedelect.runtime.identity.authority import VALID_DAYS, Authority
from fedelect.runtime.identity.files import CA_NAME, CERTIFICATE_NAME, PUBLIC_PREFIX, SIGNING_KEY_NAME, TLS_KEY_NAME
from fedelect.runtime.identity.folders import Identity, create_federation, member_names, new_signing_key, read_identity
from fedelect.runtime.identity.renewal import RENEW_DAYS, RenewedCertificate, renew

__all__ = [
    "CA_NAME",
    "CERTIFICATE_NAME",
    "PUBLIC_PREFIX",
    "RENEW_DAYS",
    "SIGNING_KEY_NAME",
    "TLS_KEY_NAME",
    "VALID_DAYS",
    "Authority",
    "Identity",
    "RenewedCertificate",
    "create_federation",
    "member_names",
    "new_signing_key",
    "read_identity",
    "renew",
]
