"""The observer of a chaos run: it sees all signatures and reports violations of safety.

It knows the Byzantine clients, reads every message and every stored record, and assembles all certificates that the
signatures allow, as a Byzantine client could that had collected them all.
"""

import math
from collections.abc import Iterable

from fedelect.equations.beliefs import EVIDENCE_FLOOR
from fedelect.protocol import Certificate, Peer, PeerConfig, Verifier
from fedelect.protocol.effects import CohortAgreed, Record
from fedelect.protocol.election import cohort_worth, elect_cohort, empty_statistics
from fedelect.protocol.messages import GossipMessage, HistoryMessage, Message
from fedelect.protocol.proofs import Proof, TwoValues, TwoVotes
from fedelect.protocol.statements import Appraisal, SignedValue, Statement, Vote

_LARGEST_FIELD = 0.5 * math.log((1.0 - EVIDENCE_FLOOR) / EVIDENCE_FLOOR)


class Observer:
    """The observer of one run.

    Args:
        config: What the peers share.
        verifier: Checks signatures.
        byzantine: The Byzantine clients.
    """

    def __init__(self, config: PeerConfig, verifier: Verifier, byzantine: frozenset[int]) -> None:
        self._config = config
        self._verifier = verifier
        self._byzantine = byzantine
        self._signers: dict[Statement, set[int]] = {}
        self._honest_votes: dict[tuple[int, int], Statement] = {}
        self._seen: set[tuple[int, bytes]] = set()
        self._appraisals: dict[bytes, Appraisal] = {}
        self._stored: set[tuple[int, bytes]] = set()  # (client, statement): appraisals in stable storage
        self.proven: set[int] = set()  # clients that an honest one holds a proof against
        self.agreed: dict[int, set[bytes]] = {}  # slot -> identities of the certificates that honest clients saw
        self.violations: list[str] = []

    def see_message(self, message: Message) -> None:
        """Collect the signatures in a message that was sent."""
        if isinstance(message, GossipMessage):
            for vote in message.votes:
                self._vote(vote.statement, vote.client, vote.signature)
            for one in message.entries:
                if isinstance(one.entry, TwoVotes):
                    self._votes((one.entry.one, one.entry.other))
        elif isinstance(message, HistoryMessage):
            for certificate in message.certificates:
                self._certificate(certificate)

    def check_record(self, client: int, record: Record, peer: Peer) -> None:
        """Check a record that `client` is storing."""
        if isinstance(record, Vote):
            self._votes((record,))
            if client not in self._byzantine:
                self._check_map(client, record.statement, peer)
                if self._config.settings.rule == "bp-gp":
                    self._check_past(client, record.statement, peer)
        elif isinstance(record, Certificate):
            self._certificate(record)
        elif isinstance(record, Appraisal):
            self._appraisal(client, record)
        elif isinstance(record, SignedValue):
            self._check_belief(client, record)
        else:
            self._proof(client, record)

    def note_decision(self, client: int, effect: CohortAgreed) -> None:
        """Note that `client` reports a decision."""
        if client not in self._byzantine:
            self.agreed.setdefault(effect.slot, set()).add(effect.certificate.identity)
            self._certificate(effect.certificate)

    def split_slots(self) -> list[int]:
        """Slots for which two different statements can be certified, or were decided."""
        certified: dict[int, set[Statement]] = {}
        for statement, signers in self._signers.items():
            if len(signers) >= _quorum(self._config):
                certified.setdefault(statement.slot, set()).add(statement)
        twice = {slot for slot, statements in certified.items() if len(statements) > 1}
        return sorted(twice | {slot for slot, names in self.agreed.items() if len(names) > 1})

    def note_refusal(self, client: int, message: Message, reason: Exception) -> None:
        """Note that `client` refused a message; between honest clients this is a violation."""
        if client not in self._byzantine and message.sender not in self._byzantine:
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
        if client not in self._byzantine:
            first = self._honest_votes.setdefault((client, statement.slot), statement)
            if first != statement:
                self.violations.append(f"honest client {client} signed two votes for slot {statement.slot}")

    def _proof(self, client: int, proof: Proof) -> None:
        if client not in self._byzantine:
            self.proven.add(proof.client)
        if proof.client not in self._byzantine:
            what = "values" if isinstance(proof, TwoValues) else "votes" if isinstance(proof, TwoVotes) else "moves"
            self.violations.append(f"client {client} holds honest client {proof.client} to have misbehaved ({what})")

    def _appraisal(self, client: int, record: Appraisal) -> None:
        self._stored.add((client, record.certificate))
        if client not in self._byzantine and self._appraisals.setdefault(record.certificate, record) != record:
            self.violations.append(f"client {client} holds another appraisal of one certificate than others")

    def _check_past(self, client: int, statement: Statement, peer: Peer) -> None:
        """An honest client's vote follows from the true worths of the cohorts in its history."""
        if (client, statement.identity) not in self._stored:
            self.violations.append(f"client {client} voted before the appraisal behind its vote was stored")
        config = self._config
        values = {n: entry if isinstance(entry, SignedValue) else None for n, entry in peer.entries.items()}
        # The certificate of this very slot may be there already: the others' votes were enough.
        history = [one for one in peer.chain.certificates if one.slot < statement.slot]
        worths = [self._appraisals[one.identity].worth for one in history[1:] if one.identity in self._appraisals]
        played = empty_statistics(config.settings)
        tried: set[int] = set()
        for one, worth in zip(history, [*worths, cohort_worth(values, config.clients)], strict=False):
            if not math.isnan(worth):
                played.add_reward(one.cohort, worth, 0.0)
                tried.update(one.cohort)
        known = (played, tuple(sorted(tried)))
        follows = elect_cohort(values, pulls=peer.chain.pulls, config=config, slot=statement.slot, played=known).cohort
        if follows != statement.cohort or len(worths) < len(history) - 1:
            self.violations.append(f"client {client} voted for what does not follow from history")

    def _check_belief(self, client: int, value: SignedValue) -> None:
        """An honest client's belief is within what an opinion and its couplings allow, whatever its neighbours sent."""
        if client in self._byzantine or self._config.settings.reading != "ising" or math.isnan(value.belief):
            return
        couplings = self._config.neighbours[client].values()
        most = _LARGEST_FIELD + 1.05 * math.fsum(abs(coupling) for coupling in couplings) + 1e-6
        lowest, highest = (1.0 / (1.0 + math.exp(2.0 * field)) for field in (most, -most))
        if not lowest <= value.belief <= highest:
            self.violations.append(f"client {client} was pushed to a belief that no opinion and coupling allow")

    def _check_map(self, client: int, statement: Statement, peer: Peer) -> None:
        for entry in peer.entries.values():
            if isinstance(entry, SignedValue) and (entry.slot, entry.previous) != (statement.slot, statement.previous):
                self.violations.append(f"client {client} voted on a map with a value of another slot or history")
                return


def _quorum(config: PeerConfig) -> int:
    # Repeated on purpose: a wrong quorum in the configuration must not hide its consequences.
    return (config.clients + (config.settings.max_faulty if config.settings.byzantine else 0)) // 2 + 1
