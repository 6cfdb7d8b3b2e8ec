"""Exchange of history between neighbours: certificates and, under the rule "bp-gp", appraisals of cohorts.

A peer that is behind asks; a peer that notices that a neighbour is behind tells it. A message that builds on another
certificate than ours is never an accusation: one of the two peers lacks certificates.

The worth of a cohort follows from the map of the next certified slot, of which the certificate holds only a seal. A
peer stores its appraisal before it votes, so at least a quorum has stored it. The others ask their neighbours and check
the reply against the seal. A peer votes only once it knows the worth of all cohorts of history.
"""

import math
from collections.abc import Iterable

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.chain import HISTORY_LIMIT, CertificateChain
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.effects import Effect, Send
from fedelect.protocol.election import empty_statistics
from fedelect.protocol.messages import (
    AppraisalMessage,
    AppraisalRequest,
    BeliefMessage,
    GossipMessage,
    HistoryMessage,
    HistoryRequest,
    Reply,
    Request,
)
from fedelect.protocol.statements import Appraisal, Certificate
from fedelect.rules import CohortStatistics
from fedelect.vocabulary import Cohort


class Appraisals:
    """One peer's appraisals, and the statistics of the cohorts of history; empty under "bp-ucb".

    Args:
        config: What all peers share.
        chain: History.
    """

    def __init__(self, config: PeerConfig, chain: CertificateChain) -> None:
        self._config = config
        self._chain = chain
        self._known: dict[bytes, Appraisal] = {}
        self._clear()

    def _clear(self) -> None:
        """Forget what was counted."""
        config = self._config
        self._played = empty_statistics(config.settings)
        self._tried: set[int] = set()
        self._last = config.digest  # the last certificate that is counted
        self._trained: Cohort | None = None  # its cohort

    def add(self, *appraisals: Appraisal) -> None:
        """Add checked appraisals, or this peer's own."""
        self._known.update({appraisal.certificate: appraisal for appraisal in appraisals})

    def filter_new(self, appraisals: Iterable[Appraisal]) -> tuple[Appraisal, ...]:
        """The new appraisals of known certificates; those of unknown certificates cannot be checked and are left out.

        Raises:
            RemoteProtocolError: One of them does not match the seal of its certificate.
        """
        fresh: dict[bytes, Appraisal] = {}
        for appraisal in appraisals:
            certificate = self._chain.find(appraisal.certificate)
            if certificate is not None and appraisal.certificate not in self._known:
                self.check(appraisal, certificate)
                fresh[appraisal.certificate] = appraisal
        return tuple(fresh.values())

    def check(self, appraisal: Appraisal, certificate: Certificate) -> None:
        """Raise RemoteProtocolError unless the certificate's signers sealed this appraisal."""
        if appraisal.seal != certificate.statement.map_hash:
            raise RemoteProtocolError(
                f"an appraisal is not the one that the certificate of slot {certificate.slot} seals"
            )

    def find(self, names: Iterable[bytes]) -> tuple[Appraisal, ...]:
        """The known appraisals of these certificates."""
        return tuple(self._known[name] for name in names if name in self._known and self._chain.find(name) is not None)

    def missing(self) -> tuple[bytes, ...]:
        """Certificates of history without a known appraisal, oldest first; at most one request's number."""
        if self._config.settings.rule != "bp-gp":
            return ()
        self._count()
        ahead = self._chain.after((self._last,), limit=len(self._chain))
        return tuple(one.identity for one in ahead if one.identity not in self._known)[:HISTORY_LIMIT]

    def statistics(self, worth: float) -> tuple[CohortStatistics, tuple[int, ...]]:
        """Statistics of the cohorts of history, and the clients in them.

        Args:
            worth: Worth of the last cohort, by the map that is frozen now; nan if no client has a belief.
        """
        self._count()
        played, tried = self._played.copy(), set(self._tried)
        if self._trained is not None and not math.isnan(worth):
            played.add_reward(self._trained, worth, 0.0)
            tried.update(self._trained)
        return played, tuple(sorted(tried))

    def _count(self) -> None:
        """Count appraised cohorts, from the beginning of history up to the first gap."""
        if self._last not in self._chain:
            self._clear()  # another branch has become history
        for certificate in self._chain.after((self._last,), limit=len(self._chain)):
            if self._trained is not None:
                appraisal = self._known.get(certificate.identity)
                if appraisal is None:
                    return
                if not math.isnan(appraisal.worth):  # else no client judged it
                    self._played.add_reward(self._trained, appraisal.worth, 0.0)
                    self._tried.update(self._trained)
            self._last, self._trained = certificate.identity, certificate.cohort


