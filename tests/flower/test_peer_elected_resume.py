"""A server that restarts: its chain is part of the save, and what the clients elected meanwhile is taken up."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from tests.flower.elected_kit import CLIENTS, Federation, elective, start, statuses
from tests.flower.fake_grid import initial_arrays
from tests.flower.test_goal_directed import records
from tests.runtime.federation_kit import make_federation

from fedelect.errors import ConfigurationError, RunError, RunMismatchError, StateError
from fedelect.flower import read_slot
from fedelect.flower.certificate_source import CertificateSource
from fedelect.flower.election_messages import ELECTION, ElectionAnswer
from fedelect.runtime.control import ControlClient
from fedelect.runtime.host_messages import SLOTS_NAME, BeginSlot, decode_logs

SLOTS = 4


class PowerCutError(Exception):
    """The server is gone."""


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Federation]:
    with elective(tmp_path, max_faulty=1, silent_intervals=100, resend_s=0.2, slot_s=20.0) as made:
        yield made


def cut(fed: Federation, kind: str, slot: int) -> None:
    """Run until the server is about to send a message of this type for this slot."""

    def refuse(message: Message) -> bool:
        if message.metadata.message_type == kind and said_slot(message) == slot:
            raise PowerCutError
        return False

    fed.grid.refuse = refuse
    with pytest.raises(PowerCutError):
        start(fed, SLOTS)
    fed.grid.refuse = lambda message: False


def said_slot(message: Message) -> int:
    elect = message.content.get("fedelect")
    if isinstance(elect, ConfigRecord):
        return int(str(elect["slot"]))
    return read_slot(message)[0] if "fedelect-slot" in message.content else 0


def elections(fed: Federation, client: int) -> list[int]:
    return [log.slot for log in decode_logs((fed.peers.folders[client] / SLOTS_NAME).read_bytes())]


def trained(fed: Federation) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for worker in fed.workers:
        for slot, _ in worker.trained:
            found.setdefault(slot, set()).add(worker.client)
    return found


def test_an_election_that_was_held_before_the_server_died_is_not_held_again(fed: Federation) -> None:
    cut(fed, "train", 2)
    assert statuses(fed) == ["done"] and trained(fed).keys() == {1}
    strategy = start(fed, SLOTS)
    assert statuses(fed) == ["done"] * SLOTS
    assert [one.slot for one in strategy.certificates] == [1, 2, 3, 4, 5]
    assert {slot: tuple(sorted(who)) for slot, who in trained(fed).items()} == {
        row.slot: row.cohort for row in records(fed.out / "run")
    }
    fed.peers.close()
    assert [elections(fed, client) for client in range(CLIENTS)] == [[1, 2, 3, 4, 5]] * CLIENTS


def test_a_server_restored_from_an_old_copy_trains_what_was_elected_and_then_goes_on(fed: Federation) -> None:
    cut(fed, ELECTION, 2)
    shutil.copytree(fed.out / "run", fed.out / "copy")
    cut(fed, ELECTION, 4)
    before = [row.cohort for row in records(fed.out / "run")]
    shutil.rmtree(fed.out / "run")
    shutil.copytree(fed.out / "copy", fed.out / "run")
    strategy = start(fed, SLOTS)
    rows = records(fed.out / "run")
    assert [row.cohort for row in rows[:3]] == before and len(before) == 3
    assert [row.cohort for row in rows] == [one.cohort for one in strategy.certificates[:SLOTS]]
    fed.peers.close()
    assert elections(fed, 0) == [1, 2, 3, 4, 5]


def test_a_server_from_an_old_copy_does_not_end_the_election_that_was_open_when_it_died(fed: Federation) -> None:
    cut(fed, ELECTION, 2)
    shutil.copytree(fed.out / "run", fed.out / "copy")
    cut(fed, ELECTION, 3)
    shutil.rmtree(fed.out / "run")
    shutil.copytree(fed.out / "copy", fed.out / "run")
    with contextlib.ExitStack() as beside:
        asked = [beside.enter_context(ControlClient(fed.peers.folders[client])) for client in range(2)]
        for peer in asked:  # of the four, these were asked for slot 3 before the server died
            peer.tell(BeginSlot(slot=3, judged=2, opinion=0.5))
        start(fed, SLOTS)
    assert statuses(fed) == ["done"] * SLOTS


def test_certificates_whose_past_the_server_missed_are_asked_for(fed: Federation) -> None:
    """All answers of slot 2 are lost; in slot 3 clients show its certificate alone, until they are asked for all."""

    def forgetful(message: Message, honest: RecordDict) -> RecordDict:
        answer = honest.get("fedelect")
        if message.metadata.message_type == "train":
            return honest
        assert isinstance(answer, ConfigRecord)
        slot, shown = int(str(answer["done"])), list(answer["certificates"])  # type: ignore[arg-type]
        if slot == 2:
            return RecordDict()
        asked.append((slot, len(shown)))
        if slot == 3 and len(shown) == 2:
            shown = shown[1:]
        return ElectionAnswer(slot=slot, outcome="agreed", certificates=tuple(map(bytes, shown))).content()  # type: ignore[arg-type]

    asked: list[tuple[int, int]] = []
    for client in range(CLIENTS):
        fed.answer(client, forgetful)
    strategy = start(fed, SLOTS)
    assert statuses(fed) == ["done", "skipped", "done", "done"]
    assert [one.slot for one in strategy.certificates] == [1, 2, 3, 4, 5]
    assert asked.count((3, 2)) == CLIENTS and asked.count((3, 3)) == CLIENTS  # those after slot 1, then all
    assert trained(fed).keys() == {1, 3, 4}


def test_a_run_goes_on_with_its_own_federation_only(fed: Federation, tmp_path: Path) -> None:
    cut(fed, ELECTION, 3)
    make_federation(tmp_path / "other", fed.where)
    with pytest.raises(RunMismatchError):
        start(fed, SLOTS, roster=tmp_path / "other" / "server")


def test_a_new_folder_does_not_take_over_what_the_peers_elected_for_another_run(fed: Federation) -> None:
    start(fed, 2)
    with pytest.raises(RunError, match=r"elected up to slot 3 for another run; restore its folder, or found a new"):
        start(fed, 2, run=fed.out / "new")
    assert records(fed.out / "new") == [] and len(trained(fed)) == 2
    start(fed, 2)  # its own folder is as good as before


def test_a_server_that_died_before_its_first_save_goes_on(fed: Federation) -> None:
    cut(fed, "train", 1)
    start(fed, SLOTS)
    assert statuses(fed) == ["done"] * SLOTS
    fed.peers.close()
    assert elections(fed, 0) == [1, 2, 3, 4, 5]


def test_the_last_election_is_held_after_a_restart_too_and_once(fed: Federation) -> None:
    cut(fed, ELECTION, SLOTS + 1)
    assert statuses(fed) == ["done"] * SLOTS
    nodes, fed.grid.nodes = fed.grid.nodes, []
    assert [one.slot for one in start(fed, SLOTS).certificates] == [1, 2, 3, 4]  # the result is there all the same
    fed.grid.nodes = nodes
    assert [one.slot for one in start(fed, SLOTS).certificates] == [1, 2, 3, 4, 5]
    sent = len(fed.grid.sent)
    assert [one.slot for one in start(fed, SLOTS).certificates] == [1, 2, 3, 4, 5]
    assert len(fed.grid.sent) == sent
    fed.peers.close()
    assert elections(fed, 0) == [1, 2, 3, 4, 5]


def test_a_strategy_that_has_been_started_is_not_taken_for_a_new_run(fed: Federation) -> None:
    strategy = start(fed, 1)
    shutil.rmtree(fed.out / "run")
    with pytest.raises(ConfigurationError, match="this strategy has been started before"):
        strategy.start(fed.grid, initial_arrays(), num_rounds=1, timeout=30)


def test_a_history_longer_than_an_answer_is_asked_for_in_parts(
    fed: Federation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fedelect.flower.election_messages.MOST_CERTIFICATES", 2)

    def lost(message: Message, honest: RecordDict) -> RecordDict:
        answer = honest.get("fedelect")
        silent = range(2, 5 if message.metadata.dst_node_id == fed.node(2).node_id else 6)
        return RecordDict() if isinstance(answer, ConfigRecord) and int(str(answer["done"])) in silent else honest

    for client in range(CLIENTS):
        fed.answer(client, lost)
    strategy = start(fed, 5)
    assert statuses(fed) == ["done", "skipped", "skipped", "skipped", "done"]
    assert [one.slot for one in strategy.certificates] == [1, 2, 3, 4, 5, 6]
    said = [line.getMessage() for line in caplog.records if line.getMessage().startswith("slot 5: election:")]
    assert len(said) == 2 and all("of 4 clients asked" in one and "1 agreed" in one for one in said)


def test_a_saved_chain_is_verified_when_it_is_taken_up(fed: Federation) -> None:
    strategy = start(fed, 2)
    sound = CertificateSource(fed.out / "fed" / "server")
    state: dict[str, Any] = strategy._peers.state()
    sound.restore(state)
    assert sound.chain.certificates == strategy.certificates and sound.state() == state
    damaged = bytearray(state["certificates"][1])
    damaged[-1] ^= 1
    for bad in (bytes(damaged), b"", 7):
        with pytest.raises(StateError, match="do not verify"):
            sound.restore(state | {"certificates": [state["certificates"][0], bad]})
    with pytest.raises(StateError):
        sound.restore({})
