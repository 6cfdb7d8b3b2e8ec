"""N simulated peers behind the selector contract: BP-UCB or BP-GP without a coordinator, message by message.

The cohorts are those that `BpUcb` or `BpGp` elects from dense beliefs, to the bit; bad links may cost a slot. This
module hosts all peers. It keeps for each client only what that client would keep itself, so that one client's numbers
reach another only by messages.

The exchange of opinions on the model of slot t is the election for slot t + 1, so `tell` holds that election. Every
slot is certified, the cold start too; if nothing was trained, the last opinions are exchanged again. One peer with a
certificate is enough; the others get it before the next slot, as they would from the server.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from fedelect.analytics import LinkedClients, link_couplings
from fedelect.equations.beliefs import outcome_of
from fedelect.errors import NoElection
from fedelect.protocol import (
    BLIND_BYTES,
    Certificate,
    ElectionSettings,
    KeyedHashVerifier,
    Peer,
    PeerConfig,
    prepare_claim,
    simulated_signers,
)
from fedelect.protocol.effects import BeliefSettled, CohortAgreed, Effect, Persist, SlotSkipped
from fedelect.records import Exchange
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.simulator.network import LinkConditions, Network
from fedelect.simulator.peer_storage import PeerStorage
from fedelect.vocabulary import Feedback, Floats, Selection, Signal, as_cohort


@dataclass(frozen=True, slots=True, eq=False)
class PeerExchange:
    """How the last exchange among the peers went.

    Attributes:
        slot: The slot whose opinions were exchanged.
        beliefs: (N,) settled beliefs; nan where a peer has none.
        exchange: Rounds, residual, outcome, messages and virtual time, as a slot record holds them.
        lost: Messages that the links lost.
        skipped: Why no cohort was certified, or None.
    """

    slot: int
    beliefs: Floats
    exchange: Exchange
    lost: int
    skipped: str | None


@final
class PeerElection(AbstractSelector):
    """BP-UCB or BP-GP by N peers that exchange messages along the links of a graph.

    `tell` holds the election for the next slot: every peer begins it with its own opinion, and virtual time passes
    until each has a certificate or has given up. `ask` returns the certified cohort, or raises NoElection; the next
    `ask` tries again. An `ask` among some clients only holds the election again, restricted to these.

    Args:
        clients: N.
        edges: (M, 2) undirected links, which connect all clients.
        couplings: (M,) J of each link.
        conditions: How links treat messages; a `LinkConditions` or a mapping of its attributes.
        settings: Attributes of `ElectionSettings`; the seed also fixes the random draws of the links.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions"})
    initial_arrays: ClassVar[Mapping[str, float]] = {"given": 0.0, "total": 0.0, "opinions": math.nan}
    advice: ClassVar[str] = (
        "As bp-ucb (rule=bp-gp: as bp-gp), message by message: what an election without a server costs."
    )
    version: ClassVar[int] = 3

    def __init__(
        self,
        *,
        clients: int,
        edges: ArrayLike,
        couplings: ArrayLike,
        conditions: LinkConditions | Mapping[str, float] | None = None,
        **settings: Any,
    ) -> None:
        links = conditions if isinstance(conditions, LinkConditions) else LinkConditions(**(conditions or {}))
        self._settings = chosen = ElectionSettings(**settings)
        super().__init__(clients=clients, budget=chosen.budget, seed=chosen.seed)
        self.parameters |= asdict(chosen) | {"exploration": chosen.exploration_weight, "conditions": asdict(links)}
        self._signers = simulated_signers(clients, chosen.seed)
        self._config = PeerConfig(
            clients=clients,
            edges=tuple((int(one), int(other)) for one, other in np.asarray(edges).reshape(-1, 2)),
            couplings=tuple(np.asarray(couplings, dtype=np.float64).tolist()),
            keys=tuple(signer.key for signer in self._signers),
            settings=chosen,
        )
        self._conditions = links
        self._judged = 0  # the slot whose model the last opinions are on
        self._held = 0  # the slot of the last election
        self._available: list[int] | None = None  # the clients to which it was restricted
        self._storage = PeerStorage(self._config, self._signers)
        self._peers = self._make_peers()
        self._result: CohortAgreed | str = "no election was held yet"
        self._last: PeerExchange | None = None

    @classmethod
    def from_scenario(
        cls, scenario: LinkedClients, *, seed: int, conditions: LinkConditions | None = None, **settings: Any
    ) -> Self:
        """The peers of a scenario's clients; `settings` may hold any other attribute of `ElectionSettings`."""
        chosen = ElectionSettings.for_scenario(scenario.config, seed=seed, **settings)
        return cls(
            clients=scenario.clients,
            edges=scenario.edges,
            couplings=link_couplings(scenario),
            conditions=conditions,
            **asdict(chosen),
        )

    @property
    def last_exchange(self) -> PeerExchange | None:
        """How the last exchange went; None before the first."""
        return self._last

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Certified history, as a server would see it."""
        return self._peers[0].chain.certificates

    @property
    def settled(self) -> tuple[Floats, Exchange] | None:
        """(N,) beliefs of the last exchange and how it went, as a slot record takes them; None before the first."""
        return None if self._last is None else (self._last.beliefs, self._last.exchange)

    def _choose(self, slot: int, available: Available) -> Choice:
        here = None if available is None or available.all() else np.flatnonzero(available).tolist()
        if self._held < slot:
            self._hold_election(slot, here)
        elif here != self._available:
            self._peers = self._make_peers()
            self._hold_election(slot, here)
        if isinstance(self._result, str):
            raise NoElection(f"no cohort for slot {slot}: {self._result}")
        return self._result.cohort, self._result.indices

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None  # declared in `needs`
        members = np.array(selection.cohort)
        present = members[~np.isnan(feedback.opinions[members])]
        self.arrays["given"][present] += 1
        self.arrays["total"][present] += feedback.opinions[present]
        self.arrays["opinions"] = feedback.opinions.copy()
        self._judged = selection.slot
        self._hold_election(selection.slot + 1)

    def _abandon(self, selection: Selection) -> None:
        self._hold_election(selection.slot + 1)

    def _hold_election(self, slot: int, available: list[int] | None = None) -> None:
        """Let the peers exchange the last opinions and elect for `slot`."""
        self._held, self._available = slot, available
        self._storage.begin(self.certificates)
        hosts = _Hosts(self._peers, self._storage, slot, self._judged, self._means(), available)
        network = Network(
            self._peers,
            hosts.carry_out,
            self._conditions,
            seed=self.seed,
            name=("slot", slot),
            limit_s=2.0 * self._settings.slot_s,  # all slot deadlines pass at slot_s
        )
        for client, peer in enumerate(self._peers):
            network.carry_out(client, peer.begin_slot(slot, float(self.arrays["opinions"][client])))
        traffic = network.run(hosts.has_finished)
        self._result = hosts.result()
        if isinstance(self._result, CohortAgreed):
            for peer in self._peers:
                peer.learn([self._result.certificate])
        skipped = self._result if isinstance(self._result, str) else None
        residual = max((one.residual for one in hosts.settled.values()), default=0.0)
        rounds = self._settings.rounds if self._settings.reading == "ising" else 0
        exchange = Exchange(
            rounds=rounds,
            residual=residual,
            outcome=str(outcome_of(rounds, residual)) if skipped is None else f"no cohort: {skipped}",
            messages=traffic.sent,
            virtual_seconds=traffic.virtual_s,
        )
        self._last = PeerExchange(slot - 1, hosts.beliefs(), exchange, traffic.lost, skipped)

    def _means(self) -> Floats:
        """(N,) mean of each client's opinions while elected; nan if it has none."""
        given = self.arrays["given"]
        return np.where(given > 0, self.arrays["total"] / np.maximum(given, 1.0), np.nan)

    def _make_peers(self) -> list[Peer]:
        verifier = KeyedHashVerifier()
        return [
            Peer(self._config, client, signer, verifier, records=records)
            for client, (signer, records) in enumerate(zip(self._signers, self._storage.rewind(), strict=True))
        ]

    def _memory(self) -> dict[str, Any]:
        # The last election is held again on recall: it is the same to the bit, and the peers' maps need no saving.
        own = {"judged": self._judged, "held": self._held, "available": self._available}
        return own | self._storage.memory()

    def _recall(self, memory: dict[str, Any]) -> None:
        self._judged = int(memory["judged"])
        self._storage.recall(memory)
        self._peers = self._make_peers()
        available = memory["available"]
        if available is not None:
            available = list(as_cohort(available, clients=self.clients, what="available"))
        if int(memory["held"]):
            self._hold_election(int(memory["held"]), available)


