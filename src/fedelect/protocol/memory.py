"""What one peer remembers beyond a slot: certified history, who lied, what it signed itself, what others claimed.

All of it but the last is made again from the records that the host kept. What others claimed is only there to catch
an impossible move; who has forgotten it learns of the lie from those who have not.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fedelect.errors import LocalProtocolError, RemoteProtocolError, StateError
from fedelect.protocol.chain import CertificateChain
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.history import Appraisals
from fedelect.protocol.proofs import ImpossibleMove, Proof, can_move, check_proof, is_impossible_move
from fedelect.protocol.signing import Signer, Verifier
from fedelect.protocol.statements import Appraisal, Certificate, SignedValue, Statement, Vote


class Memory:
    """One peer's memory.

    Args:
        config: What all peers share.
        client: Whose memory this is.
        verifier: Checks signatures.
        records: What the host kept of an earlier life of this peer, in the order it was told to.
    """

    def __init__(
        self,
        config: PeerConfig,
        client: int,
        verifier: Verifier,
        records: Iterable[SignedValue | Vote | Certificate | Proof | Appraisal] = (),
    ) -> None:
        self._config = config
        self._client = client
        self._verifier = verifier
        self.chain = CertificateChain(config, verifier)
        self.appraisals = Appraisals(config, self.chain)
        self.proofs: dict[int, Proof] = {}
        self.signed_slot = 0  # the last slot in which this client signed anything
        self._own: SignedValue | None = None
        self._claimed: dict[int, SignedValue] = {}
        for record in records:
            self._recall(record)

    def _recall(self, record: SignedValue | Vote | Certificate | Proof | Appraisal) -> None:
        try:
            if isinstance(record, Certificate):
                self.chain.add(record)
            elif isinstance(record, Appraisal):
                self.appraisals.filter_new((record,))
                self.appraisals.add(record)  # also where the vote behind it never became a certificate
            elif isinstance(record, SignedValue | Vote):
                self._recall_own(record)
            else:
                if not isinstance(record, ImpossibleMove):  # that is judged on the history of the day
                    check_proof(record, config=self._config, verifier=self._verifier, chain=self.chain)
                self.proofs[record.client] = record
        except RemoteProtocolError as error:
            raise StateError(
                f"the records of client {self._client} hold what is not of this election: {error}"
            ) from error

    def _recall_own(self, record: SignedValue | Vote) -> None:
        said = record.statement if isinstance(record, Vote) else record
        if record.client != self._client or said.configuration != self._config.digest:
            raise StateError(
                f"the records of client {self._client} hold what client {record.client} signed under configuration "
                f"{said.configuration.hex()}; give each peer its own records, of one configuration"
            )
        self.note_signed(record)

    def sign_claim(self, value: SignedValue, signer: Signer) -> SignedValue:
        """This client signs `value`; LocalProtocolError if others could prove it a lie."""
        fault = self.claim_fault(value)
        if fault is not None:
            raise LocalProtocolError(f"client {self._client} cannot claim this: {fault}")
        signed = replace(value, signature=signer.sign(value.content))
        self.note_signed(signed)
        return signed

    def sign_vote(self, statement: Statement, signer: Signer, appraisals: Iterable[Appraisal]) -> Vote:
        """This client signs `statement`, behind which there may be an appraisal."""
        vote = Vote(statement, self._client, signer.sign(statement.content))
        self.note_signed(vote)
        self.appraisals.add(*appraisals)
        return vote

    def note_signed(self, record: SignedValue | Vote) -> None:
        """This client signed something."""
        if isinstance(record, SignedValue):
            self._own = record
            self.signed_slot = max(self.signed_slot, record.slot)
        else:
            self.signed_slot = max(self.signed_slot, record.statement.slot)

    def claim_fault(self, value: SignedValue) -> str | None:
        """Why this client must not sign `value`: others could prove it a lie. None if it may."""
        fault = value.fault() or self._unearned(value)
        before = self._own
        if fault is None and before is not None and before.slot < value.slot:
            elections = self.chain.elections_since(self._client, before.previous)
            if elections is not None and not can_move(before.mean, value.mean, elections):
                fault = (
                    f"its mean was {before.mean!r} and cannot be {value.mean!r} after {elections} elections; an "
                    "opinion counts only if it was there before the first claim on top of its slot (see OwnRewards)"
                )
        return fault

    def verify(self, entries: Iterable[SignedValue | Proof], votes: Iterable[Vote]) -> list[Proof]:
        """Check all of these, see below; returns which lies about means the values prove."""
        lies: list[Proof] = []
        for entry in entries:
            self.check_entry(entry)
            lie = self.find_contradiction(entry) if isinstance(entry, SignedValue) else None
            lies += [] if lie is None else [lie]
        for vote in votes:
            self.check_vote(vote)
        return lies

    def check_entry(self, entry: SignedValue | Proof) -> None:
        """Raise RemoteProtocolError unless this is a value that its client signed and can have, or a proof."""
        if not isinstance(entry, SignedValue):
            check_proof(entry, config=self._config, verifier=self._verifier, chain=self.chain)
            return
        fault = self._unearned(entry)
        if fault is not None:
            raise RemoteProtocolError(f"a value of client {entry.client} cannot be: {fault}")
        if not self._verifier.verify(self._config.keys[entry.client], entry.content, entry.signature):
            raise RemoteProtocolError(f"a value is said to be of client {entry.client}, which did not sign it")

    def check_vote(self, vote: Vote) -> None:
        """Raise RemoteProtocolError unless its client signed this vote."""
        if not self._verifier.verify(self._config.keys[vote.client], vote.statement.content, vote.signature):
            raise RemoteProtocolError(f"a vote is said to be of client {vote.client}, which did not sign it")

    def find_contradiction(self, value: SignedValue) -> ImpossibleMove | None:
        """The proof that `value` cannot follow what its client claimed before, if it is one."""
        before = self._claimed.get(value.client)
        if before is not None and is_impossible_move(before, value, self.chain):
            return ImpossibleMove(before, value)
        return None

    def standing_proofs(self) -> list[Proof]:
        """The proofs that whoever shares this peer's history can check."""
        return [
            proof
            for proof in self.proofs.values()
            if not isinstance(proof, ImpossibleMove) or is_impossible_move(proof.one, proof.other, self.chain)
        ]

    def note_proofs(self, proofs: Iterable[Proof]) -> list[Proof]:
        """Remember who is proven to have lied; returns the first proof against each that was not known for it."""
        new: list[Proof] = []
        for proof in proofs:
            if proof.client not in self.proofs:
                self.proofs[proof.client] = proof
                new.append(proof)
        return new

    def note_claims(self, values: Mapping[int, SignedValue | None]) -> None:
        """Remember what others claimed in a frozen map."""
        self._claimed.update({client: value for client, value in values.items() if value is not None})

    def appraise(self, appraisals: Iterable[Appraisal]) -> tuple[Appraisal, ...]:
        """Take in what cohorts were worth; returns what is new. RemoteProtocolError if a certificate seals another."""
        fresh = self.appraisals.filter_new(appraisals)
        self.appraisals.add(*fresh)
        return fresh

    def _unearned(self, value: SignedValue) -> str | None:
        if math.isnan(value.mean):
            return None
        if self._config.settings.rule == "bp-gp":
            return "it holds a mean, which nobody is to tell under the rule bp-gp"
        if self.chain.elections(value.client):
            return None
        return f"the mean is {value.mean!r} but the client was never elected"
