"""How neighbours bring each other up to date: who is behind asks, who notices that another is behind tells.

A message that builds on another certificate than ours is never an accusation: one of the two has yet to hear of
something. Under the rule "bp-gp" a peer also asks for the appraisals that it lacks of the certificates it has.
"""

from fedelect.protocol.appraisals import Appraisals
from fedelect.protocol.chain import HISTORY_LIMIT, CertificateChain
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.effects import Effect, Send
from fedelect.protocol.messages import (
    Answer,
    AppraisalMessage,
    AppraisalRequest,
    BeliefMessage,
    GossipMessage,
    HistoryMessage,
    HistoryRequest,
    Request,
)


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
        return self.ask(tuple(self._config.neighbours[self._client]))

    def mind(self, message: BeliefMessage | GossipMessage) -> list[Effect]:
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

    def more(self, message: Answer) -> list[Effect]:
        """Ask on, if a full message shows that there may be more, and for what the news leaves open."""
        full = isinstance(message, HistoryMessage) and len(message.certificates) == HISTORY_LIMIT
        return [*([self._request(message.sender)] if full else []), *self.ask((message.sender,))]

    def ask(self, neighbours: tuple[int, ...]) -> list[Effect]:
        """Ask these for the appraisals that are lacking; nobody twice for the same."""
        lacking = self._appraisals.lacking()
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
