"""Peers under hostile schedules: messages dropped, repeated, reordered; peers crashed and restarted at will.

Whatever happens, no slot can be certified twice, no honest peer is proven to misbehave or refused, beliefs of a slot in
which nobody failed are the dense ones to the bit, and once its deadline has passed every peer has decided or said
why not. Then the network works again, and all decide.
"""

import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.protocol.election_kit import SIGNERS, VERIFIER

from fedelect.equations.beliefs import local_field, settle
from fedelect.protocol import OPEN_STATES, ElectionSettings, OwnRewards, Peer, PeerConfig, State, prepare_claim
from fedelect.protocol.effects import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    Persist,
    Record,
    Send,
    SlotSkipped,
    Wait,
)
from fedelect.protocol.messages import Message
from fedelect.seeds import stream
from fedelect.testing.chaos.observer import Observer

EDGES = ((0, 1), (0, 4), (1, 2), (1, 3), (2, 3), (3, 4))
COUPLINGS = (0.4, -0.3, 0.2, 0.5, -0.6, 0.1)
CLIENTS = 5


class HostilePeers(RuleBasedStateMachine):
    """Five peers, their hosts, and a network that does what hypothesis wants."""

    @initialize(
        rounds=st.integers(1, 3),
        damping=st.sampled_from([0.0, 0.5]),
        seed=st.integers(0, 99),
        by=st.sampled_from(["bp-ucb", "bp-gp"]),
    )
    def start(self, rounds: int, damping: float, seed: int, by: str) -> None:
        self.config = PeerConfig(
            clients=CLIENTS,
            edges=EDGES,
            couplings=COUPLINGS,
            keys=tuple(signer.key for signer in SIGNERS[:CLIENTS]),
            settings=ElectionSettings(
                budget=2, rule=by, rounds=rounds, damping=damping, seed=seed, max_faulty=1, silent_intervals=2
            ),
        )
        self.observer = Observer(self.config, VERIFIER, frozenset())
        self.disks: list[list[Record]] = [[] for _ in range(CLIENTS)]
        self.blinds = itertools.count()  # fresh ones, also for a client that is made again
        self.rewards = [OwnRewards(client) for client in range(CLIENTS)]
        self.peers = [self.make(client) for client in range(CLIENTS)]
        self.in_flight: list[Message] = []
        self.slot = 0
        self.links_lost: set[tuple[int, int]] = set()  # (client, neighbour) as the client was told
        self.begin_next_slot()

    def make(self, client: int) -> Peer:
        return Peer(self.config, client, SIGNERS[client], VERIFIER, records=self.disks[client])

    def begin_next_slot(self) -> None:
        self.slot += 1
        self.undisturbed = not self.links_lost  # a neighbour that is lost is not waited for
        self.ended: dict[int, CohortAgreed | SlotSkipped] = {}
        rng = stream(self.config.settings.seed, "opinions", self.slot)
        self.opinions = np.where(rng.random(CLIENTS) < 0.2, np.nan, rng.random(CLIENTS))
        settling = settle(
            local_field(self.opinions),
            EDGES,
            np.array(COUPLINGS),
            rounds=self.config.settings.rounds,
            damping=self.config.settings.damping,
        )
        self.beliefs = settling.beliefs.tolist()
        for client, peer in enumerate(self.peers):
            self.rewards[client].give(self.slot - 1, float(self.opinions[client]))
            self.carry_out(client, peer.begin_slot(self.slot, float(self.opinions[client])))

    def carry_out(self, client: int, effects: list[Effect]) -> None:
        peer = self.peers[client]
        for effect in effects:
            if isinstance(effect, Send):
                self.observer.see_message(effect.message)
                self.in_flight.append(effect.message)
            elif isinstance(effect, BeliefSettled):
                assert not self.undisturbed or effect.belief == self.beliefs[client]
                mean, by = self.rewards[client].claim(peer.chain), self.config.settings.rule
                claim = prepare_claim(peer.chain, rule=by, mean=mean, belief=effect.belief, judged=self.slot - 1)
                self.carry_out(client, peer.propose(*claim, next(self.blinds).to_bytes(16, "little")))
            elif isinstance(effect, Persist):
                self.disks[client].append(effect.record)
                self.observer.check_record(client, effect.record, peer)
                self.carry_out(client, peer.persisted(effect.record))
            elif isinstance(effect, CohortAgreed | SlotSkipped):
                assert client not in self.ended
                self.ended[client] = effect
                if isinstance(effect, CohortAgreed):
                    self.observer.note_decision(client, effect)

    def receive(self, message: Message) -> None:
        self.carry_out(message.receiver, self.peers[message.receiver].receive(message))

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), keep=st.booleans())
    def deliver(self, data: st.DataObject, keep: bool) -> None:
        place = data.draw(st.integers(0, len(self.in_flight) - 1))
        self.receive(self.in_flight[place] if keep else self.in_flight.pop(place))

    @precondition(lambda self: self.in_flight)
    @rule(count=st.integers(1, 60), newest=st.booleans())
    def deliver_many(self, count: int, newest: bool) -> None:
        for _ in range(min(count, len(self.in_flight))):
            self.receive(self.in_flight.pop(-1 if newest else 0))

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.in_flight) - 1))
        del self.in_flight[start : start + data.draw(st.integers(1, 20))]

    @rule(client=st.integers(0, CLIENTS - 1))
    def tick(self, client: int) -> None:
        peer = self.peers[client]
        if peer.state is not State.IDLE:
            self.undisturbed = False  # a neighbour may be given up
            self.carry_out(client, peer.deadline_passed(Deadline(Wait.RESEND, self.slot)))

    @rule(client=st.integers(0, CLIENTS - 1))
    def give_up(self, client: int) -> None:
        if self.peers[client].state is not State.IDLE:
            self.carry_out(client, self.peers[client].deadline_passed(Deadline(Wait.SLOT, self.slot)))
            assert client in self.ended

    @rule(edge=st.sampled_from(EDGES), back=st.booleans(), turned=st.booleans())
    def links_say_whatever_they_like(self, edge: tuple[int, int], back: bool, turned: bool) -> None:
        client, neighbour = edge[::-1] if turned else edge
        peer = self.peers[client]
        self.undisturbed = self.undisturbed and back
        self.links_lost = self.links_lost - {(client, neighbour)} | (set() if back else {(client, neighbour)})
        self.carry_out(client, peer.neighbour_back(neighbour) if back else peer.neighbour_lost(neighbour))

    @rule(client=st.integers(0, CLIENTS - 1), lost=st.integers(0, 1))
    def crash_and_restart(self, client: int, lost: int) -> None:
        """What was stored is there again; if it signed nothing in this slot, it begins it again."""
        self.undisturbed = False
        self.ended.pop(client, None)
        self.links_lost = {link for link in self.links_lost if link[0] != client}
        self.peers[client] = peer = self.make(client)
        if self.slot > max(peer.slot, peer.chain.slot):
            self.carry_out(client, peer.begin_slot(self.slot, float(self.opinions[client])))

    @rule()
    def begin_again_when_all_are_done(self) -> None:
        if not any(peer.state in OPEN_STATES or peer.chain.slot > self.slot for peer in self.peers):
            self.begin_next_slot()

    @rule()
    def a_network_that_works_again_brings_a_decision_by_all(self) -> None:
        for client, peer in enumerate(self.peers):
            if peer.state in OPEN_STATES:
                self.carry_out(client, peer.deadline_passed(Deadline(Wait.SLOT, self.slot)))
        self.in_flight.clear()
        for client, peer in enumerate(self.peers):
            for neighbour in peer.neighbours:
                self.carry_out(client, peer.neighbour_back(neighbour))
        self.links_lost.clear()
        self.begin_next_slot()
        for _ in range(12):
            while self.in_flight:
                self.receive(self.in_flight.pop(0))
            for client in range(CLIENTS):
                self.tick(client)
        assert all(isinstance(end, CohortAgreed) for end in self.ended.values())
        assert len(self.ended) == CLIENTS

    @invariant()
    def nothing_happened_that_never_must(self) -> None:
        assert self.observer.split_slots() == []
        assert self.observer.violations == []

    @invariant()
    def all_who_are_done_have_said_so(self) -> None:
        for client, peer in enumerate(self.peers):
            if peer.state in (State.DECIDED, State.SKIPPED):
                assert client in self.ended

    def teardown(self) -> None:
        if hasattr(self, "peers"):
            for client in range(CLIENTS):
                self.give_up(client)
            reasons = [end.reason for end in self.ended.values() if isinstance(end, SlotSkipped)]
            assert all(reasons)


TestHostilePeers = HostilePeers.TestCase
TestHostilePeers.settings = settings(max_examples=60, stateful_step_count=30)
