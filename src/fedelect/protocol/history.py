"""What the cohorts of history were worth, as the rule "bp-gp" needs it; under "bp-ucb" all of this stays empty.

The worth of a cohort follows from the map of the next certified slot, of which the certificate holds a seal only.
Whoever votes stores the appraisal behind it first, so as many disks hold it as signatures stand under the certificate.
Who was not among them asks its neighbours, and checks what it gets against the seal. Nobody votes before it knows
the worth of all cohorts of history: a guess would be a vote for something that does not follow.
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
    """One peer's appraisals, and the worth of the cohorts of history that follows from them.

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
        """Nothing of history is counted yet."""
        config = self._config
        self._played = empty_statistics(config.settings)
        self._tried: set[int] = set()
        self._last = config.digest  # the certificate up to which all is counted
        self._trained: Cohort | None = None  # its cohort

    def add(self, *appraisals: Appraisal) -> None:
        """Keep what is right: this peer's own, from before its vote, or what was checked."""
        self._known.update({appraisal.certificate: appraisal for appraisal in appraisals})

    def filter_new(self, appraisals: Iterable[Appraisal]) -> tuple[Appraisal, ...]:
        """Those of certificates known here whose worth is not; what cannot be checked yet is left out.

        Raises:
            RemoteProtocolError: One of them is not what the certificate seals.
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
        """The appraisals of these certificates, as far as they are certified and known here."""
        return tuple(self._known[name] for name in names if name in self._known and self._chain.find(name) is not None)

    def missing(self) -> tuple[bytes, ...]:
        """Certificates of history whose appraisal is not known, oldest first; as many as may be asked for at once."""
        if self._config.settings.rule != "bp-gp":
            return ()
        self._count()
        ahead = self._chain.after((self._last,), limit=len(self._chain))
        return tuple(one.identity for one in ahead if one.identity not in self._known)[:HISTORY_LIMIT]

    def statistics(self, worth: float) -> tuple[CohortStatistics, tuple[int, ...]]:
        """The cohorts of history with what they were worth, and whoever was in one of them.

        Args:
            worth: Of the last one, by the map that is frozen now; nan if nobody has a belief.
        """
        self._count()
        played, tried = self._played.copy(), set(self._tried)
        if self._trained is not None and not math.isnan(worth):
            played.add_reward(self._trained, worth, 0.0)
            tried.update(self._trained)
        return played, tuple(sorted(tried))

    def _count(self) -> None:
        """Count what is known of history, from its beginning on and without a gap."""
        if self._last not in self._chain:
            self._clear()  # another branch has become history
        for certificate in self._chain.after((self._last,), limit=len(self._chain)):
            if self._trained is not None:
                appraisal = self._known.get(certificate.identity)
                if appraisal is None:
                    return
                if not math.isnan(appraisal.worth):  # else nobody judged it: nothing is learnt of that cohort
                    self._played.add_reward(self._trained, appraisal.worth, 0.0)
                    self._tried.update(self._trained)
            self._last, self._trained = certificate.identity, certificate.cohort


class HistoryExchange:
    """One peer's questions and answers about certificates and appraisals.

    Args:
        config: What all peers share.
        client: This client.
        chain: Its history.
        appraisals: What it knows of the worth of its cohorts.
    """

    def __init__(self, config: PeerConfig, client: int, chain: CertificateChain, appraisals: Appraisals) -> None:
        self._config = config
        self._client = client
        self._chain = chain
        self._appraisals = appraisals
        self._asked: dict[int, bytes] = {}  # neighbour -> about which certificate it was asked last
        self._wanted: dict[int, tuple[bytes, ...]] = {}  # neighbour -> for whose appraisals it was asked last

    def ask_again(self) -> list[Effect]:
        """Questions may have been lost: they may be asked again, and those for appraisals are."""
        self._asked.clear()
        self._wanted.clear()
        return self.ask_for_appraisals(tuple(self._config.neighbours[self._client]))

    def catch_up(self, message: BeliefMessage | GossipMessage) -> list[Effect]:
        """What to say to somebody whose message builds on `message.previous`."""
        previous, sender = message.previous, message.sender
        if previous == self._chain.head:
            return []
        if not self._chain.knows(previous):
            if self._asked.get(sender) == previous:
                return []
            self._asked[sender] = previous
            return [self._request(sender)]
        # Votes of a slot that is decided here are still in the air when all is well: only who asks is told.
        waiting = not isinstance(message, GossipMessage) or message.wants_reply
        if message.slot <= self._chain.slot and not waiting:
            return []
        return self._tell(sender, (previous,))

    def answer(self, request: Request) -> list[Effect]:
        """What is asked for, as far as it is there."""
        if isinstance(request, HistoryRequest):
            return self._tell(request.sender, request.locator)
        found = self._appraisals.find(request.certificates)
        return [Send(AppraisalMessage(self._config.digest, self._client, request.sender, found))] if found else []

    def ask_further(self, message: Reply) -> list[Effect]:
        """Ask on, if a full message shows that there may be more, and for what the news leaves open."""
        full = isinstance(message, HistoryMessage) and len(message.certificates) == HISTORY_LIMIT
        return [*([self._request(message.sender)] if full else []), *self.ask_for_appraisals((message.sender,))]

    def ask_for_appraisals(self, neighbours: tuple[int, ...]) -> list[Effect]:
        """Ask these for the appraisals that are lacking; nobody twice for the same."""
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
