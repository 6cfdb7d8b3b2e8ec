"""The in-memory network: virtual time, luck from named streams, and no way to hang."""

import math

import pytest

from fedelect.errors import ConfigurationError
from fedelect.protocol import BeliefSettled, CohortAgreed, Effect, Peer, PeerConfig, SlotSkipped
from fedelect.simulator import LinkConditions, Network, Traffic

CLIENTS = 6
CONFIG = PeerConfig(clients=CLIENTS, budget=2, rounds=3, resend_s=0.5, slot_s=20.0)


class Ring:
    """Six peers in a ring, whose hosts claim the same mean."""

    def __init__(self, config: PeerConfig = CONFIG) -> None:
        self.peers = [Peer(config, n, [(n - 1) % CLIENTS, (n + 1) % CLIENTS], [0.2, 0.2]) for n in range(CLIENTS)]
        self.done: dict[int, CohortAgreed | SlotSkipped] = {}

    def host(self, client: int, effect: Effect) -> list[Effect]:
        if isinstance(effect, BeliefSettled):
            return self.peers[client].propose(0.5, effect.belief)
        if isinstance(effect, CohortAgreed | SlotSkipped):
            self.done[client] = effect
        return []

    def run(self, *, seed: int = 1, limit_s: float = 100.0, wait_for_all: bool = True, **conditions: float) -> Traffic:
        network = Network(self.peers, self.host, LinkConditions(**conditions), seed=seed, limit_s=limit_s)
        for client, peer in enumerate(self.peers):
            network.post(client, peer.begin_slot(1, client / 10))
        return network.run(lambda: wait_for_all and len(self.done) == CLIENTS)


def test_without_faults_all_agree_before_anything_is_repeated() -> None:
    ring = Ring()
    traffic = ring.run()
    assert len(set(ring.done.values())) == 1
    assert all(isinstance(end, CohortAgreed) for end in ring.done.values())
    assert traffic.lost == 0
    assert traffic.virtual_s < CONFIG.resend_s
    # three rounds both ways along six links, and six claims over at most every direction
    assert 36 < traffic.sent <= 36 + CLIENTS * 12
    assert not traffic.timed_out


def test_with_loss_and_repetition_all_still_agree_later() -> None:
    ring, calm = Ring(), Ring()
    traffic = ring.run(loss=0.3, repetition=0.3)
    still = calm.run()
    assert set(ring.done.values()) == set(calm.done.values())
    assert traffic.lost > 0
    assert still.virtual_s < traffic.virtual_s < CONFIG.slot_s


def test_a_dead_network_ends_at_the_slot_deadline_with_reasons() -> None:
    ring = Ring()
    traffic = ring.run(loss=1.0)
    assert traffic.virtual_s == CONFIG.slot_s
    assert traffic.lost == traffic.sent
    assert traffic.delivered == 0
    for client, end in ring.done.items():
        assert isinstance(end, SlotSkipped)
        assert end.missing == tuple(sorted([(client - 1) % CLIENTS, (client + 1) % CLIENTS]))


def test_the_clock_has_a_limit_whatever_peers_do() -> None:
    ring = Ring()
    traffic = ring.run(loss=1.0, limit_s=3.25)
    assert traffic.timed_out
    assert traffic.virtual_s == 3.25
    assert ring.done == {}


def test_when_nothing_is_left_to_happen_the_run_ends() -> None:
    ring = Ring()
    traffic = ring.run(wait_for_all=False)
    assert not traffic.timed_out
    assert traffic.virtual_s == CONFIG.slot_s  # the last event is the deadline, which means nothing any more
    assert all(isinstance(end, CohortAgreed) for end in ring.done.values())


def test_a_run_is_the_same_whenever_it_is_repeated_and_another_under_another_seed() -> None:
    runs = [Ring().run(loss=0.2, repetition=0.1, seed=seed) for seed in (4, 4, 5)]
    assert runs[0] == runs[1] != runs[2]


def test_repetition_delivers_messages_twice() -> None:
    ring = Ring()
    traffic = ring.run(repetition=1.0, wait_for_all=False)
    assert traffic.delivered == 2 * traffic.sent


@pytest.mark.parametrize(
    ("conditions", "match"),
    [
        ({"shortest_delay_s": 0.0}, "delays"),
        ({"shortest_delay_s": 0.2, "longest_delay_s": 0.1}, "delays"),
        ({"longest_delay_s": math.inf}, "delays"),
        ({"loss": 1.1}, "loss"),
        ({"loss": math.nan}, "loss"),
        ({"repetition": -0.1}, "repetition"),
    ],
)
def test_conditions_that_cannot_be_are_refused(conditions: dict[str, float], match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        LinkConditions(**conditions)