class HistoryExchange:
    """One peer's requests and replies about certificates and appraisals.

    Args:
        config: What all peers share.
        client: This client.
        chain: Its history.
        appraisals: Its appraisals.
    """

    def __init__(self, config: PeerConfig, client: int, chain: CertificateChain, appraisals: Appraisals) -> None:
        self._config = config
        self._client = client
        self._chain = chain
        self._appraisals = appraisals
        self._asked: dict[int, bytes] = {}  # neighbour -> certificate of the last request
        self._wanted: dict[int, tuple[bytes, ...]] = {}  # neighbour -> certificates of the last request for appraisals

    def ask_again(self) -> list[Effect]:
        """Allow all requests again, for they may have been lost, and repeat those for appraisals."""
        self._asked.clear()
        self._wanted.clear()
        return self.ask_for_appraisals(tuple(self._config.neighbours[self._client]))

    def catch_up(self, message: BeliefMessage | GossipMessage) -> list[Effect]:
        """Catch up with the sender, or let it catch up, if its message builds on another certificate than our head."""
        previous, sender = message.previous, message.sender
        if previous == self._chain.head:
            return []
        if not self._chain.knows(previous):
            if self._asked.get(sender) == previous:
                return []
            self._asked[sender] = previous
            return [self._request(sender)]
        # Votes of a slot that is decided here still arrive in normal operation: reply only to a waiting sender.
        waiting = not isinstance(message, GossipMessage) or message.wants_reply
        if message.slot <= self._chain.slot and not waiting:
            return []
        return self._tell(sender, (previous,))

    def ask(self, neighbour: int) -> list[Effect]:
        """Request the certificates after the last that is known here."""
        return [self._request(neighbour)]

    def answer(self, request: Request) -> list[Effect]:
        """Reply with the requested items that are known here."""
        if isinstance(request, HistoryRequest):
            return self._tell(request.sender, request.locator)
        found = self._appraisals.find(request.certificates)
        return [Send(AppraisalMessage(self._config.digest, self._client, request.sender, found))] if found else []

    def ask_further(self, message: Reply) -> list[Effect]:
        """After a full message ask for more certificates; ask for appraisals that are still missing."""
        full = isinstance(message, HistoryMessage) and len(message.certificates) == HISTORY_LIMIT
        return [*([self._request(message.sender)] if full else []), *self.ask_for_appraisals((message.sender,))]

    def ask_for_appraisals(self, neighbours: tuple[int, ...]) -> list[Effect]:
        """Request the missing appraisals from these neighbours, once from each."""
        lacking = self._appraisals.missing()
        effects: list[Effect] = []
        for neighbour in neighbours:
            if lacking and self._wanted.get(neighbour) != lacking:
                self._wanted[neighbour] = lacking
                effects.append(Send(AppraisalRequest(self._config.digest, self._client, neighbour, lacking)))
        return effects

    def _request(self, neighbour: int) -> Send:
        return Send(HistoryRequest(self._config.digest, self._client, neighbour, self._chain.locator()))

    def _tell(self, neighbour: int, locator: tuple[bytes, ...]) -> list[Effect]:
        certificates = self._chain.after(locator)
        if not certificates:
            return []
        return [Send(HistoryMessage(self._config.digest, self._client, neighbour, certificates))]
