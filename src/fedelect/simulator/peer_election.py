"""N peers behind the selector contract: BP-UCB or BP-GP with nobody in the middle, over a simulated network.

This is the host of all peers. For each client it keeps what that client would keep itself, its own opinions while
elected, and it never lets one client's numbers reach another but through messages. What comes out is what `BpUcb`, or
`BpGp`, elects from dense beliefs, to the bit; what can differ is that a slot is skipped when links are too bad.

Every slot is elected for and certified, the cold start too: for slot 1 before anything was trained, then for each
next slot after the opinions on the last model (if none was trained, the same opinions once more). A certificate
stands as soon as one peer has it. Peers that missed it get it before the next slot, as they would from the server.
"""

from collections.abc import Mapping
from dataclasses import asdict
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
from fedelect.rules.packing import pack, unpack
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.simulator.network import LinkConditions, Network, Traffic
from fedelect.simulator.peer_exchange import PeerDisks, PeerExchange
from fedelect.vocabulary import Feedback, Floats, Selection, Signal, as_cohort


@final
class PeerElection(AbstractSelector):
    """BP-UCB or BP-GP by N peers that exchange messages along the links of a graph.

    `tell` begins the next slot at every peer with its own opinion and lets virtual time pass until all have seen its
    certificate or given up; `ask` gives the certified cohort, or raises NoElection if there is none. The next `ask`
    tries again. An `ask` among some clients only holds the election again, as if that had been known from the start.

    Args:
        clients: N.
        edges: (M, 2) undirected links, which connect all clients.
        couplings: (M,) J of each link.
        conditions: How links treat messages; a `LinkConditions` or a mapping of its attributes.
        settings: Attributes of `ElectionSettings`; the seed also fixes the random draws of the links.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions"})
    advice: ClassVar[str] = (
        "As bp-ucb (rule=bp-gp: as bp-gp), message by message: what an election without a server costs."
    )
    version: ClassVar[int] = 2

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
        self._signers = simulated_signers(clients, chosen.seed)
        self._config = PeerConfig(
            clients=clients,
            edges=tuple((int(one), int(other)) for one, other in np.asarray(edges).reshape(-1, 2)),
            couplings=tuple(np.asarray(couplings, dtype=np.float64).tolist()),
            keys=tuple(signer.key for signer in self._signers),
            settings=chosen,
        )
        parameters = {"clients": clients} | asdict(chosen) | {"exploration": chosen.exploration_weight}
        if chosen.rule == "bp-ucb":
            del parameters["rule"], parameters["forgetting"], parameters["memory"]
        parameters |= {"edges": [list(edge) for edge in self._config.edges]}
        parameters |= {"couplings": list(self._config.couplings), "conditions": asdict(links)}
        super().__init__(clients=clients, budget=chosen.budget, seed=chosen.seed)
        self.parameters = parameters
        self._conditions = links
        self._given = np.zeros(clients, dtype=np.int64)  # opinions given while elected
        self._total = np.zeros(clients)  # their sum
        self._opinions = np.full(clients, np.nan)  # the last ones told
        self._judged = 0  # the slot that they are of
        self._held = 0  # the slot of the last election
        self._disks = PeerDisks(self._config, self._signers)
        self._available: list[int] | None = None  # to whom it was restricted
        self._peers: list[Peer] = self._make_peers()
        self._result: CohortAgreed | str = "no election was held yet"
        self._last: PeerExchange | None = None

    @classmethod
    def from_scenario(
        cls,
        scenario: LinkedClients,
        *,
        seed: int,
        conditions: LinkConditions | None = None,
        **settings: Any,
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
        """Certified history so far: what a server would have been shown."""
        return self._peers[0].chain.certificates

    @property
    def settled(self) -> tuple[Floats, Exchange] | None:
        """(N,) beliefs of the last exchange and how it went, as a slot record takes them; None before the first."""
        return None if self._last is None else (self._last.beliefs, self._last.for_the_record())

    def _choose(self, slot: int, available: Available) -> Choice:
        here = None if available is None or available.all() else np.flatnonzero(available).tolist()
        if self._held < slot:
            self._hold(slot, here)
        elif here != self._available:
            self._peers = self._make_peers()
            self._hold(slot, here)
        if isinstance(self._result, str):
            raise NoElection(f"no cohort for slot {slot}: {self._result}")
        return self._result.cohort, self._result.indices

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.opinions is not None  # declared in `needs`
        members = np.array(selection.cohort)
        present = members[~np.isnan(feedback.opinions[members])]
        self._given[present] += 1
        self._total[present] += feedback.opinions[present]
        self._opinions, self._judged = feedback.opinions.copy(), selection.slot
        self._hold(selection.slot + 1, None)

    def _abandon(self, selection: Selection) -> None:
        self._hold(selection.slot + 1, None)

    def _hold(self, slot: int, available: list[int] | None) -> None:
        """Let the peers exchange their last opinions and elect for `slot`."""
        count = np.maximum(self._given, 1)
        means = np.where(self._given > 0, self._total / count, np.nan)
        settled: dict[int, BeliefSettled] = {}
        agreed: dict[int, CohortAgreed] = {}
        skipped: dict[int, SlotSkipped] = {}

        def host(client: int, effect: Effect) -> list[Effect]:
            if isinstance(effect, BeliefSettled):
                settled[client], peer = effect, self._peers[client]
                mean, belief, rule = float(means[client]), effect.belief, self._settings.rule
                claim = prepare_claim(peer.chain, rule=rule, mean=mean, belief=belief, judged=self._judged)
                blind = stream(self._settings.seed, "blind", slot, client).bytes(BLIND_BYTES)  # the same if held again
                return peer.propose(*claim, blind, available)
            if isinstance(effect, Persist):
                self._disks.store(client, effect.record)
                return self._peers[client].persisted(effect.record)
            if isinstance(effect, CohortAgreed):
                agreed[client] = effect
            elif isinstance(effect, SlotSkipped):
                skipped[client] = effect
            return []

        self._held, self._available = slot, available
        self._disks.begin(self._peers[0].chain.certificates)
        network = Network(
            self._peers,
            host,
            self._conditions,
            seed=self._settings.seed,
            name=("slot", slot),
            limit_s=2.0 * self._settings.slot_s,  # all slot deadlines pass at slot_s
        )
        for client, peer in enumerate(self._peers):
            network.post(client, peer.begin_slot(slot, float(self._opinions[client])))
        traffic = network.run(lambda: len(agreed) + len(skipped) == self.clients)
        self._result = _why(skipped, self.clients)
        if agreed:
            self._result = best = max(agreed.values(), key=lambda one: len(one.indices))
            for peer in self._peers:
                peer.learn([best.certificate])
        self._last = self._summary(slot, settled, traffic)

    def _summary(self, slot: int, settled: Mapping[int, BeliefSettled], traffic: Traffic) -> PeerExchange:
        residual = max((one.residual for one in settled.values()), default=0.0)
        rounds = self._settings.rounds if self._settings.reading == "ising" else 0
        beliefs = np.array([settled[n].belief if n in settled else np.nan for n in range(self.clients)])
        reason = self._result if isinstance(self._result, str) else None
        outcome = outcome_of(rounds, residual)
        return PeerExchange(
            slot - 1, beliefs, rounds, residual, outcome, traffic.sent, traffic.lost, traffic.virtual_s, reason
        )

    def _make_peers(self) -> list[Peer]:
        verifier = KeyedHashVerifier()
        return [
            Peer(self._config, client, signer, verifier, records=records)
            for client, (signer, records) in enumerate(zip(self._signers, self._disks.rewind(), strict=True))
        ]

    def _memory(self) -> dict[str, Any]:
        # The last election is held again on recall: it is the same to the bit, and the peers' maps need no saving.
        return {
            "given": pack(self._given, "<u4"),
            "total": pack(self._total, "<f8"),
            "opinions": pack(self._opinions, "<f8"),
            "judged": self._judged,
            "held": self._held,
            "available": self._available,
            **self._disks.memory(),
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        size = self.clients
        self._given = unpack(memory["given"], "<u4", size=size, what="opinion counts").astype(np.int64)
        self._total = unpack(memory["total"], "<f8", size=size, what="opinion sums")
        self._opinions = unpack(memory["opinions"], "<f8", size=size, what="opinions")
        self._judged = int(memory["judged"] if "judged" in memory else memory["surveyed"])  # before bp-gp: ever, or not
        self._disks.recall(memory)
        self._peers = self._make_peers()
        available = memory["available"]
        if available is not None:
            available = list(as_cohort(available, clients=size, what="available"))
        if int(memory["held"]):
            self._hold(int(memory["held"]), available)


def _why(skipped: Mapping[int, SlotSkipped], clients: int) -> str:
    if not skipped:
        return "time was up"
    first = skipped[min(skipped)]
    return f"{len(skipped)} of {clients} clients did not agree in slot {first.slot}; {first.reason}"
