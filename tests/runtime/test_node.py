"""The host of a peer, over links in memory: the same state machine, journal and clock as in a real process."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.leaks import notice_leaks, peer_secrets
from tests.runtime.federation_kit import (
    LONG_S,
    MemoryPeers,
    dense_cohorts,
    hold_all,
    make_federation,
    opinions_of,
    place,
)

from fedelect.protocol import FRAME_LIMIT, decode_message
from fedelect.protocol.messages import HistoryRequest
from fedelect.protocol.statements import SignedValue, Vote
from fedelect.runtime.host_messages import (
    SLOTS_NAME,
    Agreed,
    BeginSlot,
    Link,
    Missing,
    Notice,
    Phase,
    Skipped,
    Stop,
    Trouble,
    decode_logs,
)
from fedelect.runtime.identity import read_identity
from fedelect.runtime.journal import Journal
from fedelect.runtime.node import Node
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import Inbox, LinkDown, LinkUp, MemoryNetwork
from fedelect.seeds import stream

PHASES = ("exchanging", "flooding", "certifying", "decided")
MakePeers = Callable[..., tuple[MemoryPeers, DirectElections, dict[int, Path]]]


@pytest.fixture
def make_peers(tmp_path: Path) -> Iterator[MakePeers]:
    made: list[MemoryPeers] = []

    def make(
        network: MemoryNetwork | None = None, **settings: Any
    ) -> tuple[MemoryPeers, DirectElections, dict[int, Path]]:
        roster, folders = make_federation(tmp_path / "fed", place(), **settings)
        made.append(MemoryPeers(folders, network or MemoryNetwork()))
        return made[0], DirectElections(made[0], ElectionServer(roster.config(), Ed25519Verifier())), folders

    yield make
    for peers in made:
        peers.close()


def test_peers_over_memory_elect_what_the_dense_form_elects_slot_by_slot(make_peers: MakePeers) -> None:
    _, server, _ = make_peers()
    assert hold_all(server, place(), 8) == [cohort for cohort, _ in dense_cohorts(place(), 8)]


def test_lost_frames_are_said_again_and_change_nothing(make_peers: MakePeers) -> None:
    luck = stream(1, "loss")
    _, server, _ = make_peers(MemoryNetwork(lambda sender, receiver, frame: None if luck.random() < 0.1 else frame))
    assert hold_all(server, place(), 4) == [cohort for cohort, _ in dense_cohorts(place(), 4)]


def test_garbage_and_frames_that_speak_for_others_are_refused_told_of_and_change_nothing(make_peers: MakePeers) -> None:
    network = MemoryNetwork()
    kept: list[bytes] = []

    def keeping(sender: int, receiver: int, frame: bytes) -> bytes:
        kept.append(frame)
        return frame

    network.tamper = keeping
    peers, server, folders = make_peers(network)
    expected = [cohort for cohort, _ in dense_cohorts(place(), 4)]
    assert hold_all(server, place(), 2) == expected[:2]
    old = [frame for frame in kept if len(frame) < 4000][:20]
    network.tamper = None
    for frame in (b"", b"FE", b"FE\1\0" + b"\xff" * 40, b"x" * 1000, bytes(FRAME_LIMIT + 1), *old):
        network.carry(0, 1, frame)  # all come from neighbour 0, whatever client they name
    assert hold_all(server, place(), 2, first=3) == expected[2:]
    troubles = [notice.text for client, notice in peers.heard if isinstance(notice, Trouble) and client == 1]
    assert any("no frame of a fedelect peer" in text for text in troubles)
    peers.close()
    logs = decode_logs((folders[1] / SLOTS_NAME).read_bytes())
    assert sum(log.refused for log in logs) >= 4
    assert (folders[1] / SLOTS_NAME).stat().st_mode & 0o777 == 0o600  # opinions are in it


def test_a_peer_that_starts_again_from_its_journal_catches_up_and_takes_part(make_peers: MakePeers) -> None:
    peers, server, folders = make_peers(max_faulty=1, resend_s=1.0, silent_intervals=20)
    expected = [cohort for cohort, _ in dense_cohorts(place(), 6)]
    assert hold_all(server, place(), 3) == expected[:3]
    peers.stop(2)
    peers.start(2)
    assert hold_all(server, place(), 3, first=4) == expected[3:]
    peers.close()
    kept = Journal(folders[2])
    votes = [record.statement.slot for record in kept.records if isinstance(record, Vote)]
    values = [record.slot for record in kept.records if isinstance(record, SignedValue)]
    assert values == [1, 2, 3, 4, 5, 6]  # each once, ever
    assert len(set(votes)) == len(votes) and set(votes) <= set(values)  # it may see a certificate before it votes
    kept.close()


def test_without_a_peer_the_others_still_decide_and_it_signs_nothing_twice_when_it_is_back(
    make_peers: MakePeers,
) -> None:
    peers, server, _ = make_peers(max_faulty=1, silent_intervals=10, resend_s=0.2)
    hold_all(server, place(), 2)
    peers.stop(4)
    rest = {client: one for client, one in opinions_of(2, 5).items() if client != 4}
    server.begin_with(3, judged=2, opinions=rest)
    held = server.hold(3, within_s=60.0, all_of=frozenset(range(4)))
    assert held.certificate is not None and 4 not in dict(held.certificate.signatures)
    peers.start(4)
    server.begin_with(4, judged=3, opinions=opinions_of(3, 5))
    assert server.hold(4, within_s=60.0, all_of=frozenset(range(5))).decided_by == frozenset(range(5))
    peers.tell(4, BeginSlot(slot=4, judged=3))  # it has signed in it
    assert peers.listen(lambda client, notice: client == 4 and isinstance(notice, Skipped), LONG_S)


def test_a_neighbour_whose_link_is_down_is_not_waited_for_although_silence_may_be_long(make_peers: MakePeers) -> None:
    peers, server, _ = make_peers(
        max_faulty=1, silent_intervals=100_000, resend_s=0.1, slot_s=600.0
    )  # silence would take hours
    hold_all(server, place(), 2)
    peers.stop(4)
    rest = frozenset(range(4))
    for slot in (3, 4):
        given = opinions_of(slot - 1, 5)
        server.begin_with(slot, judged=slot - 1, opinions={client: given[client] for client in rest})
        held = server.hold(slot, within_s=60.0, all_of=rest)
        assert held.certificate is not None and held.decided_by == rest, held.reason
    peers.start(4)
    hold_all(server, place(), 1, first=5, within_s=60.0)  # it is waited for again


class ScriptedInbox(Inbox):
    """An inbox whose events come at given times of a clock that only moves when the node waits; then `Stop`."""

    def __init__(self, script: Sequence[tuple[float, object]], end_s: float) -> None:
        super().__init__()
        self.now_s = 0.0
        self._script = [*script, (end_s, Stop())]

    def get(self, wait_s: float) -> Any | None:
        at_s, event = self._script[0]
        if at_s > self.now_s + wait_s:
            self.now_s += wait_s
            return None
        self.now_s = max(self.now_s, at_s)
        del self._script[0]
        return event


class SilentLinks:
    """Links that note what is sent and bring nothing."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.frames: list[bytes] = []

    def start(self, inbox: Inbox) -> None:
        pass

    def send(self, neighbour: int, frame: bytes) -> None:
        self.sent.append(neighbour)
        self.frames.append(frame)

    def close(self) -> None:
        pass


