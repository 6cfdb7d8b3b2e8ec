"""How neighbours bring each other up to date: who is behind asks, who notices that another is behind tells.

A message that builds on another certificate than ours is never an accusation: one of the two has yet to hear of
something.
"""

from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.history.chain import HISTORY_LIMIT, CertificateChain
from fedelect.protocol.wire import BeliefMessage, Effect, GossipMessage, HistoryMessage, HistoryRequest, Send


class HistoryExchange:
    """One peer's questions and answers about certificates.

    Args:
        config: What all peers share.
        client: This client.
        chain: Its history.
    """

    def __init__(self, config: PeerConfig, client: int, chain: CertificateChain) -> None:
        self._config = config
        self._client = client
        self._chain = chain
        self._asked: dict[int, bytes] = {}  # neighbour -> about which certificate it was asked last

    def forget(self) -> None:
        """Questions may have been lost: they may be asked again."""
        self._asked.clear()

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

    def answer(self, request: HistoryRequest) -> list[Effect]:
        """The certificates that are asked for, if there are any."""
        return self._tell(request.sender, request.locator)

    def more(self, message: HistoryMessage) -> list[Effect]:
        """Ask on, if a full message shows that there may be more."""
        return [self._request(message.sender)] if len(message.certificates) == HISTORY_LIMIT else []

    def _request(self, neighbour: int) -> Send:
        return Send(HistoryRequest(self._config.digest, self._client, neighbour, self._chain.locator()))

    def _tell(self, neighbour: int, locator: tuple[bytes, ...]) -> list[Effect]:
        certificates = self._chain.after(locator)
        if not certificates:
            return []
        return [Send(HistoryMessage(self._config.digest, self._client, neighbour, certificates))]
