"""The FL server's side of elections: it says that a slot begins, and believes certificates, nothing else."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Admission, Certificate, CertificateChain, PeerConfig, Verifier, decode_record, encode
from fedelect.runtime.host_messages import Agreed, Begin, Command, Notice, Recount, Skipped
from fedelect.runtime.launch import Ended, Hears


class Reached(Protocol):
    """The peers as the server reaches them; see `fedelect.runtime.launch.PeerProcesses`."""

    @property
    def alive(self) -> frozenset[int]:
        """Who is there."""

    def tell(self, client: int, command: Command) -> None:
        """Give one peer a command."""

    def listen(self, finished: Callable[[int, Notice | Ended], bool], within_s: float) -> bool:
        """Hear the peers until `finished` says so; False if that took too long."""


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """How an election ended.

    Attributes:
        slot: The slot that was elected for.
        certificate: What the server has verified; None if nobody was elected.
        reason: Why nobody was, in words.
        seconds: From the beginning until the certificate was verified, or the slot was given up.
        done: Which clients had decided when the server stopped listening.
    """

    slot: int
    certificate: Certificate | None
    reason: str
    seconds: float
    done: frozenset[int]


class ElectionServer:
    """What the FL server does in an election. It holds no key and sees no opinion.

    Args:
        crew: The peers.
        config: The election, from the roster.
        verifier: Checks signatures.
        hears: Told of whatever the peers say.
    """

    def __init__(
        self, crew: Reached, config: PeerConfig, verifier: Verifier, hears: Hears = lambda client, notice: None
    ) -> None:
        self._crew = crew
        self._config = config
        self.chain = CertificateChain(config, verifier)
        self._hears = hears
        self._asked: set[int] = set()  # who was asked for its whole history in this election

    def begin(self, slot: int, *, judged: int = 0, model: Path | None = None) -> None:
        """Tell the peers that `slot` begins, and which model to judge first."""
        for client in sorted(self._crew.alive):
            self._crew.tell(client, self._command(slot, judged, None if model is None else str(model), None))

    def begin_with(self, slot: int, *, judged: int, opinions: Mapping[int, float | None]) -> None:
        """The same with opinions that are given; for tests and measurements, where there is no model."""
        for client, opinion in opinions.items():
            self._crew.tell(client, self._command(slot, judged, None, opinion))

    def hold(self, slot: int, *, within_s: float, all_of: frozenset[int] = frozenset()) -> ElectionResult:
        """Wait until the slot is decided or given up by all.

        Args:
            slot: A slot that has begun.
            within_s: When to stop waiting.
            all_of: Clients whose own word to wait for, as long as they are alive, also when there is a certificate.
        """
        self._asked.clear()
        began = time.monotonic()
        certified_at: list[float] = []
        done: set[int] = set()
        reasons: dict[int, str] = {}

        def finished(client: int, notice: Notice | Ended) -> bool:
            self._hears(client, notice)
            if isinstance(notice, Agreed):
                if self._admit(client, notice.certificate) and self.chain.slot == slot and not certified_at:
                    certified_at.append(time.monotonic())
                if notice.slot == slot:
                    done.add(client)
            elif isinstance(notice, Skipped) and notice.slot == slot:
                reasons[client] = notice.reason
            alive = self._crew.alive
            return all_of & alive <= done | set(reasons) if certified_at else alive <= set(reasons)

        in_time = self._crew.listen(finished, within_s)
        certificate = self.chain.at(slot)
        reason = reasons[min(reasons)] if reasons else "" if in_time else f"no word within {within_s:g} s"
        seconds = (certified_at or [time.monotonic()])[0] - began
        return ElectionResult(slot, certificate, "" if certificate is not None else reason, seconds, frozenset(done))

    def _admit(self, client: int, text: str) -> bool:
        """Whether this is a certificate, and the last one; if those before it are not known, the peer is asked."""
        try:
            certificate = decode_record(bytes.fromhex(text))
            if not isinstance(certificate, Certificate):
                return False
            admission = self.chain.add(certificate)
        except (RemoteProtocolError, ValueError):
            return False  # whoever says such things is not believed; the others are heard on
        if admission is Admission.UNLINKED and client not in self._asked:
            self._asked.add(client)
            self._crew.tell(client, Recount())  # all of it: what is missing may have branched off anywhere
        return admission is Admission.HEAD

    def _command(self, slot: int, judged: int, model: str | None, opinion: float | None) -> Begin:
        last = tuple(encode(certificate).hex() for certificate in self.chain.certificates[-1:])
        return Begin(slot=slot, judged=judged, model=model, opinion=opinion, certificates=last)
