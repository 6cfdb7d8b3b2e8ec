"""Real peers that elect by the rule bp-gp: rosters, journals, hosts over memory, and processes."""

import json
import math
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.leaks import notice_leaks
from tests.runtime.federation_kit import (
    MemoryPeers,
    dense_cohorts,
    hold_all,
    listening_federation,
    make_federation,
    opinions_of,
    place,
)
from tests.runtime.process_kit import MOST_SLOTS, START_S, real

from fedelect.errors import ConfigurationError
from fedelect.protocol import RULES, ElectionSettings, encode
from fedelect.protocol.statements import Appraisal, SignedValue, Vote
from fedelect.runtime.host_messages import SLOTS_NAME, Agreed, Phase, Trouble, decode_logs
from fedelect.runtime.journal import JOURNAL_NAME, MARK_NAME, Journal
from fedelect.runtime.launch import PeerProcesses
from fedelect.runtime.roster import ROSTER_NAME, read_roster
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import MemoryNetwork
from fedelect.vocabulary import Cohort

WHERE = place(clients=5, budget=2)
EVERYBODY = frozenset(range(5))

MakePeers = Callable[..., tuple[MemoryPeers, DirectElections, dict[int, Path]]]


@pytest.fixture
def make_peers(tmp_path: Path) -> Iterator[MakePeers]:
    made: list[MemoryPeers] = []

    def make(**settings: Any) -> tuple[MemoryPeers, DirectElections, dict[int, Path]]:
        roster, folders = make_federation(tmp_path / "fed", WHERE, rule="bp-gp", **settings)
        made.append(MemoryPeers(folders, MemoryNetwork()))
        return made[0], DirectElections(made[0], ElectionServer(roster.config(), Ed25519Verifier())), folders

    yield make
    for peers in made:
        peers.close()


def records_of(folder: Path) -> list[object]:
    journal = Journal(folder)
    journal.close()
    return list(journal.records)


def votes_of(folder: Path) -> list[int]:
    return [record.statement.slot for record in records_of(folder) if isinstance(record, Vote)]


def worths_of(folders: dict[int, Path], server: DirectElections) -> list[float]:
    """What the map of each certified slot said; who had a certificate before it voted keeps no appraisal of it."""
    kept = [record for folder in folders.values() for record in records_of(folder) if isinstance(record, Appraisal)]
    by_certificate = {record.certificate: record.worth for record in kept}
    return [by_certificate[one.identity] for one in server.chain.certificates]


def check_appraised(folder: Path, server: DirectElections) -> None:
    """When this peer voted last, it knew the worth of all of history."""
    last = votes_of(folder)[-1]
    kept = {record.certificate for record in records_of(folder) if isinstance(record, Appraisal)}
    assert kept >= {one.identity for one in server.chain.certificates[1:] if one.slot < last}


def opinions_told(slots: int) -> list[float]:
    given = [opinions_of(slot, WHERE.clients).values() for slot in range(1, slots)]
    return [opinion for opinions in given for opinion in opinions if opinion is not None]


def test_a_roster_names_the_rule_and_one_from_before_there_were_rules_means_bp_ucb(tmp_path: Path) -> None:
    roster, _ = make_federation(tmp_path / "new", WHERE, rule="bp-gp")
    assert read_roster(tmp_path / "new" / "server").config() == roster.config()
    assert (roster.config().settings.rule, roster.settings.exploration_weight) == ("bp-gp", RULES["bp-gp"])
    old, _ = make_federation(tmp_path / "old", WHERE)
    path = tmp_path / "old" / "server" / ROSTER_NAME
    content = json.loads(path.read_text())
    for name in ("rule", "forgetting", "memory"):
        del content["settings"][name]
    path.write_text(json.dumps(content))
    assert read_roster(path.parent).config().digest == old.config().digest != roster.config().digest
    assert read_roster(path.parent).settings == ElectionSettings(**(content["settings"]))
    with pytest.raises(ConfigurationError, match="rule must be one of bp-ucb, bp-gp, got 'quick-init-ucb'"):
        make_federation(tmp_path / "wrong", WHERE, rule="quick-init-ucb")


def test_peers_over_memory_elect_what_the_dense_form_elects_and_show_the_server_no_worth(make_peers: MakePeers) -> None:
    peers, server, folders = make_peers()
    expected = dense_cohorts(WHERE, 8, rule="bp-gp")
    assert hold_all(server, WHERE, 8) == [cohort for cohort, _ in expected]
    peers.close()
    worths = worths_of(folders, server)
    assert len(worths) == 8 and math.isnan(worths[0]) and all(0.0 < worth < 1.0 for worth in worths[1:])
    kept = [record for folder in folders.values() for record in records_of(folder)]
    claims = [record for record in kept if isinstance(record, SignedValue)]
    appraisals = [record for record in kept if isinstance(record, Appraisal)]
    assert all(math.isnan(claim.mean) for claim in claims)
    secrets = {
        "worth": set(worths),
        "belief": {claim.belief for claim in claims},
        "opinion": set(opinions_told(8)),
    }
    hidden = [*(claim.blind for claim in claims), *(one.values for one in appraisals)]  # the hash under the seal too
    told = [notice for _, notice in peers.heard]
    assert notice_leaks(told, secrets, hidden) == []
    # The search would have seen each of them, in any certificate or line, and does see what the server is to have.
    seal = server.chain.certificates[-1].statement.map_hash
    assert notice_leaks(told, {}, [seal]) == [f"the bytes {seal.hex()}"]
    sound = encode(server.chain.certificates[-1]).hex()
    for leak in (struct.pack("<d", worths[-1]).hex(), hidden[0].hex(), hidden[-1].hex()):
        for form in (f"4645{leak}00", sound + leak, leak):
            assert notice_leaks([Agreed(slot=1, cohort=(0, 1), certificate=form)], secrets, hidden) != []
    assert notice_leaks([Trouble(text=f"worth={worths[-1]:.5f}")], secrets) != []
    blinds = [claim.blind for claim in claims]
    assert len(set(blinds)) == len(blinds) >= 8 * 5  # fresh in every value, of everybody