def play(
    folder: Path, script: Sequence[tuple[float, object]], *, end_s: float, missing_after_s: float
) -> tuple[list[Notice], SilentLinks]:
    """Run the node of a folder through a script, in no time; returns what it said and sent."""
    identity, inbox, links = read_identity(folder), ScriptedInbox(script, end_s), SilentLinks()
    said: list[Notice] = []
    journal = Journal(folder)
    Node(
        config=identity.config,
        client=identity.client,
        signer=identity.signer,
        verifier=Ed25519Verifier(),
        transport=links,
        journal=journal,
        folder=folder,
        tell=said.append,
        inbox=inbox,
        missing_after_s=missing_after_s,
        clock=lambda: inbox.now_s,
    ).run()
    journal.close()
    return said, links


def test_a_peer_asks_every_neighbour_for_history_before_it_signs_anything(tmp_path: Path) -> None:
    _, folders = make_federation(tmp_path / "fed", place())
    up = [(0.1 * turn, LinkUp(neighbour)) for turn, neighbour in enumerate((1, 2, 3, 4, 1, 2))]
    _, links = play(folders[0], up, end_s=2.0, missing_after_s=10.0)
    assert links.sent == [1, 2, 3, 4]
    assert all(isinstance(decode_message(frame), HistoryRequest) for frame in links.frames)


def test_a_link_that_flaps_costs_a_notice_in_a_resend_interval_and_no_message(tmp_path: Path) -> None:
    _, folders = make_federation(tmp_path / "fed", place(), resend_s=0.5)
    up = [(0.0, LinkUp(neighbour)) for neighbour in (1, 2, 3, 4)]
    flaps = [(1.0 + 0.002 * turn, (LinkDown, LinkUp)[turn % 2](1)) for turn in range(400)]
    script = [*up, (0.5, BeginSlot(slot=1)), *flaps]  # nobody else begins: it says what it has to, again and again
    said, links = play(folders[0], script, end_s=4.0, missing_after_s=10.0)
    of_link = [notice for notice in said if isinstance(notice, Link) and notice.neighbour == 1]
    assert [notice.up for notice in of_link] == [True, False, True]
    calm, quiet = play(folders[1], [*[(0.0, LinkUp(n)) for n in (0, 2, 3, 4)], script[4]], end_s=4.0, missing_after_s=9)
    assert not [notice for notice in calm if isinstance(notice, Link) and not notice.up]
    assert len(links.sent) == len(quiet.sent) > 0  # what it said again, and nothing more


def test_a_neighbour_that_was_never_up_is_not_waited_for_after_it_has_been_named(make_peers: MakePeers) -> None:
    peers, server, _ = make_peers(max_faulty=1, silent_intervals=100_000, resend_s=0.1, slot_s=600.0)
    peers.stop(4)
    peers.stop(3)
    peers.start(3, missing_after_s=0.3)  # it has never seen 4
    rest = frozenset(range(4))
    server.begin_with(1, judged=0, opinions=dict.fromkeys(rest))
    assert server.hold(1, within_s=60.0, all_of=rest).decided_by == rest


def test_a_peer_says_how_far_it_is_and_what_it_has_sent(make_peers: MakePeers) -> None:
    peers, server, folders = make_peers()
    hold_all(server, place(), 2)
    peers.close()
    while not peers.said.empty():
        peers.heard.append(peers.said.get())
    for client, folder in folders.items():
        logs = decode_logs((folder / SLOTS_NAME).read_bytes())
        for log in logs:
            said = [
                one for who, one in peers.heard if who == client and isinstance(one, Phase) and one.slot == log.slot
            ]
            order = [PHASES.index(one.phase) for one in said]
            assert order == sorted(set(order)) and order[0] == 0 and order[-1] == len(PHASES) - 1
            assert [one.sent for one in said] == sorted(one.sent for one in said) and 0 < said[-1].sent <= log.sent
            assert said[-1].sent_bytes <= log.sent_bytes


def test_a_slot_without_a_majority_is_skipped_with_a_reason_and_the_next_one_is_not(make_peers: MakePeers) -> None:
    peers, server, _ = make_peers(slot_s=5.0)
    for client in (2, 3, 4):
        peers.stop(client)
    server.begin_with(1, judged=0, opinions=dict.fromkeys((0, 1)))
    held = server.hold(1, within_s=60.0)
    assert held.certificate is None and "waited 5 s for" in held.reason
    for client in (2, 3, 4):
        peers.start(client)
    server.begin_with(2, judged=0, opinions=dict.fromkeys(range(5)))
    assert server.hold(2, within_s=60.0).certificate is not None


def test_a_server_that_missed_certificates_asks_for_them_and_verifies_them(make_peers: MakePeers) -> None:
    peers, server, _ = make_peers()
    cohorts = hold_all(server, place(), 3)
    late = DirectElections(peers, ElectionServer(peers.config, Ed25519Verifier()))
    late.begin_with(4, judged=3, opinions=opinions_of(3, 5))
    held = late.hold(4, within_s=60.0)
    assert held.certificate is not None
    assert [one.cohort for one in late.chain.certificates] == [*cohorts, held.certificate.cohort]


def test_neighbours_that_are_not_up_are_named_with_the_usual_causes(tmp_path: Path) -> None:
    _, folders = make_federation(tmp_path / "fed", place())
    up = [(0.1, LinkUp(neighbour)) for neighbour in (2, 3, 4)]
    said, _ = play(folders[0], up, end_s=1.0, missing_after_s=0.3)
    (missing,) = [notice for notice in said if isinstance(notice, Missing)]
    assert missing.neighbours == (1,)
    assert "firewall" in missing.text and "CA" in missing.text


def test_certificates_that_do_not_verify_are_not_taken_in(make_peers: MakePeers) -> None:
    peers, server, _ = make_peers()
    peers.tell(0, BeginSlot(slot=1, certificates=("00ff", "zz")))
    assert peers.listen(lambda client, notice: isinstance(notice, Trouble) and "do not verify" in notice.text, LONG_S)
    for client in range(1, 5):
        peers.tell(client, BeginSlot(slot=1))
    assert server.hold(1, within_s=60.0).certificate is not None


def test_what_a_peer_says_to_its_server_holds_no_opinion_mean_belief_or_index(make_peers: MakePeers) -> None:
    peers, server, folders = make_peers()
    hold_all(server, place(), 6)
    peers.close()
    while not peers.said.empty():
        peers.heard.append(peers.said.get())
    secrets = peer_secrets(folders.values())
    notices = [notice for _, notice in peers.heard]
    assert all(len(values) >= 3 for values in secrets.values()) and any(isinstance(one, Agreed) for one in notices)
    assert notice_leaks(notices, secrets) == []
    leak = Trouble(text=f"my belief is {max(secrets['belief']):.5f}")
    assert len(notice_leaks([*notices, leak], secrets)) == 1