class _Hosts:
    """The hosts of all peers in one election: they propose, store records and collect results.

    Args:
        peers: One for each client.
        storage: Their stable storage.
        slot: The slot to elect for.
        judged: The slot whose model the opinions are on; 0 if none.
        means: (N,) mean of each client's own rewards; nan if it has none.
        available: The clients that can be elected; None means all.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        storage: PeerStorage,
        slot: int,
        judged: int,
        means: Floats,
        available: list[int] | None,
    ) -> None:
        self._peers, self._storage, self._slot = peers, storage, slot
        self._judged, self._means, self._available = judged, means, available
        self.settled: dict[int, BeliefSettled] = {}
        self._agreed: dict[int, CohortAgreed] = {}
        self._skipped: dict[int, SlotSkipped] = {}

    def carry_out(self, client: int, effect: Effect) -> list[Effect]:
        """Do what the peer of `client` asks for; returns the effects that follow."""
        peer = self._peers[client]
        if isinstance(effect, BeliefSettled):
            self.settled[client] = effect
            settings, mean = peer.config.settings, float(self._means[client])
            claim = prepare_claim(peer.chain, rule=settings.rule, mean=mean, belief=effect.belief, judged=self._judged)
            blind = stream(settings.seed, "blind", self._slot, client).bytes(BLIND_BYTES)  # the same if held again
            return peer.propose(*claim, blind, self._available)
        if isinstance(effect, Persist):
            self._storage.store(client, effect.record)
            return peer.persisted(effect.record)
        if isinstance(effect, CohortAgreed):
            self._agreed[client] = effect
        elif isinstance(effect, SlotSkipped):
            self._skipped[client] = effect
        return []

    def has_finished(self) -> bool:
        """Whether every peer has decided or given up."""
        return len(self._agreed) + len(self._skipped) == len(self._peers)

    def beliefs(self) -> Floats:
        """(N,) settled beliefs; nan where a peer has none."""
        return np.array([self.settled[n].belief if n in self.settled else np.nan for n in range(len(self._peers))])

    def result(self) -> CohortAgreed | str:
        """The certified cohort, with indices if any peer has them; else why there is none."""
        if self._agreed:
            return max(self._agreed.values(), key=lambda one: len(one.indices))
        if not self._skipped:
            return "time was up"
        first = self._skipped[min(self._skipped)]
        return f"{len(self._skipped)} of {len(self._peers)} clients did not agree in slot {first.slot}; {first.reason}"
