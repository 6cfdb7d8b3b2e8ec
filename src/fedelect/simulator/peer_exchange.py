"""How an exchange among simulated peers went, and what each of them has stored before it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedelect.equations.beliefs import Outcome
from fedelect.protocol import Certificate, PeerConfig, Signer
from fedelect.protocol.effects import Record
from fedelect.protocol.statements import Appraisal, Statement
from fedelect.records import Exchange
from fedelect.vocabulary import Floats, as_cohort


@dataclass(frozen=True, slots=True, eq=False)
class PeerExchange:
    """How the last exchange among the peers went, for the record.

    Attributes:
        slot: The slot whose opinions were exchanged.
        beliefs: (N,) what the peers settled on; nan where one did not get so far.
        rounds: Rounds of belief messages; 0 under the "evidence" reading.
        residual: How far any message still moved in the last round.
        outcome: Settled, or rounds exhausted with advice.
        messages: Messages sent, repetitions of lost ones included.
        lost: How many of them were lost.
        virtual_s: Virtual seconds until all had agreed or given up.
        skipped: Why no cohort came of it, or None.
    """

    slot: int
    beliefs: Floats
    rounds: int
    residual: float
    outcome: Outcome
    messages: int
    lost: int
    virtual_s: float
    skipped: str | None

    def for_the_record(self) -> Exchange:
        """What a slot record keeps of it."""
        return Exchange(
            rounds=self.rounds,
            residual=self.residual,
            outcome=str(self.outcome) if self.skipped is None else f"no cohort: {self.skipped}",
            messages=self.messages,
            virtual_seconds=self.virtual_s,
        )


class PeerDisks:
    """What simulated clients have stored when an election begins: certificates, which all have, and appraisals.

    Args:
        config: What the peers share.
        signers: Of all clients: to save room, signatures are left out of a saved state and made again.
    """

    def __init__(self, config: PeerConfig, signers: Sequence[Signer]) -> None:
        self._config = config
        self._signers = signers
        self.certificates: tuple[Certificate, ...] = ()
        self._before: list[dict[bytes, Appraisal]] = [{} for _ in signers]
        self._now: list[dict[bytes, Appraisal]] = [{} for _ in signers]

    def store(self, client: int, record: Record) -> None:
        """A client keeps an appraisal; of anything else the certificates at the next `begin` are enough."""
        if isinstance(record, Appraisal):
            self._now[client][record.certificate] = record

    def begin(self, certificates: tuple[Certificate, ...]) -> None:
        """An election begins on top of these."""
        self.certificates = certificates
        names = [certificate.identity for certificate in certificates]
        self._before = [{name: kept[name] for name in names if name in kept} for kept in self._now]

    def rewind(self) -> list[list[Record]]:
        """By client, what was stored before the last election, which is to be held again."""
        self._now = [dict(kept) for kept in self._before]
        return [[*self.certificates, *kept.values()] for kept in self._before]

    def memory(self) -> dict[str, Any]:
        """That as JSON-able values; of each certificate, under "bp-gp", its appraisal and who lacks it."""
        memory: dict[str, Any] = {"before": [_brief(certificate) for certificate in self.certificates]}
        if self._config.settings.rule == "bp-gp":
            known = {name: one for kept in self._before for name, one in kept.items()}
            appraisals = [known[certificate.identity] for certificate in self.certificates]
            memory["appraisals"] = [
                [one.values.hex(), None if math.isnan(one.worth) else one.worth, self._without(one.certificate)]
                for one in appraisals
            ]
        return memory

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take back what `memory` gave."""
        self.certificates = tuple(self._certified(memory["before"]))
        self._before = [{} for _ in self._signers]
        for certificate, appraised in zip(self.certificates, memory.get("appraisals", ()), strict=False):
            values, worth, lacking = appraised
            number = math.nan if worth is None else float(worth)
            one = Appraisal(certificate.identity, bytes.fromhex(values), number)
            for client, kept in enumerate(self._before):
                if client not in lacking:
                    kept[one.certificate] = one

    def _without(self, name: bytes) -> list[int]:
        return [client for client, kept in enumerate(self._before) if name not in kept]

    def _certified(self, history: Sequence[Sequence[Any]]) -> Iterable[Certificate]:
        """Certificates from what `_brief` left of them; the signers are here, so they sign again."""
        previous = self._config.digest
        for slot, cohort, hashed, signers in history:
            members = as_cohort(cohort, clients=self._config.clients)
            statement = Statement(self._config.digest, int(slot), previous, members, bytes.fromhex(hashed))
            signed = tuple((int(client), self._signers[client].sign(statement.content)) for client in signers)
            yield Certificate(statement, signed)
            previous = statement.identity


def _brief(certificate: Certificate) -> list[Any]:
    signers = [client for client, _ in certificate.signatures]
    return [certificate.slot, list(certificate.cohort), certificate.statement.map_hash.hex(), signers]
