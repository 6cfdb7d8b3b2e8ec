"""Who is who among real peers: a CA, keys and certificates, and the folder of each peer. Needs the extra `peer`."""

from fedelect.runtime.identity.authority import VALID_DAYS as VALID_DAYS
from fedelect.runtime.identity.authority import Authority as Authority
from fedelect.runtime.identity.files import CA_NAME as CA_NAME
from fedelect.runtime.identity.files import CERTIFICATE_NAME as CERTIFICATE_NAME
from fedelect.runtime.identity.files import PUBLIC_PREFIX as PUBLIC_PREFIX
from fedelect.runtime.identity.files import SIGNING_KEY_NAME as SIGNING_KEY_NAME
from fedelect.runtime.identity.files import TLS_KEY_NAME as TLS_KEY_NAME
from fedelect.runtime.identity.folders import Identity as Identity
from fedelect.runtime.identity.folders import found as found
from fedelect.runtime.identity.folders import member_names as member_names
from fedelect.runtime.identity.folders import new_signing_key as new_signing_key
from fedelect.runtime.identity.folders import read_identity as read_identity
from fedelect.runtime.identity.renewal import RENEW_DAYS as RENEW_DAYS
from fedelect.runtime.identity.renewal import Renewed as Renewed
from fedelect.runtime.identity.renewal import renew as renew

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
    "Renewed",
    "found",
    "member_names",
    "new_signing_key",
    "read_identity",
    "renew",
]
