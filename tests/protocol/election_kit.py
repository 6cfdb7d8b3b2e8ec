"""Small elections for tests: configurations, signed things, and peers wired together by hand."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fedelect.protocol import Certificate, ElectionSettings, KeyedHashVerifier, Peer, PeerConfig, simulated_signers
from fedelect.protocol.effects import BeliefSettled, CohortAgreed, Effect, Persist, Record, Send, SlotSkipped
from fedelect.protocol.messages import Message
from fedelect.protocol.statements import Appraisal, SignedValue, Statement, Vote, seal_map
from fedelect.seeds import stream

SIGNERS = simulated_signers(8)
VERIFIER = KeyedHashVerifier()
PATH = ((0, 1), (1, 2), (2, 3))
BLIND = bytes(range(16))
RING = ((0, 1), (1, 2), (2, 3), (0, 3))


def config(clients: int = 4, edges: Sequence[tuple[int, int]] = RING, **changes: Any) -> PeerConfig:
    """Four clients in a ring, two to be elected; `changes` are settings."""
    settings: dict[str, Any] = {"budget": 2, "rounds": 2, "resend_s": 0.5, "silent_intervals": 3, "slot_s": 10.0}
    return PeerConfig(
        clients=clients,
        edges=tuple(edges),
        couplings=(0.2,) * len(edges),
        keys=tuple(signer.key for signer in SIGNERS[:clients]),
        settings=ElectionSettings(**(settings | changes)),
    )


def changed(shared: PeerConfig, **changes: Any) -> PeerConfig:
    """The same election with other members, links or settings."""
    outer = {name: changes.pop(name) for name in ("clients", "edges", "couplings", "keys") if name in changes}
    return replace(shared, settings=replace(shared.settings, **changes), **outer)


def value(
    shared: PeerConfig,
    client: int,
    mean: float = math.nan,
    belief: float = 0.5,
    *,
    slot: int = 1,
    previous: bytes | None = None,
    blind: bytes = BLIND,
) -> SignedValue:
    """A value that its client signed."""
    before = shared.digest if previous is None else previous
    bare = SignedValue(shared.digest, slot, before, client, mean, belief, blind)
    return replace(bare, signature=SIGNERS[client].sign(bare.content))


def statement(
    shared: PeerConfig,
    *,
    slot: int = 1,
    cohort: tuple[int, ...] = (0, 1),
    previous: bytes | None = None,
    hashed: bytes = bytes(32),
) -> Statement:
    """What might be certified."""
    return Statement(shared.digest, slot, shared.digest if previous is None else previous, cohort, hashed)


def vote(said: Statement, client: int) -> Vote:
    """A vote that its client signed."""
    return Vote(said, client, SIGNERS[client].sign(said.content))


def certificate(said: Statement, signers: Sequence[int] = (0, 1, 2)) -> Certificate:
    """A certificate by these clients."""
    return Certificate(said, tuple((client, SIGNERS[client].sign(said.content)) for client in signers))


def chain_of(
    shared: PeerConfig, cohorts: Sequence[tuple[int, ...]], *, first_slot: int = 1, signers: Sequence[int] = (0, 1, 2)
) -> list[Certificate]:
    """Certificates of consecutive slots, each on top of the one before."""
    certificates: list[Certificate] = []
    previous = shared.digest
    for slot, cohort in enumerate(cohorts, first_slot):
        certificates.append(certificate(statement(shared, slot=slot, cohort=cohort, previous=previous), signers))
        previous = certificates[-1].identity
    return certificates


def sealed_chain(
    shared: PeerConfig,
    cohorts: Sequence[tuple[int, ...]],
    worths: Sequence[float],
    *,
    first_slot: int = 1,
    previous: bytes | None = None,
    signers: Sequence[int] = (0, 1, 2),
) -> tuple[list[Certificate], list[Appraisal]]:
    """Certificates of consecutive slots that seal these worths, and the appraisals behind them."""
    certificates: list[Certificate] = []
    appraisals: list[Appraisal] = []
    for slot, (cohort, worth) in enumerate(zip(cohorts, worths, strict=True), first_slot):
        values = bytes([slot % 256]) * 32
        said = statement(shared, slot=slot, cohort=cohort, previous=previous, hashed=seal_map(values, worth))
        certificates.append(certificate(said, signers))
        appraisals.append(Appraisal(said.identity, values, worth))
        previous = said.identity
    return certificates, appraisals


def make_peer(shared: PeerConfig, client: int, records: Sequence[Record] = ()) -> Peer:
    """A peer with the simulated signature of its client."""
    return Peer(shared, client, SIGNERS[client], VERIFIER, records=records)


class Wired:
    """Peers whose messages fly until a test delivers them; hosts that answer at once and keep records.

    `cut(message)` says which messages are lost.
    """

    def __init__(self, shared: PeerConfig, cut: Callable[[Message], bool] = lambda message: False) -> None:
        self.config = shared
        self.cut = cut
        self.disks: list[list[Record]] = [[] for _ in range(shared.clients)]
        self.peers = [make_peer(shared, client) for client in range(shared.clients)]
        self.in_flight: deque[Message] = deque()
        self.sent: list[Message] = []
        self.agreed: dict[int, CohortAgreed] = {}
        self.skipped: dict[int, SlotSkipped] = {}
        self.told: list[tuple[int, Effect]] = []
        self.means: dict[int, float] = {}

    def carry_out(self, client: int, effects: Sequence[Effect]) -> None:
        """Be the host of `client`."""
        for effect in effects:
            self.told.append((client, effect))
            if isinstance(effect, Send):
                self.sent.append(effect.message)
                if not self.cut(effect.message):
                    self.in_flight.append(effect.message)
            elif isinstance(effect, Persist):
                self.disks[client].append(effect.record)
                self.carry_out(client, self.peers[client].persisted(effect.record))
            elif isinstance(effect, BeliefSettled):
                mean = self.means.get(client, math.nan)
                self.carry_out(client, self.peers[client].propose(mean, effect.belief, self.blind(client)))
            elif isinstance(effect, CohortAgreed):
                self.agreed[client] = effect
            elif isinstance(effect, SlotSkipped):
                self.skipped[client] = effect

    def blind(self, client: int) -> bytes:
        """What the host of `client` blinds its values with."""
        return stream(1, "blind", client).bytes(16)

    def begin(self, slot: int, clients: Sequence[int] | None = None, opinion: float = 0.5) -> None:
        """Begin a slot at these clients; all by default."""
        self.agreed, self.skipped = {}, {}
        for client in range(self.config.clients) if clients is None else clients:
            self.carry_out(client, self.peers[client].begin_slot(slot, opinion))

    def deliver(self, limit: int = 100_000) -> None:
        """Deliver what flies, oldest first."""
        while self.in_flight and limit:
            message = self.in_flight.popleft()
            self.carry_out(message.receiver, self.peers[message.receiver].receive(message))
            limit -= 1
        assert limit, "the messages never end"
