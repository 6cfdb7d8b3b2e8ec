"""The in-memory network: virtual time, luck from named streams, and no way to hang."""

import math

import pytest

from fedelect.errors import ConfigurationError, RemoteProtocolError
from fedelect.protocol import ElectionSettings, KeyedHashVerifier, Peer, PeerConfig, simulated_signers
from fedelect.protocol.effects import BeliefSettled, CohortAgreed, Effect, Persist, SlotSkipped
from fedelect.protocol.messages import BeliefMessage, Message
from fedelect.simulator import LinkConditions, Network, Traffic

CLIENTS = 6
SIGNERS = simulated_signers(CLIENTS)
SETTINGS = ElectionSettings(budget=2, rounds=3, resend_s=0.5, slot_s=20.0)
CONFIG = PeerConfig(
    clients=CLIENTS,
    edges=tuple((n, (n + 1) % CLIENTS) for n in range(CLIENTS)),
    couplings=(0.2,) * CLIENTS,
    keys=tuple(signer.key for signer in SIGNERS),
    settings=SETTINGS,
)


class Ring:
    """Six peers in a ring, whose hosts have no rewards yet."""

    def __init__(self, config: PeerConfig = CONFIG) -> None:
        self.peers = [Peer(config, n, SIGNERS[n], KeyedHashVerifier()) for n in range(CLIENTS)]
        self.done: dict[int, CohortAgreed | SlotSkipped] = {}

    def host(self, client: int, effect: Effect) -> list[Effect]:
        if isinstance(effect, BeliefSettled):
            return self.peers[client].propose(math.nan, effect.belief, bytes(16))
        if isinstance(effect, Persist):
            return self.peers[client].persisted(effect.record)
        if isinstance(effect, CohortAgreed | SlotSkipped):
            self.done[client] = effect
        return []

    def run(self, *, seed: int = 1, limit_s: float = 100.0, wait_for_all: bool = True, **conditions: float) -> Traffic:
        network = Network(self.peers, self.host, LinkConditions(**conditions), seed=seed, limit_s=limit_s)
        for client, peer in enumerate(self.peers):
            network.carry_out(client, peer.begin_slot(1, client / 10))
        return network.run(lambda: wait_for_all and len(self.done) == CLIENTS)


def test_without_faults_all_agree_before_anything_is_repeated() -> None:
    ring = Ring()
    traffic = ring.run()
    assert len({end.cohort for end in ring.done.values() if isinstance(end, CohortAgreed)}) == 1
    assert all(isinstance(end, CohortAgreed) for end in ring.done.values())
    assert traffic.lost == 0
    assert traffic.virtual_s < 2 * SETTINGS.resend_s
    # three rounds of beliefs and three of the flood both ways along six links, and six votes over every direction
    assert 2 * 36 < traffic.sent <= 2 * 36 + CLIENTS * 12
    assert not traffic.timed_out


def test_with_loss_and_repetition_all_still_agree_later() -> None:
    ring, calm = Ring(), Ring()
    traffic = ring.run(loss=0.3, repetition=0.3)
    still = calm.run()
    cohorts = [{end.cohort for end in one.done.values() if isinstance(end, CohortAgreed)} for one in (ring, calm)]
    assert len(cohorts[0]) == 1 and cohorts[0] == cohorts[1]
    assert traffic.lost > 0
    assert still.virtual_s < traffic.virtual_s < SETTINGS.slot_s


def test_in_a_dead_network_everybody_ends_up_alone_and_says_so() -> None:
    ring = Ring()
    traffic = ring.run(loss=1.0)
    assert traffic.virtual_s == SETTINGS.silent_intervals * SETTINGS.resend_s
    assert traffic.lost == traffic.sent
    assert traffic.delivered == 0
    for end in ring.done.values():
        assert isinstance(end, SlotSkipped)
        assert "1 of 6 clients can be elected" in end.reason


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
    assert traffic.virtual_s == SETTINGS.slot_s  # the last event is the deadline, which means nothing any more
    assert all(isinstance(end, CohortAgreed) for end in ring.done.values())


def test_a_run_is_the_same_whenever_it_is_repeated_and_another_under_another_seed() -> None:
    runs = [Ring().run(loss=0.2, repetition=0.1, seed=seed) for seed in (4, 4, 5)]
    assert runs[0] == runs[1] != runs[2]


def test_repetition_delivers_messages_twice() -> None:
    ring = Ring()
    traffic = ring.run(repetition=1.0, wait_for_all=False)
    assert traffic.delivered == 2 * traffic.sent


def test_links_between_sides_are_cut_and_heal() -> None:
    ring = Ring()
    network = Network(ring.peers, ring.host, LinkConditions(), seed=1, limit_s=100.0)
    network.partition(frozenset({0, 1, 2}))
    network.call_after(3.0, network.partition)
    for client, peer in enumerate(ring.peers):
        network.carry_out(client, peer.begin_slot(1, client / 10))
    traffic = network.run(lambda: len(ring.done) == CLIENTS)
    assert traffic.lost > 0
    assert 3.0 < traffic.virtual_s < SETTINGS.slot_s
    assert all(isinstance(end, CohortAgreed) for end in ring.done.values())


def test_a_peer_that_is_down_hears_nothing_and_its_old_deadlines_are_forgotten() -> None:
    ring = Ring()
    network = Network(ring.peers, ring.host, LinkConditions(), seed=1, limit_s=100.0)
    network.crash(5)
    for client, peer in enumerate(ring.peers):
        network.carry_out(client, peer.begin_slot(1, client / 10))
    fresh = Peer(CONFIG, 5, SIGNERS[5], KeyedHashVerifier())
    network.call_after(1.0, lambda: network.restart(5, fresh))
    network.run(lambda: len(ring.done) == CLIENTS - 1)
    assert 5 not in ring.done
    assert fresh.slot == 0  # a deadline of its earlier life would have raised


def test_refused_messages_are_an_error_unless_somebody_wants_to_know() -> None:
    stranger = BeliefMessage(bytes(32), 0, 1, 1, CONFIG.digest, 1, 0.5)
    for heard in (False, True):
        ring = Ring()
        told: list[tuple[int, str]] = []

        def note(client: int, message: Message, why: RemoteProtocolError, told: list[tuple[int, str]] = told) -> None:
            told.append((client, str(why)))

        network = Network(
            ring.peers, ring.host, LinkConditions(), seed=1, limit_s=9.0, on_refusal=note if heard else None
        )
        network.send(stranger)
        if not heard:
            with pytest.raises(RemoteProtocolError):
                network.run(lambda: False)
        else:
            assert network.run(lambda: False).refused == 1
            assert told[0][0] == 1 and "start all peers with the same one" in told[0][1]


def test_a_relay_stands_between_peers_and_links() -> None:
    ring = Ring()
    network = Network(ring.peers, ring.host, LinkConditions(), seed=1, limit_s=9.0, relay=lambda message: ())
    network.carry_out(0, ring.peers[0].begin_slot(1, 0.5))
    assert network.run(lambda: False).sent == 0


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
