"""Stable names for nodes that come, go and come back."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.serverapp import Grid
from tests.flower.fake_grid import FakeGrid, FakeNode, federation, initial_arrays
from tests.flower.test_goal_directed import L, N, directed

from fedelect.errors import AvailabilityError, ConfigurationError
from fedelect.flower.client_numbers import Clients
from fedelect.flower.nodes import Directory, sort_names


def calls_itself(name: str | int | None) -> FakeNode:
    def answer(message: Message) -> RecordDict | Error:
        assert message.metadata.message_type == "query.fedelect"
        if name is None:
            return Error(2, "ValueError: No query function registered with name 'fedelect'")
        return RecordDict({"identity": ConfigRecord({"client": name})})

    return FakeNode(node_id=next(_node_ids), answer=answer)


_node_ids = itertools.count(1000)


def test_a_registered_name_is_the_identity_and_nobody_is_asked() -> None:
    grid, _ = federation(12)
    present = Directory(grid).present()
    assert list(present) == [f"site-{client}" for client in range(12)]
    assert not grid.sent


def test_a_node_without_a_registered_name_is_asked_once() -> None:
    federation(1)
    nodes = [calls_itself("berlin"), calls_itself("athens")]
    grid = FakeGrid(nodes)
    directory = Directory(grid)
    assert directory.present() == {"athens": nodes[1].node_id, "berlin": nodes[0].node_id}
    directory.present()
    assert len(grid.sent) == 2


def test_a_node_that_cannot_say_takes_no_part_and_the_remedy_is_named(caplog: pytest.LogCaptureFixture) -> None:
    federation(1)
    nodes = [calls_itself("berlin"), calls_itself(None), calls_itself(7)]
    directory = Directory(FakeGrid(nodes))
    assert list(directory.present()) == ["berlin"]
    assert sorted(directory.nameless) == sorted([nodes[1].node_id, nodes[2].node_id])
    assert "flwr supernode register" in caplog.text
    with pytest.raises(AvailabilityError, match=r"nodes without a name: .*introduce"):
        Clients(directory, 3).wait(wanted=3, needed=2, wait_s=0.0)


def test_simulated_nodes_are_numbered_in_the_order_of_their_registration() -> None:
    nodes = [
        FakeNode(
            node_id=identifier, key=b"random", registered=f"2026-01-01T00:00:00.{place:06d}+00:00", heartbeat=1e300
        )
        for place, identifier in enumerate([55, 11, 99, 33, 77, 22, 88, 44, 66, 12, 13])
    ]
    grid = FakeGrid(nodes[::-1])
    present = Directory(grid).present()
    assert list(present.items()) == [(str(place), node.node_id) for place, node in enumerate(nodes)]
    assert not grid.sent


def test_a_key_or_a_function_or_the_node_id_may_be_the_identity() -> None:
    nodes = [FakeNode(node_id=5, key=b"one"), FakeNode(node_id=6, key=b"two")]
    keys = list(Directory(FakeGrid(nodes), "key").present())
    assert len(set(keys)) == 2 and all(key.startswith("key-") for key in keys)
    again = [FakeNode(node_id=50, key=b"two"), FakeNode(node_id=60, key=b"one")]
    assert list(Directory(FakeGrid(again), "key").present()) == keys
    assert Directory(FakeGrid(nodes), "node-id").present() == {"5": 5, "6": 6}
    assert Directory(FakeGrid(nodes), lambda node: node.public_key.decode()).present() == {"one": 5, "two": 6}


def test_of_two_nodes_with_one_name_the_last_to_come_counts(caplog: pytest.LogCaptureFixture) -> None:
    old = FakeNode(node_id=9, name="site", registered="2026-01-01T00:00:00+00:00")
    new = FakeNode(node_id=4, name="site", registered="2026-01-01T00:01:00+00:00")
    assert Directory(FakeGrid([new, old])).present() == {"site": 4}
    assert "two nodes are called site: 4 counts, 9 does not" in caplog.text


def test_while_the_same_nodes_are_there_they_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grid, _ = federation(12)
    described: list[int] = []
    get_nodes = grid.get_nodes

    def count() -> list[Any]:
        described.append(len(grid.nodes))
        return get_nodes()

    monkeypatch.setattr(grid, "get_nodes", count)
    clients = Clients(Directory(grid), 20)
    for _ in range(3):
        there = clients.locate()
        assert list(there) == list(range(12))
        there.clear()  # what was returned is the caller's own
    gone = grid.nodes.pop()
    assert len(clients.locate()) == len(clients.locate()) == 11
    grid.nodes += [gone, FakeNode(node_id=2000, name="site-12")]
    assert len(clients.locate()) == len(clients.locate()) == 13
    assert described == [12, 11, 13]


def test_of_two_nodes_with_one_name_the_one_that_was_restarted_last_counts_although_neither_left() -> None:
    one, other = FakeNode(node_id=9, name="site"), FakeNode(node_id=4, name="site", registered="2026-01-02T00:00:00")
    directory = Directory(FakeGrid([one, other]))
    assert directory.present() == {"site": 4}
    one.registered = "2026-01-03T00:00:00"
    assert directory.present() == {"site": 9}


class OlderGrid:
    """A grid of a Flower without `get_nodes`, around a fake one."""

    def __init__(self, grid: FakeGrid) -> None:
        self._grid = grid

    def get_node_ids(self) -> list[int]:
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return self._grid.pull_messages(message_ids)


def test_where_flower_shows_ids_alone_nodes_say_their_names_or_are_known_by_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    federation(1)
    nodes = [calls_itself("berlin"), calls_itself(None), FakeNode(node_id=3, name="not shown")]
    grid = FakeGrid(nodes)
    directory = Directory(cast(Grid, OlderGrid(grid)))
    names = {"3": 3, str(nodes[1].node_id): nodes[1].node_id, "berlin": nodes[0].node_id}
    assert list(directory.present().items()) == list(names.items()) == list(directory.present().items())
    assert caplog.text.count("this version of Flower shows no names") == 1 and "introduce(app)" in caplog.text
    assert len(grid.sent) == 3 and not directory.nameless and not directory.registered
    assert Directory(cast(Grid, OlderGrid(grid)), "node-id").present().keys() == set(map(str, grid.get_node_ids()))
    with pytest.raises(ConfigurationError, match="does not show a ServerApp the keys"):
        Directory(cast(Grid, OlderGrid(grid)), "key")


def test_a_stranger_takes_no_part_once_all_clients_are_known(caplog: pytest.LogCaptureFixture) -> None:
    grid, _ = federation(3)
    clients = Clients(Directory(grid), 3)
    assert len(clients.locate()) == 3
    grid.nodes.append(FakeNode(node_id=999, name="stranger"))
    assert len(clients.locate()) == 3 and "stranger takes no part" in caplog.text
    assert clients.missing([0, 2]) == "site-1" and clients.missing([0, 1, 2]) == "nobody"


def test_names_must_differ() -> None:
    grid, _ = federation(3)
    with pytest.raises(ConfigurationError, match="'a' is given twice"):
        Clients(Directory(grid), 3, ["a", "b", "a"])
    with pytest.raises(ConfigurationError, match="4 names for 3 clients"):
        Clients(Directory(grid), 3, ["a", "b", "c", "d"])


def test_numbers_in_names_are_ordered_as_numbers() -> None:
    assert sort_names(["10", "9", "b2", "b10", "a"]) == ["9", "10", "a", "b2", "b10"]
    assert sort_names(["01", "1"]) == ["01", "1"]


def test_a_node_that_never_answers_is_asked_twice_and_then_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    federation(1)
    monkeypatch.setattr("fedelect.flower.nodes._INTRODUCTION_S", 0.05)
    grid = FakeGrid([FakeNode(node_id=8, answer=lambda message: None), calls_itself("berlin")])
    directory = Directory(grid)
    for _ in range(4):
        assert list(directory.present()) == ["berlin"]
    assert [message.metadata.dst_node_id for message in grid.sent].count(8) == 2
    assert directory.nameless == [8]


def test_a_name_of_thousands_of_digits_stops_nothing() -> None:
    assert sort_names(["9" * 5000, "8" * 5000, "site 10", "07"]) == ["07", "8" * 5000, "9" * 5000, "site 10"]


@pytest.mark.parametrize("name", ["7" * 5000, "x" * 101, "site\n3", "\x1b[2J", "\u202esite"])
def test_a_node_whose_name_is_none_takes_no_part(name: str, caplog: pytest.LogCaptureFixture) -> None:
    federation(1)
    grid = FakeGrid([calls_itself(name), calls_itself("y" * 100), FakeNode(node_id=3, name=name)])
    directory = Directory(grid)
    assert list(directory.present()) == ["y" * 100]
    assert len(directory.nameless) == 2 and "up to 100 printable characters" in caplog.text
    assert name not in caplog.text


@pytest.mark.parametrize("impostor_first", [True, False])
def test_nobody_takes_a_registered_clients_place_by_saying_its_name(
    caplog: pytest.LogCaptureFixture, impostor_first: bool
) -> None:
    grid, _ = federation(3)
    true = next(node for node in grid.nodes if node.name == "site-1")
    impostor = calls_itself("site-1")
    impostor.registered = "2027-01-01T00:00:00+00:00"  # the last to come
    grid.nodes.remove(true)
    directory = Directory(grid)
    clients = Clients(directory, 3, ["site-0", "site-1", "site-2"])
    for newcomer in (impostor, true) if impostor_first else (true, impostor):
        grid.nodes.append(newcomer)
        there = clients.locate()
    assert there[1] == true.node_id
    assert f"node {impostor.node_id} calls itself site-1, a name registered for another" in caplog.text
    grid.nodes.remove(true)
    assert 1 not in clients.locate()  # not even while it is away


def test_a_registered_name_stays_taken_when_the_run_is_resumed(tmp_path: Path) -> None:
    grid, workers = federation(N)
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=L)
    impostor = calls_itself("site-1")
    grid.nodes = [node for node in grid.nodes if node.name != "site-1"] + [impostor]
    clients = Clients(Directory(grid), N)
    clients.recall([f"site-{client}" for client in range(N)], ["site-1"])
    assert 1 not in clients.locate() and len(clients.locate()) == N - 1
    checkpoint = max((tmp_path / "run" / "checkpoint").iterdir())
    assert b"registered" in checkpoint.read_bytes() and len(workers) == N


def test_at_the_start_numbers_follow_names_in_whatever_order_clients_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = FakeGrid([])
    coming = [FakeNode(number, name=name) for number, name in enumerate(["site-10", "site-2", "site-9"])]

    def connect(seconds: float) -> None:
        grid.nodes.append(coming.pop(0))

    monkeypatch.setattr("fedelect.flower.client_numbers.time.sleep", connect)
    clients = Clients(Directory(grid), 4)
    there = clients.wait(wanted=3, needed=3, wait_s=1e6)
    assert clients.names == ("site-2", "site-9", "site-10") and there == {0: 1, 1: 2, 2: 0}
    coming.append(FakeNode(7, name="site-1"))
    clients.wait(wanted=4, needed=4, wait_s=1e6)
    assert list(clients.names) == ["site-2", "site-9", "site-10", "site-1"]  # late, so the next free number
