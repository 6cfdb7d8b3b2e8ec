"""N peers behind the selector contract: BP-UCB with nobody in the middle, over a simulated network.

This is the host of all peers. For each client it keeps what that client would keep itself, its own opinions while
elected, and it never lets one client's numbers reach another but through messages. What comes out is what
`BpUcb` elects from dense beliefs, to the bit; what can differ is that a slot is skipped when links are too bad.

An exchange in slot t elects for slot t + 1. Every slot has one: of the opinions on the model trained in it, or, if
none was trained, once more of the last opinions. Histories are equal at all peers, for a cohort that not all of
them have agreed on is withdrawn.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from fedelect.analytics.democratized import LinkedClients, couplings_of
from fedelect.equations.beliefs import Coupling, directed_links, outcome_of
from fedelect.errors import ConfigurationError, NoElection
from fedelect.protocol import (
    BeliefSettled,
    CohortAgreed,
    Effect,
    History,
    Peer,
    PeerConfig,
    SlotSkipped,
)
from fedelect.records import Exchange
from fedelect.seeds import rank_key
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.packing import pack, unpack
from fedelect.simulator.network import LinkConditions, Network, Traffic
from fedelect.simulator.peer_exchange import PeerExchange
from fedelect.vocabulary import Ask, Cohort, Feedback, Floats, Signal, as_cohort


@final
class PeerElection(AbstractSelector):
    """BP-UCB by N peers that exchange messages along the links of a graph.

    `tell` begins the slot at every peer with its own opinion and lets virtual time pass until all have agreed on the
    next cohort; `ask` gives that cohort, or raises NoElection if they have not agreed. The next `ask` tries again.

    Args:
        clients: N.
        budget: K.
        exploration: mu; the paper uses 0.01.
        seed: Fixes cold-start groups, ties and the luck of the links.
        edges: (M, 2) undirected links.
        couplings: (M,) J of each link.
        reading: "ising" or "evidence".
        rounds: Rounds of belief messages in each slot.
        damping: Share of the old message that is kept.
        resend_s: After how long peers repeat what may be lost, in virtual seconds.
        slot_s: After how long they give a slot up.
        conditions: How links treat messages; a `LinkConditions` or a mapping of its attributes.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions"})
    advice: ClassVar[str] = "As bp-ucb, message by message: to see what an election without a server costs."

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        exploration: float = 0.01,
        seed: int,
        edges: ArrayLike,
        couplings: ArrayLike,
        reading: str = "ising",
        rounds: int = 10,
        damping: float = 0.0,
        resend_s: float = 0.5,
        slot_s: float = 60.0,
        conditions: LinkConditions | Mapping[str, float] | None = None,
    ) -> None:
        links = conditions if isinstance(conditions, LinkConditions) else LinkConditions(**(conditions or {}))
        pairs, strengths = np.asarray(edges), np.asarray(couplings, dtype=np.float64)
        self._config = PeerConfig(
            clients=clients,
            budget=budget,
            exploration=exploration,
            seed=seed,
            reading=reading,
            rounds=rounds,
            damping=damping,
            resend_s=resend_s,
            slot_s=slot_s,
            graph=rank_key(repr((pairs.tolist(), strengths.tolist()))).hex(),
        )
        parameters = {name: value for name, value in vars(self._config).items() if name != "graph"}
        parameters |= {"edges": pairs.tolist(), "couplings": strengths.tolist(), "conditions": asdict(links)}
        super().__init__(clients=clients, budget=budget, parameters=parameters)
        self._conditions = links
        self._neighbours = _neighbourhoods(pairs, strengths, clients)
        self._peers = self._make_peers(None)
        self._given = np.zeros(clients, dtype=np.int64)  # opinions given while elected
        self._total = np.zeros(clients)  # their sum
        self._opinions = np.full(clients, np.nan)  # the last ones told
        self._surveyed = False  # whether any were ever told
        self._before: History | None = None  # what the peers remembered before their last exchange
        self._available: list[int] | None = None  # to whom the open ask was restricted
        first = self._peers[0].history.elected
        assert first is not None  # a fresh peer knows the first cold-start group
        self._result: CohortAgreed | str = CohortAgreed(0, first, ())
        self._last: PeerExchange | None = None

    @classmethod
    def from_scenario(
        cls,
        scenario: LinkedClients,
        *,
        exploration: float = 0.01,
        seed: int,
        coupling: Coupling | None = None,
        **network: Any,
    ) -> Self:
        """The peers of a scenario's clients; `network` may set `resend_s`, `slot_s` and `conditions`."""
        beliefs = scenario.config.beliefs
        return cls(
            clients=scenario.clients,
            budget=scenario.config.budget,
            exploration=exploration,
            seed=seed,
            edges=scenario.edges,
            couplings=couplings_of(scenario, coupling),
            reading=beliefs.reading,
            rounds=beliefs.rounds,
            damping=beliefs.damping,
            **network,
        )

    @property
    def last_exchange(self) -> PeerExchange | None:
        """How the last exchange went; None before the first."""
        return self._last

    @property
    def settled(self) -> tuple[Floats, Exchange] | None:
        """(N,) beliefs of the last exchange and how it went, as a slot record takes them; None before the first."""
        return None if self._last is None else (self._last.beliefs, self._last.for_the_record())

    def _choose(self, slot: int, available: Available) -> Choice:
        if self._peers[0].slot < slot - 1:  # the election before this one came to nothing: hold another
            self._hold(slot - 1)
        if isinstance(self._result, str):
            raise NoElection(f"no cohort for slot {slot}: {self._result}")
        if available is None:
            return self._result.cohort, self._result.indices
        here = np.flatnonzero(available).tolist()
        choice = self._reconsider(here)
        self._available = here
        return choice

    def _learn(self, ask: Ask, feedback: Feedback) -> None:
        assert feedback.opinions is not None  # declared in `needs`
        members = np.array(ask.cohort)
        present = members[~np.isnan(feedback.opinions[members])]
        self._given[present] += 1
        self._total[present] += feedback.opinions[present]
        self._opinions, self._surveyed = feedback.opinions.copy(), True
        self._available = None
        self._hold(ask.slot)

    def _abandoned(self, ask: Ask) -> None:
        self._available = None
        self._hold(ask.slot)

    def _hold(self, slot: int) -> None:
        """Let the peers exchange their last opinions in `slot` and elect for the slot after it."""
        count = np.maximum(self._given, 1)
        means = np.where(self._given > 0, self._total / count, np.nan)
        settled: dict[int, BeliefSettled] = {}
        agreed: dict[int, CohortAgreed] = {}
        skipped: dict[int, SlotSkipped] = {}

        def host(client: int, effect: Effect) -> list[Effect]:
            if isinstance(effect, BeliefSettled):
                settled[client] = effect
                belief = effect.belief if self._surveyed else float("nan")
                return self._peers[client].propose(float(means[client]), belief)
            if isinstance(effect, CohortAgreed):
                agreed[client] = effect
            elif isinstance(effect, SlotSkipped):
                skipped[client] = effect
            return []

        self._before = self._peers[0].history
        network = Network(
            self._peers,
            host,
            self._conditions,
            seed=self._config.seed,
            name=("slot", slot),
            limit_s=2.0 * self._config.slot_s,  # all slot deadlines pass at slot_s
        )
        for client, peer in enumerate(self._peers):
            network.post(client, peer.begin_slot(slot, float(self._opinions[client])))
        traffic = network.run(lambda: len(agreed) + len(skipped) == self.clients)
        self._result = agreed[0] if not skipped else _why(skipped, self.clients)
        if skipped:
            for client in agreed:
                self._peers[client].withdraw()
        self._last = self._summary(slot, settled, traffic)

    def _summary(self, slot: int, settled: Mapping[int, BeliefSettled], traffic: Traffic) -> PeerExchange:
        residual = max((one.residual for one in settled.values()), default=0.0)
        rounds = self._config.rounds if self._config.reading == "ising" else 0
        beliefs = np.array([settled[n].belief if n in settled else np.nan for n in range(self.clients)])
        reason = self._result if isinstance(self._result, str) else None
        outcome = outcome_of(rounds, residual)
        return PeerExchange(
            slot, beliefs, rounds, residual, outcome, traffic.sent, traffic.lost, traffic.virtual_s, reason
        )

    def _reconsider(self, available: list[int]) -> Choice:
        chosen = [peer.reconsider(available)[0] for peer in self._peers]
        assert isinstance(chosen[0], CohortAgreed)  # all that `reconsider` says
        return chosen[0].cohort, chosen[0].indices

    def _make_peers(self, history: History | None) -> list[Peer]:
        return [
            Peer(self._config, client, list(near), list(near.values()), history=history)
            for client, near in enumerate(self._neighbours)
        ]

    def _memory(self) -> dict[str, Any]:
        # The last exchange is held again on recall: it is the same to the bit, and the peers' maps need no saving.
        before = self._before
        return {
            "given": pack(self._given, "<u4"),
            "total": pack(self._total, "<f8"),
            "opinions": pack(self._opinions, "<f8"),
            "surveyed": self._surveyed,
            "available": self._available,
            "before": before and {"slot": before.slot, "pulls": list(before.pulls), "elected": before.elected},
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        size = self.clients
        self._given = unpack(memory["given"], "<u4", size=size, what="opinion counts").astype(np.int64)
        self._total = unpack(memory["total"], "<f8", size=size, what="opinion sums")
        self._opinions = unpack(memory["opinions"], "<f8", size=size, what="opinions")
        self._surveyed = bool(memory["surveyed"])
        before, available = memory["before"], memory["available"]
        if before is not None:
            elected: Cohort | None = None
            if before["elected"] is not None:
                elected = as_cohort(before["elected"], clients=size, what="the elected cohort")
            slot = int(before["slot"])
            self._peers = self._make_peers(History(slot, tuple(map(int, before["pulls"])), elected))
            self._hold(slot + 1)
        if available is not None:
            self._available = list(as_cohort(available, clients=size, what="available"))
            self._reconsider(self._available)


def _neighbourhoods(edges: Any, couplings: Floats, clients: int) -> list[dict[int, float]]:
    links = directed_links(edges, clients)
    if couplings.shape != (links.links.size // 2,):
        raise ConfigurationError(f"couplings has shape {couplings.shape} but there are {links.links.size // 2} edges")
    near: list[dict[int, float]] = [{} for _ in range(clients)]
    for source, target, coupling in zip(links.sources, links.targets, couplings[links.links], strict=True):
        near[target][int(source)] = float(coupling)
    return near


def _why(skipped: Mapping[int, SlotSkipped], clients: int) -> str:
    first = skipped[min(skipped)]
    return f"{len(skipped)} of {clients} clients did not agree in slot {first.slot}; {first.reason}"
