"""Stable storage of simulated peers, and its short form in a saved state."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedelect.protocol import Certificate, PeerConfig, Signer
from fedelect.protocol.effects import Record
from fedelect.protocol.statements import Appraisal, Statement
from fedelect.vocabulary import as_cohort


class PeerStorage:
    """What all simulated clients have stored: the certificates of history, which all share, and each one's appraisals.

    Args:
        config: The election's configuration.
        signers: One for each client. A saved state leaves out signatures; they are made again on recall.
    """

    def __init__(self, config: PeerConfig, signers: Sequence[Signer]) -> None:
        self._config = config
        self._signers = signers
        self.certificates: tuple[Certificate, ...] = ()
        self._before: list[dict[bytes, Appraisal]] = [{} for _ in signers]  # when the last election began
        self._now: list[dict[bytes, Appraisal]] = [{} for _ in signers]

    def store(self, client: int, record: Record) -> None:
        """Store an appraisal of `client`; all other records follow from the certificates at the next `begin`."""
        if isinstance(record, Appraisal):
            self._now[client][record.certificate] = record

    def begin(self, certificates: tuple[Certificate, ...]) -> None:
        """Begin an election on top of this history."""
        self.certificates = certificates
        names = [certificate.identity for certificate in certificates]
        self._before = [{name: stored[name] for name in names if name in stored} for stored in self._now]

    def rewind(self) -> list[list[Record]]:
        """Go back to the beginning of the last election; returns each client's records at that moment."""
        self._now = [dict(stored) for stored in self._before]
        return [[*self.certificates, *stored.values()] for stored in self._before]

    def memory(self) -> dict[str, Any]:
        """Those records as JSON-able values; under "bp-gp", of each certificate its appraisal and who lacks it."""
        memory: dict[str, Any] = {"before": [_shorten(certificate) for certificate in self.certificates]}
        if self._config.settings.rule == "bp-gp":
            known = {name: one for stored in self._before for name, one in stored.items()}
            appraisals = [known[certificate.identity] for certificate in self.certificates]
            memory["appraisals"] = [
                [one.values.hex(), None if math.isnan(one.worth) else one.worth, self._without(one.certificate)]
                for one in appraisals
            ]
        return memory

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Restore what `memory` returned."""
        self.certificates = tuple(self._sign_again(memory["before"]))
        self._before = [{} for _ in self._signers]
        for certificate, appraised in zip(self.certificates, memory.get("appraisals", ()), strict=False):
            values, worth, lacking = appraised
            number = math.nan if worth is None else float(worth)
            one = Appraisal(certificate.identity, bytes.fromhex(values), number)
            for client, stored in enumerate(self._before):
                if client not in lacking:
                    stored[one.certificate] = one

    def _without(self, name: bytes) -> list[int]:
        return [client for client, stored in enumerate(self._before) if name not in stored]

    def _sign_again(self, history: Sequence[Sequence[Any]]) -> Iterable[Certificate]:
        """Certificates from their short form, signed by the same clients."""
        previous = self._config.digest
        for slot, cohort, hashed, signers in history:
            members = as_cohort(cohort, clients=self._config.clients)
            statement = Statement(self._config.digest, int(slot), previous, members, bytes.fromhex(hashed))
            signed = tuple((int(client), self._signers[client].sign(statement.content)) for client in signers)
            yield Certificate(statement, signed)
            previous = statement.identity


def _shorten(certificate: Certificate) -> list[Any]:
    signers = [client for client, _ in certificate.signatures]
    return [certificate.slot, list(certificate.cohort), certificate.statement.map_hash.hex(), signers]
