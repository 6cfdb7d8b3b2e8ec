"""What signature chains cost where all peers are honest: messages, bytes, signatures and checks of one election.

    python benchmarks/flood.py

Twenty peers on a ring with chords (four neighbours each), ed25519, ten rounds of belief messages, over the simulator's
network, with and without `byzantine`. The counts are exact and repeat; processor time depends on the machine.
"""

import sys

if sys.path[0].endswith("benchmarks"):
    del sys.path[0]  # selectors.py there would hide the standard library's

import math
import time
from collections.abc import Iterable

from fedelect.protocol import ElectionSettings, Peer, PeerConfig, encode
from fedelect.protocol.effects import BeliefSettled, CohortAgreed, Effect, Persist
from fedelect.protocol.messages import Message
from fedelect.runtime.signing import Ed25519Signer, Ed25519Verifier
from fedelect.seeds import rank_key
from fedelect.simulator.network import LinkConditions, Network

CLIENTS = 20
EDGES = tuple(sorted({(min(n, m), max(n, m)) for n in range(CLIENTS) for m in ((n + 1) % 20, (n + 5) % 20)}))


class Counted:
    """An ed25519 signer and verifier that counts its calls."""

    def __init__(self, client: int) -> None:
        self._signer = Ed25519Signer(rank_key(1, client) + rank_key(1, "more", client))
        self._verifier = Ed25519Verifier()
        self.key = self._signer.key
        self.signed = self.verified = 0

    def sign(self, message: bytes) -> bytes:
        """The signature."""
        self.signed += 1
        return self._signer.sign(message)

    def verify(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Whether the signature is of this key."""
        self.verified += 1
        return self._verifier.verify(key, message, signature)


class OneSlot:
    """One election of honest peers."""

    def __init__(self, max_faulty: int, byzantine: bool) -> None:
        self.keys = [Counted(client) for client in range(CLIENTS)]
        settings = ElectionSettings(budget=5, max_faulty=max_faulty, byzantine=byzantine, slot_s=200.0)
        self.config = PeerConfig(
            clients=CLIENTS,
            edges=EDGES,
            couplings=(0.1,) * len(EDGES),
            keys=tuple(one.key for one in self.keys),
            settings=settings,
        )
        self.peers = [Peer(self.config, client, one, one) for client, one in enumerate(self.keys)]
        self.bytes_sent = 0
        self.decided: set[int] = set()

    def play(self) -> str:
        """Hold the election; returns a line of figures for each peer."""
        network = Network(self.peers, self._host, LinkConditions(), seed=1, limit_s=400.0, relay=self._relay)
        began = time.process_time()
        for client, peer in enumerate(self.peers):
            network.carry_out(client, peer.begin_slot(1, math.nan))
        sent = network.run(lambda: len(self.decided) == CLIENTS).sent
        seconds = time.process_time() - began
        signed, verified = (sum(getattr(one, name) for one in self.keys) for name in ("signed", "verified"))
        return (
            f"{sent / CLIENTS:5.0f} messages {self.bytes_sent / CLIENTS / 1000:6.1f} kB {signed / CLIENTS:5.1f} signed "
            f"{verified / CLIENTS:5.1f} verified {seconds:.2f} s of processor time for all"
        )

    def _host(self, client: int, effect: Effect) -> list[Effect]:
        if isinstance(effect, BeliefSettled):
            return self.peers[client].propose(math.nan, math.nan, bytes([client]) * 16)
        if isinstance(effect, Persist):
            return self.peers[client].persisted(effect.record)
        if isinstance(effect, CohortAgreed):
            self.decided.add(client)
        return []

    def _relay(self, message: Message) -> Iterable[Message]:
        self.bytes_sent += len(encode(message))
        return (message,)


def main() -> None:
    """Print a line for each number of faulty peers and each setting."""
    for max_faulty in (1, 2, 3):
        for byzantine in (False, True):
            slot = OneSlot(max_faulty, byzantine)
            what = "byzantine" if byzantine else "crashes  "
            print(f"f = {max_faulty} {what} R = {slot.config.flood_rounds:2d}: {slot.play()}", flush=True)


if __name__ == "__main__":
    main()
