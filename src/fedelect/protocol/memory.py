"""A peer's memory beyond a slot: certified history, proofs of misbehaviour, its own signatures, the others' claims.

All but the claims is restored from the stored records. Claims serve to prove impossible moves; a peer that has lost
them gets the proof from others.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fedelect.errors import LocalProtocolError, RemoteProtocolError, StateError
from fedelect.protocol.chain import CertificateChain
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.gossip import Relayed
from fedelect.protocol.history import Appraisals
from fedelect.protocol.proofs import ImpossibleMove, Proof, can_move, check_proof, is_impossible_move
from fedelect.protocol.signing import Signer, Verifier
from fedelect.protocol.statements import Appraisal, Certificate, SignedValue, Statement, Vote, relay_content


class Memory:
    """One peer's memory.

    Args:
        config: What all peers share.
        client: This client.
        verifier: Checks signatures.
        records: Stored records of this client, in order.
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
        self.forgotten = 0  # a slot in which it has signed what its records do not hold; 0 for none
        self._own: SignedValue | None = None
        self._claimed: dict[int, SignedValue] = {}
        for record in records:
            self._recall(record)

    def _recall(self, record: SignedValue | Vote | Certificate | Proof | Appraisal) -> None:
        try:
            if isinstance(record, Certificate):
                self.chain.add(record)
                if self._is_signer(record):
                    self.signed_slot = max(self.signed_slot, record.slot)
            elif isinstance(record, Appraisal):
                self.appraisals.filter_new((record,))
                self.appraisals.add(record)  # also if the vote behind it never became a certificate
            elif isinstance(record, SignedValue | Vote):
                self._recall_own(record)
            else:
                if not isinstance(record, ImpossibleMove):  # that depends on the history at its time
                    self._check_proof(record, self.chain.head)
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
        """Sign `value` as this client; LocalProtocolError if it would prove misbehaviour."""
        fault = self.claim_fault(value)
        if fault is not None:
            raise LocalProtocolError(f"client {self._client} cannot claim this: {fault}")
        signed = replace(value, signature=signer.sign(value.content))
        self.note_signed(signed)
        return signed

    def sign_vote(self, statement: Statement, signer: Signer, appraisals: Iterable[Appraisal]) -> Vote:
        """Sign `statement` as this client, and keep the appraisals behind it."""
        vote = Vote(statement, self._client, signer.sign(statement.content))
        self.note_signed(vote)
        self.appraisals.add(*appraisals)
        return vote

    def note_signed(self, record: SignedValue | Vote) -> None:
        """Note a signed value or vote of this client."""
        if isinstance(record, SignedValue):
            self._own = record
            self.signed_slot = max(self.signed_slot, record.slot)
        else:
            self.signed_slot = max(self.signed_slot, record.statement.slot)

    def notice_forgotten(self, certificates: Iterable[Certificate]) -> None:
        """Notice verified certificates that this client signed in a slot in which, by its records, it did not."""
        slots = [one.slot for one in certificates if self._is_signer(one) and one.slot > self.signed_slot]
        self.forgotten = max([self.forgotten, *slots])

    def notice_own(self, relayed: Iterable[Relayed], votes: Iterable[Vote], voted: Statement | None) -> None:
        """Notice verified values and votes of this client that it does not remember.

        Args:
            relayed: New entries of the open slot.
            votes: New votes.
            voted: What it voted for in this slot, as far as it knows.
        """
        values = [one.entry for one in relayed if isinstance(one.entry, SignedValue)]
        slots = [value.slot for value in values if value.client == self._client and value != self._own]
        slots += [one.statement.slot for one in votes if one.client == self._client and one.statement != voted]
        self.forgotten = max([self.forgotten, *slots])

    def _is_signer(self, certificate: Certificate) -> bool:
        return any(client == self._client for client, _ in certificate.signatures)

    def claim_fault(self, value: SignedValue) -> str | None:
        """Why signing `value` would prove misbehaviour, or None."""
        fault = value.fault() or self._find_unearned(value)
        before = self._own
        if fault is None and before is not None and before.slot < value.slot:
            elections = self.chain.elections_between(self._client, before.previous, value.previous)
            if elections is not None and not can_move(before.mean, value.mean, elections):
                fault = (
                    f"its mean was {before.mean!r} and cannot be {value.mean!r} after {elections} elections; an "
                    "opinion counts only if it was there before the first claim on top of its slot (see OwnRewards)"
                )
        return fault

    def verify(self, relayed: Iterable[Relayed], votes: Iterable[Vote], slot: int, previous: bytes) -> list[Proof]:
        """Check entries and votes of `slot` that build on `previous`, see below; returns proofs of impossible moves."""
        contradictions: list[Proof] = []
        for one in relayed:
            self.check_entry(one.entry, previous)
            self.check_relays(one, slot, previous)
            found = self.find_contradiction(one.entry) if isinstance(one.entry, SignedValue) else None
            contradictions += [] if found is None else [found]
        for vote in votes:
            self.check_vote(vote)
        return contradictions

    def check_entry(self, entry: SignedValue | Proof, previous: bytes) -> None:
        """Raise RemoteProtocolError unless this is a possible value that its client signed, or a valid proof.

        It is judged by the history up to `previous`, which its message builds on, not by what this peer has learnt
        since: another branch may have become history.
        """
        if not isinstance(entry, SignedValue):
            self._check_proof(entry, previous)
            return
        fault = self._find_unearned(entry)
        if fault is not None:
            raise RemoteProtocolError(f"a value of client {entry.client} cannot be: {fault}")
        if not self._verifier.verify(self._config.keys[entry.client], entry.content, entry.signature):
            raise RemoteProtocolError(f"a value is said to be of client {entry.client}, which did not sign it")

    def check_relays(self, one: Relayed, slot: int, previous: bytes) -> None:
        """Raise RemoteProtocolError unless those that are said to have passed this on signed it."""
        client, value = one.entry.client, one.entry if isinstance(one.entry, SignedValue) else None
        content = relay_content(self._config.digest, slot, previous, client, value)
        for relay, signature in one.signatures:
            if not self._verifier.verify(self._config.keys[relay], content, signature):
                raise RemoteProtocolError(
                    f"client {relay} is said to have passed on what it did not: an entry about client {client}"
                )

    def check_vote(self, vote: Vote) -> None:
        """Raise RemoteProtocolError unless its client signed this vote."""
        if not self._verifier.verify(self._config.keys[vote.client], vote.statement.content, vote.signature):
            raise RemoteProtocolError(f"a vote is said to be of client {vote.client}, which did not sign it")

    def find_contradiction(self, value: SignedValue) -> ImpossibleMove | None:
        """The proof that `value` contradicts an earlier claim of its client, or None."""
        before = self._claimed.get(value.client)
        if before is not None and is_impossible_move(before, value, self.chain, value.previous):
            return ImpossibleMove(before, value)
        return None

    def standing_proofs(self) -> list[Proof]:
        """The proofs that peers on top of the same certificate can check."""
        return [
            proof
            for proof in self.proofs.values()
            if not isinstance(proof, ImpossibleMove)
            or is_impossible_move(proof.one, proof.other, self.chain, self.chain.head)
        ]

    def note_proofs(self, proofs: Iterable[Proof]) -> list[Proof]:
        """Add proofs; returns the first proof against each newly proven client."""
        new: list[Proof] = []
        for proof in proofs:
            if proof.client not in self.proofs:
                self.proofs[proof.client] = proof
                new.append(proof)
        return new

    def note_claims(self, values: Mapping[int, SignedValue | None]) -> None:
        """Remember the claims of a frozen map."""
        self._claimed.update({client: value for client, value in values.items() if value is not None})

    def appraise(self, appraisals: Iterable[Appraisal]) -> tuple[Appraisal, ...]:
        """Add appraisals; returns the new ones. RemoteProtocolError if one does not match its certificate's seal."""
        fresh = self.appraisals.filter_new(appraisals)
        self.appraisals.add(*fresh)
        return fresh

    def _check_proof(self, proof: Proof, previous: bytes) -> None:
        check_proof(proof, config=self._config, verifier=self._verifier, chain=self.chain, previous=previous)

    def _find_unearned(self, value: SignedValue) -> str | None:
        if math.isnan(value.mean):
            return None
        if self._config.settings.rule == "bp-gp":
            return "it holds a mean, which the rule bp-gp does not have"
        if self.chain.elections(value.client, value.previous):
            return None
        return f"the mean is {value.mean!r} but the client was never elected"
