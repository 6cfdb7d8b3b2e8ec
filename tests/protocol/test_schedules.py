"""Peers under hostile schedules: messages dropped, repeated and reordered at will.

Whatever happens, all cohorts agreed in a slot are one cohort, beliefs are the dense ones to the bit, and once its
deadline has passed every peer has agreed or has said why not.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fedelect.equations.beliefs import local_field, settle
from fedelect.protocol import (
    BeliefSettled,
    CohortAgreed,
    Deadline,
    Effect,
    Message,
    Peer,
    PeerConfig,
    Send,
    SlotSkipped,
    State,
    Wait,
)
from fedelect.protocol.transitions import OPEN
from fedelect.seeds import stream

EDGES = [(0, 1), (0, 4), (1, 2), (1, 3), (2, 3), (3, 4)]
COUPLINGS = np.array([0.4, -0.3, 0.2, 0.5, -0.6, 0.1])
CLIENTS = 5


class HostilePeers(RuleBasedStateMachine):
    """Five peers, their hosts, and a network that does what hypothesis wants."""

    @initialize(rounds=st.integers(1, 3), damping=st.sampled_from([0.0, 0.5]), seed=st.integers(0, 99))
    def start(self, rounds: int, damping: float, seed: int) -> None:
        self.config = PeerConfig(clients=CLIENTS, budget=2, rounds=rounds, damping=damping, seed=seed)
        near: list[dict[int, float]] = [{} for _ in range(CLIENTS)]
        for (i, j), coupling in zip(EDGES, COUPLINGS.tolist(), strict=True):
            near[i][j] = near[j][i] = coupling
        self.peers = [Peer(self.config, n, list(links), list(links.values())) for n, links in enumerate(near)]
        self.flying: list[Message] = []
        self.slot = 0
        self.begin_next_slot()

    def begin_next_slot(self) -> None:
        self.slot += 1
        self.agreed: dict[int, CohortAgreed] = {}
        self.skipped: dict[int, SlotSkipped] = {}
        rng = stream(self.config.seed, "opinions", self.slot)
        opinions = np.where(rng.random(CLIENTS) < 0.2, np.nan, rng.random(CLIENTS))
        settling = settle(
            local_field(opinions), EDGES, COUPLINGS, rounds=self.config.rounds, damping=self.config.damping
        )
        self.beliefs = settling.beliefs.tolist()
        for client, peer in enumerate(self.peers):
            self.carry_out(client, peer.begin_slot(self.slot, float(opinions[client])))

    def carry_out(self, client: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.flying.append(effect.message)
            elif isinstance(effect, BeliefSettled):
                assert effect.belief == self.beliefs[client]
                self.carry_out(client, self.peers[client].propose(client / CLIENTS, effect.belief))
            elif isinstance(effect, CohortAgreed):
                assert client not in self.agreed
                self.agreed[client] = effect
            elif isinstance(effect, SlotSkipped):
                self.skipped[client] = effect

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), keep=st.booleans())
    def deliver(self, data: st.DataObject, keep: bool) -> None:
        place = data.draw(st.integers(0, len(self.flying) - 1))
        message = self.flying[place] if keep else self.flying.pop(place)
        self.carry_out(message.receiver, self.peers[message.receiver].receive(message))

    @precondition(lambda self: self.flying)
    @rule(count=st.integers(1, 40))
    def deliver_newest_first(self, count: int) -> None:
        for _ in range(min(count, len(self.flying))):
            message = self.flying.pop()
            self.carry_out(message.receiver, self.peers[message.receiver].receive(message))

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.flying) - 1))
        del self.flying[start : start + data.draw(st.integers(1, 10))]

    @rule(client=st.integers(0, CLIENTS - 1))
    def resend(self, client: int) -> None:
        self.carry_out(client, self.peers[client].deadline_passed(Deadline(Wait.RESEND, self.slot)))

    @rule(client=st.integers(0, CLIENTS - 1))
    def give_up(self, client: int) -> None:
        self.carry_out(client, self.peers[client].deadline_passed(Deadline(Wait.SLOT, self.slot)))
        assert (client in self.agreed) != (client in self.skipped)

    @rule()
    def begin_again_when_all_are_done(self) -> None:
        if any(peer.state in OPEN for peer in self.peers):
            return
        if self.skipped:
            for client in self.agreed:
                self.peers[client].withdraw()
        self.begin_next_slot()

    @rule()
    def a_network_that_works_again_brings_agreement(self) -> None:
        for _ in range(4 * self.config.rounds + 8):
            while self.flying:
                message = self.flying.pop(0)
                self.carry_out(message.receiver, self.peers[message.receiver].receive(message))
            for client in range(CLIENTS):
                self.resend(client)
        assert len(self.agreed) + len(self.skipped) == CLIENTS or self.skipped

    @invariant()
    def all_who_agree_agree_on_one_cohort(self) -> None:
        agreed = list(self.agreed.values())
        assert all(one == agreed[0] for one in agreed)

    @invariant()
    def all_who_are_done_have_said_so(self) -> None:
        for client, peer in enumerate(self.peers):
            assert (peer.state is State.AGREED) == (client in self.agreed)
            assert (peer.state is State.SKIPPED) == (client in self.skipped)

    @invariant()
    def histories_are_one_history(self) -> None:
        assert len({peer.history.pulls for peer in self.peers}) == 1

    def teardown(self) -> None:
        if hasattr(self, "peers"):
            for client in range(CLIENTS):
                self.give_up(client)
            assert len(self.agreed) + len(self.skipped) == CLIENTS
            assert all(skipped.reason for skipped in self.skipped.values())


TestHostilePeers = HostilePeers.TestCase
TestHostilePeers.settings = settings(max_examples=150, stateful_step_count=40)
