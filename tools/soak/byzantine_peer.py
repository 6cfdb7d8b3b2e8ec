"""A Byzantine member as a process: real runtime, TLS and keys, but `ByzantineClient` alters all that it sends.

`PeerProcesses` starts it through `wrap`, which puts this file and a seed before the usual command:
`python byzantine_peer.py SEED python -c CODE FOLDER CONTROL PATH...`. Only the folder and the import path are used.
"""

import sys

if __name__ == "__main__":
    SEED, FOLDER = int(sys.argv[1]), sys.argv[5]
    sys.path[:] = sys.argv[7:]

import contextlib
import os
from pathlib import Path

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import decode_message, encode
from fedelect.runtime.host_messages import Notice, encode_line
from fedelect.runtime.identity import Identity, read_identity
from fedelect.runtime.process import StandardInput, serve, transport_of
from fedelect.runtime.transport import Frame, Inbox
from fedelect.seeds import stream
from fedelect.testing.chaos.byzantine import ByzantineClient


class ListeningInbox(Inbox):
    """Passes everything on, and lets the Byzantine client hear it."""

    def __init__(self, inbox: Inbox, byzantine: ByzantineClient) -> None:
        super().__init__()
        self._inbox, self._byzantine = inbox, byzantine

    def put(self, event: object) -> None:
        """See `Inbox`."""
        self._inbox.put(event)

    def offer(self, frame: Frame) -> bool:
        """See `Inbox`."""
        with contextlib.suppress(RemoteProtocolError):
            self._byzantine.observe(decode_message(frame.content))
        return self._inbox.offer(frame)

    def charge(self, neighbour: int, cost: float) -> float:
        """See `Inbox`."""
        return self._inbox.charge(neighbour, cost)


class LyingLinks:
    """The links of a member that sends what suits it."""

    def __init__(self, me: Identity, seed: int) -> None:
        self._links = transport_of(me)
        self._byzantine = ByzantineClient(me.client, me.config, {me.client: me.signer}, rng=stream(seed, "liar"))

    def start(self, inbox: Inbox) -> None:
        """See `Transport`."""
        self._links.start(ListeningInbox(inbox, self._byzantine))

    def send(self, neighbour: int, frame: bytes) -> None:
        """See `Transport`."""
        for message in self._byzantine.alter(decode_message(frame)):
            self._links.send(message.receiver, encode(message))

    def close(self) -> None:
        """See `Transport`."""
        self._links.close()


def main() -> None:
    """Run the peer until its input ends."""
    me = read_identity(Path(FOLDER))
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(notice: Notice) -> None:
        answers.write(encode_line(notice))

    serve(Path(FOLDER), StandardInput(), tell, transport=LyingLinks(me, SEED))


if __name__ == "__main__":
    main()
