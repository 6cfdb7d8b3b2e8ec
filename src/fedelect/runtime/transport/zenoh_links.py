"""Real links: zenoh between peers, over mutual TLS. Needs the extra `peer`.

Every peer listens on one address and connects to its lower-numbered neighbours; zenoh reconnects after a loss and
notices a hung neighbour by its lease. Scouting is off. TLS admits members that the federation's CA has certified. The
access rules, by the certificate's common name, allow neighbour i only to publish from i to this peer and to subscribe
to messages from this peer to i: a member that is no neighbour gets a link and no message. A link is up when the
neighbour's subscription has arrived. A full queue drops (congestion control DROP): the protocol repeats messages, and
no send ever blocks.
"""

import functools
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedelect._imports import require_extras
from fedelect.errors import ConfigurationError
from fedelect.protocol import FRAME_LIMIT
from fedelect.runtime.transport.base import Frame, Inbox, LinkDown, LinkUp

LEASE_MS = 4000
"""Silence, keep-alives included, after which a neighbour is down, milliseconds."""

QUEUED_FRAMES = 16
"""Small frames that can wait to be sent to a neighbour, the most that zenoh allows. Its default, 2, drops some of any
burst on a busy machine, and each costs a resend interval."""


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


class ZenohTransport:
    """One peer's links to its neighbours.

    Args:
        realm: Name of the election, so that two never mix; letters and digits.
        client: The client whose links these are.
        address: Address to listen on, host:port.
        neighbours: By number, their names (as in their certificates) and addresses.
        tls: Keys and certificates; required.
    """

    def __init__(
        self, *, realm: str, client: int, address: str, neighbours: Mapping[int, tuple[str, str]], tls: TlsFiles
    ) -> None:
        require_extras("links between real peers", zenoh="peer")
        for path in (tls.ca, tls.certificate, tls.key):
            if not path.is_file():
                raise ConfigurationError(f"no TLS without {path}; a peer does not start unprotected: restore the file")
        self._realm, self._client = realm, client
        self._settings = _settings(realm, client, address, neighbours, tls)
        self._neighbours = tuple(neighbours)
        self._lock = threading.Lock()
        self._session: Any = None
        self._publishers: dict[int, Any] = {}
        self._declared: list[Any] = []
        self._inbox: Inbox | None = None

    def start(self, inbox: Inbox) -> None:
        """See `Transport`.

        Raises:
            ConfigurationError: The address cannot be listened on, or the TLS files cannot be used.
        """
        import zenoh  # here, so that servers, which open no links, do without it

        self._inbox = inbox
        try:
            self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(self._settings)))
        except zenoh.ZError as error:
            address = self._settings["listen"]["endpoints"][0]
            raise ConfigurationError(
                f"cannot listen on {address}: {error}; is the port taken, the address this machine's, the key the "
                f"certificate's?"
            ) from error
        for neighbour in self._neighbours:
            hears, says = _key(self._realm, neighbour, self._client), _key(self._realm, self._client, neighbour)
            self._declared.append(
                self._session.declare_subscriber(hears, functools.partial(self._on_sample, neighbour))
            )
            publisher = self._session.declare_publisher(
                says, congestion_control=zenoh.CongestionControl.DROP, express=True
            )
            self._publishers[neighbour] = publisher
            listener = functools.partial(self._on_match, neighbour)
            self._declared.append(publisher.declare_matching_listener(listener))
            if publisher.matching_status.matching:
                inbox.put(LinkUp(neighbour))

    def send(self, neighbour: int, frame: bytes) -> None:
        """See `Transport`."""
        publisher = self._publishers.get(neighbour)
        if publisher is not None:
            publisher.put(frame)

    def close(self) -> None:
        """See `Transport`."""
        with self._lock:
            self._inbox, session, self._session = None, self._session, None
        if session is not None:
            self._publishers.clear()
            self._declared.clear()
            session.close()

    def _on_sample(self, neighbour: int, sample: Any) -> None:
        with self._lock:
            inbox = self._inbox
        if inbox is not None:
            inbox.offer(Frame(neighbour, sample.payload.to_bytes()))

    def _on_match(self, neighbour: int, status: Any) -> None:
        with self._lock:
            inbox = self._inbox
        if inbox is not None:
            inbox.put(LinkUp(neighbour) if status.matching else LinkDown(neighbour))


def _key(realm: str, sender: int, receiver: int) -> str:
    return f"fedelect/{realm}/{sender}/{receiver}"


def _settings(
    realm: str, client: int, address: str, neighbours: Mapping[int, tuple[str, str]], tls: TlsFiles
) -> dict[str, Any]:
    calls = [f"tls/{where}" for number, (_, where) in neighbours.items() if number < client]
    ours = {"certificate": str(tls.certificate), "private_key": str(tls.key)}
    return {
        "mode": "peer",
        "listen": {"endpoints": [f"tls/{address}"]},
        "connect": {
            "endpoints": calls,
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 100, "period_max_ms": 1000, "period_increase_factor": 2},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {
            "link": {
                "tx": {"lease": LEASE_MS, "keep_alive": 4, "queue": {"size": {"data": QUEUED_FRAMES}}},
                "rx": {"max_message_size": FRAME_LIMIT + 65536},
                "tls": {
                    "root_ca_certificate": str(tls.ca),
                    "enable_mtls": True,
                    "verify_name_on_connect": True,
                    **{f"{side}_{name}": path for side in ("listen", "connect") for name, path in ours.items()},
                },
            }
        },
        "access_control": _rules(realm, client, neighbours),
    }


def _rules(realm: str, client: int, neighbours: Mapping[int, tuple[str, str]]) -> dict[str, Any]:
    rules, subjects, policies = [], [], []
    for number, (name, _) in neighbours.items():
        hears, says = _key(realm, number, client), _key(realm, client, number)
        allowed = {
            f"hear{number}": (["ingress"], ["put"], hears),
            f"ask{number}": (["egress"], ["declare_subscriber"], hears),
            f"say{number}": (["egress"], ["put"], says),
            f"asked{number}": (["ingress"], ["declare_subscriber"], says),
        }
        for rule, (flows, messages, key) in allowed.items():
            rules.append({"id": rule, "permission": "allow", "flows": flows, "messages": messages, "key_exprs": [key]})
        subjects.append({"id": name, "cert_common_names": [name]})
        policies.append({"rules": list(allowed), "subjects": [name]})
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }
