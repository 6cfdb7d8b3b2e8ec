"""Attacks on progress: what Byzantine clients can do so that honest ones do not agree in time.

All Byzantine clients of a run attack together: each can sign with the keys of all. Values are released in another
round of the flood in every slot. "Some" are every other neighbour; then the others of them; then only one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from fedelect.protocol import PeerConfig, Signer
from fedelect.protocol.gossip import Entry, Relayed
from fedelect.protocol.messages import BeliefMessage, GossipMessage, Message
from fedelect.protocol.proofs import TwoValues
from fedelect.protocol.statements import SignedValue, relay_content

ATTACKS = (
    "releases to some",
    "releases at the end",
    "forges chains",
    "second value to some",
    "proof to some",
    "silent",
    "silent to some",
    "withholds rounds",
    "drips rounds",
    "false beliefs",
    "late votes",
)
"""What Byzantine clients may do to keep the others from deciding."""


class Attacker:
    """One client's part in an attack.

    Args:
        client: Its number.
        config: What the peers share.
        keys: Signers of all Byzantine clients, by number.
    """

    def __init__(self, client: int, config: PeerConfig, keys: Mapping[int, Signer]) -> None:
        self._client = client
        self._config = config
        self._keys = keys
        self._own: dict[tuple[int, bytes], SignedValue] = {}
        self._released: dict[tuple[int, int], int] = {}  # (slot, receiver) -> the last round that it was given
        self._repeated: Counter[tuple[int, int]] = Counter()  # repetitions since then

    def alter(self, attack: str, message: Message) -> list[Message]:
        """The messages that are sent in place of an honest one."""
        if attack == "silent":
            return []
        if isinstance(message, BeliefMessage):
            return self._alter_belief(attack, message)
        if not isinstance(message, GossipMessage):
            return [message]
        for one in message.entries:
            if isinstance(one.entry, SignedValue) and one.entry.client == self._client:
                self._own[message.slot, message.previous] = one.entry
        if attack == "silent to some":
            return [] if self._is_some(message) else [message]
        if attack == "withholds rounds":
            return [replace(message, round=0)]
        if attack == "drips rounds":
            return [replace(message, round=self._drip(message))]
        if attack == "late votes":
            kept = [one for one in message.votes if one.client not in self._keys or message.wants_reply]
            return [replace(message, votes=tuple(kept))]
        return [replace(message, entries=self._alter_entries(attack, message))]

    def _alter_belief(self, attack: str, message: BeliefMessage) -> list[Message]:
        if attack == "withholds rounds" and message.round > 1:
            return []
        if attack == "silent to some" and self._is_some(message):
            return []
        if attack == "false beliefs":
            most = abs(self._config.neighbours[self._client][message.receiver])
            return [replace(message, value=most if self._is_some(message) else -most)]
        return [message]

    def _alter_entries(self, attack: str, message: GossipMessage) -> tuple[Relayed, ...]:
        own = self._own.get((message.slot, message.previous))
        if own is None:
            return message.entries
        if attack == "false beliefs":
            boast = self._sign(replace(own, belief=1.0))
            return tuple(replace(one, entry=boast) if one.entry == own else one for one in message.entries)
        rounds = self._config.flood_rounds
        first = rounds if attack == "releases at the end" else 1 + (message.slot + self._client) % rounds
        now = message.round >= first and self._is_some(message)
        if attack in ("releases to some", "releases at the end", "forges chains"):
            rest = tuple(one for one in message.entries if one.entry.client not in self._keys)
            return (*rest, self._chain(own, message, forged=attack == "forges chains")) if now else rest
        if attack not in ("second value to some", "proof to some") or not now:
            return message.entries
        second = self._sign(replace(own, belief=0.5 if own.belief != 0.5 else 0.25))
        shown = second if attack == "second value to some" else TwoValues(own, second)
        return (*message.entries, self._chain(shown, message))

    def _chain(self, entry: Entry, message: GossipMessage, *, forged: bool = False) -> Relayed:
        """The entry with the signatures of all Byzantine clients or, forged, as many honest names as it takes."""
        config, value = self._config, entry if isinstance(entry, SignedValue) else None
        content = relay_content(config.digest, message.slot, message.previous, entry.client, value)
        if config.windows == 1:
            return Relayed(entry)
        if forged:
            names = [n for n in range(config.clients) if n not in self._keys][: config.windows]
            return Relayed(entry, tuple((n, self._keys[self._client].sign(content)) for n in names))
        signers = sorted(n for n in self._keys if n != entry.client)
        return Relayed(entry, tuple((n, self._keys[n].sign(content)) for n in signers))

    def _drip(self, message: GossipMessage) -> int:
        """The round to admit: a new one only when it has been asked for again and again."""
        place = (message.slot, message.receiver)
        released = self._released.setdefault(place, 0)
        self._repeated[place] += message.wants_reply
        if message.round > released and self._repeated[place] >= self._config.settings.silent_intervals - 1:
            self._repeated[place], self._released[place] = 0, released + 1
        return self._released[place]

    def _is_some(self, message: BeliefMessage | GossipMessage) -> bool:
        place = list(self._config.neighbours[self._client]).index(message.receiver)
        turn = message.slot // self._config.flood_rounds % 3  # after all rounds, others
        return place == message.slot % 2 if turn == 2 else place % 2 == turn

    def _sign(self, value: SignedValue) -> SignedValue:
        return replace(value, signature=self._keys[self._client].sign(value.content))
