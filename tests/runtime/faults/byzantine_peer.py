"""A Byzantine peer as a process: real runtime, TLS and keys of a member, but its own values are bent on the way out.

`PeerProcesses` starts it through `wrap`, which puts this file and a habit before the usual command:
`python byzantine_peer.py HABIT python -c CODE FOLDER PATH...`. Of that only the folder and the import path are used.
"""

import sys

if __name__ == "__main__":
    HABIT, FOLDER = sys.argv[1], sys.argv[5]
    sys.path[:] = sys.argv[6:]

import math
import os
from dataclasses import replace
from pathlib import Path

from fedelect.protocol import Signer, decode_message, encode
from fedelect.protocol.gossip import Entry
from fedelect.protocol.messages import GossipMessage
from fedelect.protocol.statements import SignedValue
from fedelect.runtime.host_messages import Notice, encode_line
from fedelect.runtime.identity import read_identity
from fedelect.runtime.process import StandardInput, serve, transport_of
from fedelect.runtime.transport import Inbox, Transport

TWO_VALUES, IMPOSSIBLE_MEAN = "two-values", "impossible-mean"
HONEST_SLOTS = 4
"""Slots after which it begins to lie."""


class ByzantineLinks:
    """The links of a member that signs what suits it."""

    def __init__(self, links: Transport, client: int, signer: Signer, habit: str) -> None:
        self._links, self._client, self._signer, self._habit = links, client, signer, habit

    def start(self, inbox: Inbox) -> None:
        self._links.start(inbox)

    def send(self, neighbour: int, frame: bytes) -> None:
        message = decode_message(frame)
        if isinstance(message, GossipMessage) and message.slot > HONEST_SLOTS:
            bent = replace(
                message, entries=tuple(replace(one, entry=self._bent(one.entry, neighbour)) for one in message.entries)
            )
            frame = encode(bent)
        self._links.send(neighbour, frame)

    def close(self) -> None:
        self._links.close()

    def _bent(self, entry: Entry, receiver: int) -> Entry:
        if not isinstance(entry, SignedValue) or entry.client != self._client:
            return entry
        if self._habit == TWO_VALUES:
            entry = replace(entry, belief=0.9 if receiver % 2 else 0.1)
        elif not math.isnan(entry.mean):
            entry = replace(entry, mean=0.0 if entry.mean >= 0.5 else 1.0)  # no election can move it so far
        return replace(entry, signature=self._signer.sign(entry.content))


def main() -> None:
    me = read_identity(Path(FOLDER))
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(notice: Notice) -> None:
        answers.write(encode_line(notice))

    links = ByzantineLinks(transport_of(me), me.client, me.signer, HABIT)
    serve(Path(FOLDER), StandardInput(), tell, transport=links)


if __name__ == "__main__":
    main()
