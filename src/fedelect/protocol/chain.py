"""Certified history: a chain of verified certificates. Every peer keeps one, and so does the server.

Every certificate names the one it builds on, the first names the configuration. A certificate that not all peers have
seen can create two branches; the one that ends in the higher slot is history. A slot has at most one certificate, so
the highest is unique. Elections on that branch count as pulls.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.signing import Verifier
from fedelect.protocol.statements import Certificate, Statement
from fedelect.vocabulary import Ints

HISTORY_LIMIT = 256
"""Largest number of certificates in one message."""


class Admission(Enum):
    """Where a verified certificate went."""

    HEAD = "head"
    """It is the new end of history: the server may train its cohort."""

    KNOWN = "known"
    """It was known before."""

    BEHIND = "behind"
    """It is valid, but another certificate has a higher slot: the server must not train its cohort."""

    UNLINKED = "unlinked"
    """The certificate it builds on is unknown (add those in between first) or not of an earlier slot."""


class CertificateChain:
    """Verified certificates, and which of them are history.

    The federation's server keeps one of these and trains a cohort only when `add` answers `Admission.HEAD`.

    Args:
        config: The election's configuration: who the clients are, and how many must sign.
        verifier: Checks their signatures.
    """

    def __init__(self, config: PeerConfig, verifier: Verifier) -> None:
        self._config = config
        self._verifier = verifier
        self._known: dict[bytes, Certificate] = {}
        self._clear()

    def _clear(self) -> None:
        self._main: list[Certificate] = []
        self._place = {self._config.digest: 0}  # identity -> length of history up to and including it
        self._pulls = np.zeros(self._config.clients, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._main)

    def __contains__(self, identity: object) -> bool:
        """Whether this is the identity of a certificate in history, or of the empty history."""
        return identity in self._place

    @property
    def head(self) -> bytes:
        """Identity of the last certificate of history; the hash of the configuration if there is none."""
        return self._main[-1].identity if self._main else self._config.digest

    @property
    def slot(self) -> int:
        """The slot of the last certificate; 0 if there is none."""
        return self._main[-1].slot if self._main else 0

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """History, oldest first."""
        return tuple(self._main)

    @property
    def pulls(self) -> Ints:
        """(N,) number of elections of each client, as a copy."""
        return self._pulls.copy()

    def elections(self, client: int, until: bytes) -> int:
        """Number of elections of `client` on the branch that ends with the known certificate `until`."""
        if until == self.head:
            return int(self._pulls[client])
        return sum(client in certificate.cohort for certificate in self._back_from(until))

    def at(self, slot: int) -> Certificate | None:
        """The certificate of `slot` in history, if there is one."""
        for certificate in reversed(self._main):
            if certificate.slot <= slot:
                return certificate if certificate.slot == slot else None
        return None

    def add(self, certificate: Certificate) -> Admission:
        """Verify a certificate and, if what it builds on is known, keep it.

        Raises:
            RemoteProtocolError: It is no certificate of this election. Nothing has changed.
        """
        if certificate.identity not in self._known:
            self.check(certificate)
        return self._link(certificate)

    def extend(self, certificates: Sequence[Certificate]) -> tuple[Certificate, ...]:
        """Add several, oldest first, all or (raising) none; returns those that were not known and could be linked."""
        for certificate in certificates:
            if certificate.identity not in self._known:
                self.check(certificate)
        new = (Admission.HEAD, Admission.BEHIND)
        return tuple(certificate for certificate in certificates if self._link(certificate) in new)

    def check(self, certificate: Certificate) -> None:
        """Raise RemoteProtocolError unless a quorum of the election's clients signed this."""
        config, statement = self._config, certificate.statement
        fault = statement_fault(statement, config)
        if fault is not None:
            raise RemoteProtocolError(f"not a certificate of this election: {fault}")
        signers = [client for client, _ in certificate.signatures]
        if sorted(set(signers)) != signers or not all(0 <= client < config.clients for client in signers):
            raise RemoteProtocolError(f"signers must be different clients in order, got {signers}")
        if len(signers) < config.quorum:
            raise RemoteProtocolError(f"{len(signers)} signatures are no certificate; it takes {config.quorum}")
        for client, signature in certificate.signatures:
            if not self._verifier.verify(config.keys[client], statement.content, signature):
                raise RemoteProtocolError(f"the signature of client {client} to the certificate is not its own")

    def locator(self) -> tuple[bytes, ...]:
        """Identities from the head backwards at growing distances, ending with that of the empty history."""
        names, back, step = [], len(self._main) - 1, 1
        while back >= 0:
            names.append(self._main[back].identity)
            back, step = back - step, step * (2 if len(names) > 2 else 1)
        return (*names, self._config.digest)

    def after(self, locator: Sequence[bytes], limit: int = HISTORY_LIMIT) -> tuple[Certificate, ...]:
        """History after the first identity in `locator` that is known here; at most `limit` certificates.

        For an identity on another branch: history after the point where that branch begins.
        """
        for name in locator:
            while name not in self._place and name in self._known:
                name = self._known[name].statement.previous
            if name in self._place:
                start = self._place[name]
                return tuple(self._main[start : start + limit])
        return ()

    def find(self, identity: bytes) -> Certificate | None:
        """The verified certificate with this identity, in history or on another branch."""
        return self._known.get(identity)

    def knows(self, identity: bytes) -> bool:
        """Whether this is a verified certificate, in history or on another branch, or the empty history."""
        return identity in self._known or identity == self._config.digest

    def elections_between(self, client: int, since: bytes, until: bytes) -> int | None:
        """Elections of `client` after the certificate `since` on the branch that ends with `until`.

        Whether that branch is history now does not matter. None if `since` is not on it, or `until` is unknown.
        """
        if not self.knows(until):
            return None
        elections = 0
        for certificate in self._back_from(until):
            if certificate.identity == since:
                return elections
            elections += client in certificate.cohort
        return elections if since == self._config.digest else None

    def _back_from(self, identity: bytes) -> Iterator[Certificate]:
        """The branch that ends with this certificate, newest first."""
        link = self._known.get(identity)
        while link is not None:
            yield link
            link = self._known.get(link.statement.previous)

    def _link(self, certificate: Certificate) -> Admission:
        if certificate.identity in self._known:
            return Admission.KNOWN
        previous = certificate.statement.previous
        if previous != self._config.digest:
            before = self._known.get(previous)
            if before is None or before.slot >= certificate.slot:
                return Admission.UNLINKED
        self._known[certificate.identity] = certificate
        if certificate.slot <= self.slot:
            return Admission.BEHIND
        if previous != self.head:
            self._rebuild(certificate)
        else:
            self._append(certificate)
        return Admission.HEAD

    def _append(self, certificate: Certificate) -> None:
        self._main.append(certificate)
        self._place[certificate.identity] = len(self._main)
        self._pulls[list(certificate.cohort)] += 1

    def _rebuild(self, head: Certificate) -> None:
        branch = list(self._back_from(head.identity))
        self._clear()
        for certificate in reversed(branch):
            self._append(certificate)


def statement_fault(statement: Statement, config: PeerConfig) -> str | None:
    """Why this is no statement of the election, or None."""
    cohort: Any = statement.cohort
    if statement.configuration != config.digest:
        return f"it is of configuration {statement.configuration.hex()}, not {config.digest.hex()}"
    if statement.slot < 1:
        return f"slots are numbered from 1, got {statement.slot}"
    if list(cohort) != sorted(set(cohort)) or not all(0 <= client < config.clients for client in cohort):
        return f"a cohort is different clients in order, got {list(cohort)}"
    if len(cohort) != config.settings.budget:
        return f"a cohort has {config.settings.budget} members, got {list(cohort)}"
    return None
