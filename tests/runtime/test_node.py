"""The host of a peer, over links in memory: the same state machine, journal and clock as in a real process."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.federation_kit import MemoryCrew, dense_cohorts, hold_all, make_federation, opinions_of, place

from fedelect.protocol import FRAME_LIMIT, SignedValue, Vote
from fedelect.runtime.demo import ElectionServer
from fedelect.runtime.host_messages import SLOTS_NAME, Begin, Link, Missing, Phase, Skipped, Trouble, decode_logs
from fedelect.runtime.journal import Journal
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import LinkDown, LinkUp, MemoryNetwork
from fedelect.seeds import stream

PHASES = ("exchanging", "flooding", "certifying", "decided")
Crews = Callable[..., tuple[MemoryCrew, ElectionServer, dict[int, Path]]]


@pytest.fixture
def crews(tmp_path: Path) -> Iterator[Crews]:
    made: list[MemoryCrew] = []

    def make(
        network: MemoryNetwork | None = None, **settings: Any
    ) -> tuple[MemoryCrew, ElectionServer, dict[int, Path]]:
        roster, folders = make_federation(tmp_path / "fed", place(), **settings)
        made.append(MemoryCrew(folders, network or MemoryNetwork()))
        return made[0], ElectionServer(made[0], roster.config(), Ed25519Verifier()), folders

    yield make
    for crew in made:
        crew.close()


def test_peers_over_memory_elect_what_the_dense_form_elects_slot_by_slot(crews: Crews) -> None:
    _, server, _ = crews()
    assert hold_all(server, place(), 8) == [cohort for cohort, _ in dense_cohorts(place(), 8)]


def test_lost_frames_are_said_again_and_change_nothing(crews: Crews) -> None:
    luck = stream(1, "loss")
    _, server, _ = crews(MemoryNetwork(lambda sender, receiver, frame: None if luck.random() < 0.1 else frame))
    assert hold_all(server, place(), 4) == [cohort for cohort, _ in dense_cohorts(place(), 4)]


def test_garbage_and_frames_that_speak_for_others_are_refused_told_of_and_change_nothing(crews: Crews) -> None:
    network = MemoryNetwork()
    kept: list[bytes] = []

    def keeping(sender: int, receiver: int, frame: bytes) -> bytes:
        kept.append(frame)
        return frame

    network.tamper = keeping
    crew, server, folders = crews(network)
    expected = [cohort for cohort, _ in dense_cohorts(place(), 4)]
    assert hold_all(server, place(), 2) == expected[:2]
    old = [frame for frame in kept if len(frame) < 4000][:20]
    network.tamper = None
    for frame in (b"", b"FE", b"FE\1\0" + b"\xff" * 40, b"x" * 1000, bytes(FRAME_LIMIT + 1), *old):
        network.carry(0, 1, frame)  # all come from neighbour 0, whoever they were of
    assert hold_all(server, place(), 2, first=3) == expected[2:]
    troubles = [notice.text for client, notice in crew.heard if isinstance(notice, Trouble) and client == 1]
    assert any("no frame of a fedelect peer" in text for text in troubles)
    crew.close()
    logs = decode_logs((folders[1] / SLOTS_NAME).read_bytes())
    assert sum(log.refused for log in logs) >= 4


def test_a_peer_that_starts_again_from_its_journal_catches_up_and_takes_part(crews: Crews) -> None:
    crew, server, folders = crews(faults=1, resend_s=1.0, patience=20)  # a restart is shorter than two intervals
    expected = [cohort for cohort, _ in dense_cohorts(place(), 6)]
    assert hold_all(server, place(), 3) == expected[:3]
    crew.stop(2)
    crew.start(2)
    assert hold_all(server, place(), 3, first=4) == expected[3:]
    crew.close()
    kept = Journal(folders[2])
    votes = [record.statement.slot for record in kept.records if isinstance(record, Vote)]
    values = [record.slot for record in kept.records if isinstance(record, SignedValue)]
    assert votes == values == [1, 2, 3, 4, 5, 6]  # each once, ever
    kept.close()


def test_without_a_peer_the_others_still_decide_and_it_signs_nothing_twice_when_it_is_back(crews: Crews) -> None:
    crew, server, _ = crews(faults=1, patience=10, resend_s=0.2)
    hold_all(server, place(), 2)
    crew.stop(4)
    rest = {client: one for client, one in opinions_of(2, 5).items() if client != 4}
    server.begin_with(3, judged=2, opinions=rest)
    held = server.hold(3, within_s=30.0, all_of=frozenset(range(4)))
    assert held.certificate is not None and 4 not in dict(held.certificate.signatures)
    crew.start(4)
    server.begin_with(4, judged=3, opinions=opinions_of(3, 5))
    assert server.hold(4, within_s=30.0, all_of=frozenset(range(5))).done == frozenset(range(5))
    crew.tell(4, Begin(slot=4, judged=3))  # it has signed in it
    assert crew.listen(lambda client, notice: client == 4 and isinstance(notice, Skipped), 5.0)


def test_a_neighbour_whose_link_is_down_is_not_waited_for_although_patience_is_long(crews: Crews) -> None:
    crew, server, _ = crews(faults=1, patience=300, resend_s=0.1, slot_s=60.0)  # silence would take half a minute
    hold_all(server, place(), 2)
    crew.stop(4)
    rest = frozenset(range(4))
    for slot in (3, 4):
        given = opinions_of(slot - 1, 5)
        server.begin_with(slot, judged=slot - 1, opinions={client: given[client] for client in rest})
        held = server.hold(slot, within_s=20.0, all_of=rest)
        assert held.certificate is not None and held.done == rest, held.reason
    crew.start(4)
    hold_all(server, place(), 1, first=5, within_s=20.0)  # it is waited for again


def test_a_link_that_flaps_costs_a_notice_in_a_resend_interval_and_no_message(crews: Crews) -> None:
    crew, server, _ = crews(resend_s=0.5)
    hold_all(server, place(), 1)
    began = time.monotonic()
    inbox = crew.inbox(0)
    frames: list[bytes] = []

    def heard(sender: int, receiver: int, frame: bytes) -> bytes:
        if sender == 0:  # others may still tell each other of the slot before
            frames.append(frame)
        return frame

    crew.network.tamper = heard
    crew.tell(0, Begin(slot=2, judged=1))  # nobody else begins: it says what it has to, again and again
    for _ in range(200):
        inbox.put(LinkDown(1))
        time.sleep(0.001)
        inbox.put(LinkUp(1))
        time.sleep(0.001)
    crew.listen(lambda client, notice: False, 3.0)
    intervals = (time.monotonic() - began) / 0.5
    said = [
        notice for client, notice in crew.heard if client == 0 and isinstance(notice, Link) and notice.neighbour == 1
    ]
    assert len(said) <= 2 + intervals and said[-1].up  # the first is from the start
    assert len(frames) <= 8 * (1 + intervals)  # four neighbours, not once more for each of 200


def test_a_neighbour_that_was_never_up_is_not_waited_for_after_it_has_been_named(crews: Crews) -> None:
    crew, server, _ = crews(faults=1, patience=300, resend_s=0.1, slot_s=60.0)
    crew.stop(4)
    crew.stop(3)
    crew.start(3)  # it has never seen 4
    rest = frozenset(range(4))
    server.begin_with(1, judged=0, opinions=dict.fromkeys(rest))
    assert server.hold(1, within_s=20.0, all_of=rest).done == rest


def test_a_peer_says_how_far_it_is_and_what_it_has_sent(crews: Crews) -> None:
    crew, server, folders = crews()
    hold_all(server, place(), 2)
    crew.close()
    while not crew.said.empty():
        crew.heard.append(crew.said.get())
    for client, folder in folders.items():
        logs = decode_logs((folder / SLOTS_NAME).read_bytes())
        for log in logs:
            said = [one for who, one in crew.heard if who == client and isinstance(one, Phase) and one.slot == log.slot]
            order = [PHASES.index(one.phase) for one in said]
            assert order == sorted(set(order)) and order[0] == 0 and order[-1] == len(PHASES) - 1
            assert [one.sent for one in said] == sorted(one.sent for one in said) and 0 < said[-1].sent <= log.sent
            assert said[-1].sent_bytes <= log.sent_bytes


def test_a_slot_without_a_majority_is_skipped_with_a_reason_and_the_next_one_is_not(crews: Crews) -> None:
    crew, server, _ = crews(slot_s=5.0)
    for client in (2, 3, 4):
        crew.stop(client)
    server.begin_with(1, judged=0, opinions=dict.fromkeys((0, 1)))
    held = server.hold(1, within_s=30.0)
    assert held.certificate is None and "waited 5 s for" in held.reason
    for client in (2, 3, 4):
        crew.start(client)
    server.begin_with(2, judged=0, opinions=dict.fromkeys(range(5)))
    assert server.hold(2, within_s=30.0).certificate is not None


def test_a_server_that_missed_certificates_asks_for_them_and_verifies_them(crews: Crews) -> None:
    crew, server, _ = crews()
    cohorts = hold_all(server, place(), 3)
    late = ElectionServer(crew, crew.config, Ed25519Verifier())
    late.begin_with(4, judged=3, opinions=opinions_of(3, 5))
    held = late.hold(4, within_s=20.0)
    assert held.certificate is not None
    assert [one.cohort for one in late.chain.certificates] == [*cohorts, held.certificate.cohort]


def test_neighbours_that_are_not_up_are_named_with_the_usual_causes(crews: Crews) -> None:
    crew, _, _ = crews()
    crew.stop(1)
    crew.stop(0)
    while not crew.said.empty():  # what its first life said, which may have named others
        crew.said.get()
    crew.start(0)
    missing: list[Missing] = []

    def named(client: int, notice: object) -> bool:
        if isinstance(notice, Missing) and client == 0:
            missing.append(notice)
        return bool(missing)

    assert crew.listen(named, 5.0)
    assert missing[0].neighbours == (1,)
    assert "firewall" in missing[0].text and "CA" in missing[0].text


def test_certificates_that_do_not_verify_are_not_taken_in(crews: Crews) -> None:
    crew, server, _ = crews()
    crew.tell(0, Begin(slot=1, certificates=("00ff", "zz")))
    assert crew.listen(lambda client, notice: isinstance(notice, Trouble) and "do not verify" in notice.text, 5.0)
    for client in range(1, 5):
        crew.tell(client, Begin(slot=1))
    assert server.hold(1, within_s=10.0).certificate is not None


def test_what_a_peer_says_to_its_server_holds_no_opinion_mean_belief_or_index(crews: Crews) -> None:
    crew, server, folders = crews()
    hold_all(server, place(), 4)
    time.sleep(0.01)
    crew.close()
    said = repr(crew.heard)
    for folder in folders.values():
        for log in decode_logs((folder / SLOTS_NAME).read_bytes()):
            secrets = [log.opinion, log.mean, log.belief, *log.indices]
            assert not [one for one in secrets if one not in (None, 0.5) and repr(one) in said]
