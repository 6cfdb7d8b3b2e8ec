"""Sees all that is signed in a chaotic run, and says what must never be.

It stands outside: it knows who lies, reads every message and every disk, and puts together whatever certificates the
signatures allow, as a liar might who had collected them all.
"""

from collections.abc import Iterable

from fedelect.protocol import (
    Appraisal,
    Certificate,
    CohortAgreed,
    GossipMessage,
    HistoryMessage,
    Message,
    Peer,
    PeerConfig,
    Proof,
    Record,
    SignedValue,
    Statement,
    TwoValues,
    TwoVotes,
    Verifier,
    Vote,
)


class Watch:
    """The omniscient observer of one run.

    Args:
        config: What the peers share.
        verifier: Checks signatures.
        liars: Who lies.
    """

    def __init__(self, config: PeerConfig, verifier: Verifier, liars: frozenset[int]) -> None:
        self._config = config
        self._verifier = verifier
        self._liars = liars
        self._signers: dict[Statement, set[int]] = {}
        self._honest_votes: dict[tuple[int, int], Statement] = {}
        self._seen: set[tuple[int, bytes]] = set()
        self.agreed: dict[int, set[bytes]] = {}  # slot -> names of the certificates that honest clients saw
        self.violations: list[str] = []

    def message(self, message: Message) -> None:
        """Something went out."""
        if isinstance(message, GossipMessage):
            for vote in message.votes:
                self._vote(vote.statement, vote.client, vote.signature)
            for entry in message.entries:
                if isinstance(entry, TwoVotes):
                    self._votes((entry.one, entry.other))
        elif isinstance(message, HistoryMessage):
            for certificate in message.certificates:
                self._certificate(certificate)

    def stored(self, client: int, record: Record, peer: Peer) -> None:
        """A client signed or learnt something."""
        if isinstance(record, Vote):
            self._votes((record,))
            if client not in self._liars:
                self._check_map(client, record.statement, peer)
        elif isinstance(record, Certificate):
            self._certificate(record)
        elif not isinstance(record, SignedValue | Appraisal):
            self._proof(client, record)

    def decided(self, client: int, effect: CohortAgreed) -> None:
        """A client says that a slot is decided."""
        if client not in self._liars:
            self.agreed.setdefault(effect.slot, set()).add(effect.certificate.identity)
            self._certificate(effect.certificate)

    def splits(self) -> list[int]:
        """The slots for which two different statements can be certified, or two were decided on."""
        certified: dict[int, set[Statement]] = {}
        for statement, signers in self._signers.items():
            if len(signers) >= _quorum(self._config):
                certified.setdefault(statement.slot, set()).add(statement)
        twice = {slot for slot, statements in certified.items() if len(statements) > 1}
        return sorted(twice | {slot for slot, names in self.agreed.items() if len(names) > 1})

    def refused(self, client: int, message: Message, reason: Exception) -> None:
        """A client refused a message; between honest clients that never happens."""
        if client not in self._liars and message.sender not in self._liars:
            self.violations.append(f"client {client} refused an honest message of client {message.sender}: {reason}")

    def _votes(self, votes: Iterable[Vote]) -> None:
        for vote in votes:
            self._vote(vote.statement, vote.client, vote.signature)

    def _certificate(self, certificate: Certificate) -> None:
        for client, signature in certificate.signatures:
            self._vote(certificate.statement, client, signature)

    def _vote(self, statement: Statement, client: int, signature: bytes) -> None:
        if (client, signature) in self._seen or not 0 <= client < self._config.clients:
            return
        if not self._verifier.verify(self._config.keys[client], statement.content, signature):
            return
        self._seen.add((client, signature))
        self._signers.setdefault(statement, set()).add(client)
        if client not in self._liars:
            first = self._honest_votes.setdefault((client, statement.slot), statement)
            if first != statement:
                self.violations.append(f"honest client {client} signed two votes for slot {statement.slot}")

    def _proof(self, client: int, proof: Proof) -> None:
        if proof.client not in self._liars:
            what = "values" if isinstance(proof, TwoValues) else "votes" if isinstance(proof, TwoVotes) else "moves"
            self.violations.append(f"client {client} holds honest client {proof.client} for a liar ({what})")

    def _check_map(self, client: int, statement: Statement, peer: Peer) -> None:
        for entry in peer.entries.values():
            if isinstance(entry, SignedValue) and (entry.slot, entry.previous) != (statement.slot, statement.previous):
                self.violations.append(f"client {client} voted on a map with a value of another slot or history")
                return


def _quorum(config: PeerConfig) -> int:
    # Written out again on purpose: a wrong quorum in the configuration must not hide what it leads to.
    return (config.clients + (config.faults if config.lying else 0)) // 2 + 1
