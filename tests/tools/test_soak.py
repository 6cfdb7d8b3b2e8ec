"""The soak: its plan follows from the seed, it sees what must not happen, and it ends when told to."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.protocol.election_kit import certificate, config, statement, value, vote
from tools.soak.episode import EpisodeRun, find_signed_twice
from tools.soak.plan import KINDS, NETWORK_KINDS, Episode, Fault, draw_chaos, draw_episode

from fedelect.runtime.host_messages import Trouble
from fedelect.runtime.journal import Journal
from fedelect.runtime.launch import LOG_NAME, ProcessEnded

ROOT = Path(__file__).parents[2]


def test_a_plan_follows_from_seed_and_number_and_from_nothing_else() -> None:
    first = [(draw_chaos(5, number), draw_episode(5, number)) for number in range(30)]
    again = [(draw_chaos(5, number), draw_episode(5, number)) for number in reversed(range(30))]
    assert first == again[::-1]
    assert len({episode.seed for _, episode in first}) == 30
    assert draw_episode(6, 0) != draw_episode(5, 0)


def test_every_kind_of_fault_is_drawn_and_an_election_can_be_held_with_each_plan() -> None:
    kinds: Counter[str] = Counter()
    for number in range(200):
        episode = draw_episode(1, number)
        kinds.update(fault.kind for fault in episode.faults)
        kinds["byzantine"] += episode.byzantine is not None
        assert episode.clients >= 4 and 1 <= episode.budget <= episode.clients - 1
        for fault in episode.faults:
            assert 1 <= fault.slot <= episode.slots and fault.slots >= 1
            assert fault.clients and set(fault.clients) < set(range(episode.clients)) - {episode.byzantine}
        for one in episode.faults:
            lasts = [f for f in episode.faults if f.kind != "strangers" and f.slot <= one.slot < f.slot + f.slots]
            assert len(lasts) <= 1  # one at a time, but for strangers
    assert set(kinds) == set(KINDS) and set(KINDS) > NETWORK_KINDS
    plans = {draw_chaos(1, number).plan for number in range(200)}
    assert {plan.byzantine for plan in plans} == {0, 1, 2} and {plan.calm for plan in plans} == {True, False}


def keep(folder: Path, *records: object) -> Path:
    folder.mkdir()
    journal = Journal(folder)
    for record in records:
        journal.keep_records([record])  # type: ignore[list-item]
    journal.close()
    return folder


def test_two_certificates_two_votes_and_two_values_are_seen_on_disk(tmp_path: Path) -> None:
    shared = config()
    one, other = statement(shared, cohort=(0, 1)), statement(shared, cohort=(0, 2))
    sound = keep(tmp_path / "sound", value(shared, 0), vote(one, 0), certificate(one))
    assert find_signed_twice({0: sound}, [certificate(one)]) == []
    assert find_signed_twice({0: sound}, [certificate(other)]) == ["two certificates for slots [1]"]
    votes = keep(tmp_path / "votes", vote(one, 1), vote(other, 1), vote(other, 2))
    assert find_signed_twice({0: sound, 1: votes}, []) == ["peer 1 has signed twice: [('vote', 1)]"]
    values = keep(tmp_path / "values", value(shared, 2, mean=0.1), value(shared, 2, mean=0.2))
    assert find_signed_twice({2: values}, []) == ["peer 2 has signed twice: [('value', 1)]"]
    assert find_signed_twice({1: values}, []) == []  # it may hold what others signed


def test_a_peer_that_ends_by_itself_or_accuses_an_honest_one_breaks_an_episode(tmp_path: Path) -> None:
    episode = next(
        one for one in (draw_episode(1, n) for n in range(50)) if one.byzantine is not None and one.byzantine != 0
    )
    run = EpisodeRun(episode, tmp_path, networked=False)
    (tmp_path / LOG_NAME).write_text("why it ended\n")
    run.folders = dict.fromkeys(range(episode.clients), tmp_path)
    run.hear(0, Trouble(text=f"client {episode.byzantine} is proven to have lied: TwoValues"))
    assert run.broken == []
    run.hear(0, ProcessEnded(1))
    assert len(run.broken) == 1 and "why it ended" in run.broken[0]
    honest = next(client for client in range(1, episode.clients) if client != episode.byzantine)
    run.hear(0, Trouble(text=f"client {honest} is proven to have lied: TwoValues"))
    assert len(run.broken) == 2
    assert episode.byzantine is not None
    run.hear(episode.byzantine, ProcessEnded(1))
    assert len(run.broken) == 2  # a Byzantine peer may do what it likes


@pytest.mark.integration
def test_a_peer_whose_disk_is_full_may_end_although_strangers_leave_it_meanwhile(tmp_path: Path) -> None:
    strangers = Fault(kind="strangers", slot=1, after_s=0.0, clients=(2,), slots=1, strength=10.0)
    disk = Fault(kind="disk", slot=1, after_s=0.0, clients=(2,), slots=2)
    episode = Episode(seed=7, clients=4, budget=2, rule="bp-ucb", slots=2, byzantine=None, faults=(strangers, disk))
    run = EpisodeRun(episode, tmp_path, networked=False, slot_s=60.0)
    run.play()
    assert run.broken == [] and run.counts["disk"] == run.counts["strangers"] == 1


@pytest.mark.integration
def test_a_soak_that_is_interrupted_ends_with_its_counts_and_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.soak", "--seed", "2", "--keep", str(tmp_path / "kept")]
    where = os.environ | {"TMPDIR": str(tmp_path)}  # so that its peers can be told from others
    soak = subprocess.Popen(command, cwd=ROOT, env=where, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert soak.stdout is not None
        first = soak.stdout.readline()
        assert "episode 0: sound" in first, first
        soak.send_signal(signal.SIGINT)
        rest, _ = soak.communicate(timeout=120.0)
    finally:
        soak.kill()
        soak.wait()
    assert "--first 1 goes on with it" in rest and "1 episodes" in rest and rest.rstrip().endswith("0 broken"), rest
    assert soak.returncode == 0
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in read(path)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""