def test_a_peer_that_lost_its_appraisals_asks_its_neighbours_and_votes_again(make_peers: MakePeers) -> None:
    peers, server, folders = make_peers(max_faulty=1)
    hold_all(server, WHERE, 5)
    peers.stop(2)
    kept = [record for record in records_of(folders[2]) if not isinstance(record, Appraisal)]
    for name in (JOURNAL_NAME, MARK_NAME):
        (folders[2] / name).unlink()
    rewritten = Journal(folders[2])
    for record in kept:
        rewritten.keep_records([record])  # type: ignore[list-item]
    rewritten.close()
    peers.start(2)
    cohorts: list[Cohort] = []
    while (2, "certifying") not in {
        (who, one.phase) for who, one in peers.heard if isinstance(one, Phase) and one.slot > 5
    }:
        assert len(cohorts) < MOST_SLOTS  # it need not vote in every slot: it may see the certificate first
        cohorts += hold_all(server, WHERE, 1, first=6 + len(cohorts))
    assert cohorts == [cohort for cohort, _ in dense_cohorts(WHERE, 5 + len(cohorts), rule="bp-gp")[5:]]
    peers.close()
    assert votes_of(folders[2])[-1] > 5
    check_appraised(folders[2], server)


def test_a_slot_that_nobody_trained_in_teaches_nothing(make_peers: MakePeers) -> None:
    peers, server, folders = make_peers()
    hold_all(server, WHERE, 2)
    server.begin_with(3, judged=1, opinions=opinions_of(1, 5))  # training in slot 2 failed: the old model once more
    held = server.hold(3, within_s=40.0, all_of=EVERYBODY)
    assert held.certificate is not None
    assert held.certificate.cohort == server.chain.certificates[1].cohort  # its clients are still to be tried
    peers.close()
    assert [math.isnan(worth) for worth in worths_of(folders, server)] == [True, False, True]


@pytest.mark.integration
def test_dense_form_peers_in_memory_and_real_processes_elect_the_same_cohorts_by_bp_gp(
    tmp_path: Path, make_peers: MakePeers
) -> None:
    dense = dense_cohorts(WHERE, 10, rule="bp-gp")
    memory, server, folders = make_peers()
    in_memory = hold_all(server, WHERE, 10)
    memory.close()
    with (
        listening_federation(tmp_path / "real", WHERE, rule="bp-gp") as (roster, real_folders),
        PeerProcesses(real_folders) as peers,
    ):
        peers.start_all(START_S)
        in_processes = hold_all(DirectElections(peers, ElectionServer(roster.config(), Ed25519Verifier())), WHERE, 10)
        numbers = [process.number for process in peers.processes.values()]
        peers.stop_all(START_S)  # their notes are read below
    assert in_processes == in_memory == [cohort for cohort, _ in dense]
    for those in (folders, real_folders):
        logs = [decode_logs((folder / SLOTS_NAME).read_bytes()) for folder in those.values()]
        for (cohort, bound), of_slot in zip(dense, zip(*logs, strict=True), strict=True):
            assert {log.cohort for log in of_slot} == {cohort}
            assert {log.indices for log in of_slot} - {()} == {bound} - {()}  # to the last bit
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


@pytest.mark.integration
def test_a_process_killed_for_some_slots_gets_what_it_missed_and_votes_again_by_bp_gp(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_faulty": 1, "resend_s": 0.3, "silent_intervals": 15, "slot_s": 40.0}
    everybody = sorted(EVERYBODY)
    with real(tmp_path / "fed", WHERE, rule="bp-gp", **settings) as fed:
        fed.elect(1, everybody)
        fed.peers.kill(3)
        for slot in (2, 3, 4, 5):
            assert fed.elect(slot, [0, 1, 2, 4]) >= EVERYBODY - {3}
        fed.peers.start(3)
        fed.elect_until_voted(6, everybody)
    votes = votes_of(fed.folders[3])
    assert votes[-1] > 5 and len(set(votes)) == len(votes) and not {2, 3, 4, 5} & set(votes)
    check_appraised(fed.folders[3], fed.server)
    assert "proven" not in " ".join(notice.text for _, notice in fed.heard if isinstance(notice, Trouble))
