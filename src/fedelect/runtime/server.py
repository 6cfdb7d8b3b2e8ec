"""The FL server's side of elections: announce slots, verify certificates, ask for missing history. It holds no key.

`ElectionServer` is the same however the peers are reached. `DirectElections` reaches them by commands and notices
(`fedelect.runtime.host_messages`); on Flower `fedelect.flower` reaches them through the clients.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Admission, Certificate, CertificateChain, PeerConfig, Verifier, decode_record, encode
from fedelect.runtime.host_messages import Agreed, BeginSlot, Command, Notice, ReplayCertificates, Skipped
from fedelect.runtime.launch import OnNotice, ProcessEnded


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """How an election ended.

    Attributes:
        slot: The slot that was elected for.
        certificate: The verified certificate; None if nobody was elected.
        reason: Why nobody was elected, in words.
        seconds: From the beginning until the certificate was verified, or the slot was given up.
        decided_by: Clients that had decided when the server stopped listening.
    """

    slot: int
    certificate: Certificate | None
    reason: str
    seconds: float
    decided_by: frozenset[int]


class ElectionServer:
    """Verified certificates, and which clients to ask for missing history. It sees no opinion.

    Args:
        config: The election, from the roster.
        verifier: Checks signatures.

    Attributes:
        config: The same.
        chain: The certificates so far.
    """

    def __init__(self, config: PeerConfig, verifier: Verifier) -> None:
        self.config = config
        self._verifier = verifier
        self.chain = CertificateChain(config, verifier)
        self._slot = 0
        self._unlinked: list[int] = []
        self._asked: set[int] = set()

    def begin(self, slot: int) -> None:
        """Begin the election for `slot`."""
        self._slot = slot
        self._unlinked.clear()
        self._asked.clear()

    @property
    def elected(self) -> Certificate | None:
        """The certificate of the slot that is being elected for, once it is known."""
        return self.chain.at(self._slot)

    @property
    def last_frames(self) -> tuple[bytes, ...]:
        """The last certificate as bytes, for peers that missed it; empty before the first."""
        return tuple(encode(certificate) for certificate in self.chain.certificates[-1:])

    @property
    def frames(self) -> list[bytes]:
        """All certificates as bytes, oldest first; see `restore`."""
        return [encode(certificate) for certificate in self.chain.certificates]

    def restore(self, frames: Iterable[bytes]) -> None:
        """Verify saved certificates anew, and continue from them.

        Raises:
            RemoteProtocolError: One does not verify.
        """
        records = [decode_record(frame) for frame in frames]
        self.chain = CertificateChain(self.config, self._verifier)
        self.chain.extend([record for record in records if isinstance(record, Certificate)])

    def admit(self, frame: bytes, client: int | None = None) -> int:
        """Verify a certificate that a client shows, and add it.

        Args:
            frame: The certificate as bytes.
            client: The client to ask for its history if the certificate does not link to the chain; None to ask none.

        Returns:
            The certificate's slot.

        Raises:
            RemoteProtocolError: It is no certificate of this election.
        """
        certificate = decode_record(frame)
        if not isinstance(certificate, Certificate):
            raise RemoteProtocolError(f"it shows a {type(certificate).__name__} in place of a certificate")
        if self.chain.add(certificate) is Admission.UNLINKED and client is not None and client not in self._asked:
            self._asked.add(client)
            self._unlinked.append(client)
        return certificate.slot

    def take_unlinked(self) -> list[int]:
        """Return the clients to ask for all their certificates; each is returned once per election."""
        clients, self._unlinked = self._unlinked, []
        return clients


class PeerAccess(Protocol):
    """The peers as a server reaches them directly; see `fedelect.runtime.launch.PeerProcesses`."""

    @property
    def alive(self) -> frozenset[int]:
        """Clients whose peers run."""

    def tell(self, client: int, command: Command) -> None:
        """Give one peer a command."""

    def listen(self, finished: Callable[[int, Notice | ProcessEnded], bool], within_s: float) -> bool:
        """Pass notices to `finished` until it returns True; return False if that took too long."""


class DirectElections:
    """Elections among peers that the server reaches by commands and notices.

    Args:
        peers: The peers.
        server: Verifies what they show.
        on_notice: Called with every notice of a peer.
    """

    def __init__(
        self, peers: PeerAccess, server: ElectionServer, on_notice: OnNotice = lambda client, notice: None
    ) -> None:
        self._peers = peers
        self._server = server
        self._on_notice = on_notice

    @property
    def chain(self) -> CertificateChain:
        """The certificates so far."""
        return self._server.chain

    def begin(self, slot: int, *, judged: int = 0, model: Path | None = None) -> None:
        """Tell all peers that run to begin `slot`, and which model to judge first."""
        for client in sorted(self._peers.alive):
            self._peers.tell(client, self._command(slot, judged, model=None if model is None else str(model)))

    def begin_with(self, slot: int, *, judged: int, opinions: Mapping[int, float | None]) -> None:
        """Tell these peers to begin `slot` with given opinions; for tests and measurements, where there is no model."""
        for client, opinion in opinions.items():
            self._peers.tell(client, self._command(slot, judged, opinion=opinion))

    def hold(self, slot: int, *, within_s: float, all_of: frozenset[int] = frozenset()) -> ElectionResult:
        """Wait until the slot is decided, or skipped by all peers that run.

        Args:
            slot: A slot that has begun.
            within_s: When to stop waiting.
            all_of: Clients whose own decision to wait for, while their peers run, also after a certificate is known.
        """
        self._server.begin(slot)
        began = time.monotonic()
        progress = _Progress(slot)

        def finished(client: int, notice: Notice | ProcessEnded) -> bool:
            self._on_notice(client, notice)
            self._hear(progress, client, notice)
            if progress.certified_s is None:
                return self._peers.alive <= progress.skipped.keys()
            return all_of & self._peers.alive <= progress.decided | progress.skipped.keys()

        in_time = self._peers.listen(finished, within_s)
        certificate = self._server.elected
        reason = (
            "" if certificate is not None else progress.reason or ("" if in_time else f"no word within {within_s:g} s")
        )
        ended = time.monotonic() if progress.certified_s is None else progress.certified_s
        return ElectionResult(slot, certificate, reason, ended - began, frozenset(progress.decided))

    def _hear(self, progress: "_Progress", client: int, notice: Notice | ProcessEnded) -> None:
        if isinstance(notice, Skipped) and notice.slot == progress.slot:
            progress.skipped[client] = notice.reason
        if not isinstance(notice, Agreed):
            return
        with contextlib.suppress(RemoteProtocolError, ValueError):  # then this peer is not believed
            self._server.admit(bytes.fromhex(notice.certificate), client)
        for unlinked in self._server.take_unlinked():
            self._peers.tell(unlinked, ReplayCertificates())
        if notice.slot == progress.slot:
            progress.decided.add(client)
        if progress.certified_s is None and self._server.elected is not None:
            progress.certified_s = time.monotonic()

    def _command(self, slot: int, judged: int, *, model: str | None = None, opinion: float | None = None) -> BeginSlot:
        last = tuple(frame.hex() for frame in self._server.last_frames)
        return BeginSlot(slot=slot, judged=judged, model=model, opinion=opinion, certificates=last)


class _Progress:
    """Notices of an election so far."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.decided: set[int] = set()
        self.skipped: dict[int, str] = {}
        self.certified_s: float | None = None

    @property
    def reason(self) -> str:
        """Why the first of the clients that skipped the slot did; empty if none did."""
        return self.skipped[min(self.skipped)] if self.skipped else ""
