"""Clients elected by the properties that their nodes report, such as a region."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays

from fedelect.errors import AvailabilityError, ConfigurationError
from fedelect.flower import GoalDirected, introduce
from fedelect.records import SlotRecord, read_run
from fedelect.selectors import PowerOfChoice, ShuffledCycle

N, K = 8, 2
EUROPE = (1, 3, 5)


def region(client: int) -> Mapping[str, Any]:
    return {"region": "eu" if client in EUROPE else "us", "gpus": client, "secret": "not asked for"}


def reports(grid: FakeGrid, config: Callable[[int], Mapping[str, Any]] = region, **options: Any) -> None:
    """Let the nodes answer queries by a real client app, with this node config."""
    app = ClientApp()
    introduce(app, **({"properties": ["region", "gpus"]} | options))
    for node in grid.nodes:
        client, usual = int(node.name.removeprefix("site-")), node.answer
        context = Context(1, node.node_id, dict(config(client)), RecordDict(), {})

        def answer(message: Message, usual: Any = usual, context: Context = context) -> RecordDict | Error | None:
            if message.metadata.message_type.startswith("query"):
                return app(message, context).content
            answered: RecordDict | Error | None = usual(message)
            return answered

        node.answer = answer


def directed(run: Path, available: Any, **options: Any) -> GoalDirected:
    selector = options.pop("selector", None) or ShuffledCycle(clients=N, budget=K, seed=1)
    return GoalDirected(FedAvg(), selector=selector, run=run, wait_s=0.0, available=available, **options)


def in_europe(node: Mapping[str, Any]) -> bool:
    return bool(node["region"] == "eu")


def played(run: Path) -> list[SlotRecord]:
    return sorted(read_run(run).records, key=lambda record: record.slot)


def test_only_clients_whose_properties_fit_are_elected_and_all_give_opinions(tmp_path: Path) -> None:
    grid, _ = federation(N)
    reports(grid)
    directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=6)
    rows = played(tmp_path / "run")
    assert {client for row in rows for client in row.cohort} == set(EUROPE)
    for row in rows:
        assert row.available == len(EUROPE) and row.left_out == ()
        assert row.opinions is not None and None not in row.opinions
    queries = [message for message in grid.sent if message.metadata.message_type.startswith("query")]
    assert len(queries) == N  # each node once, not in every slot
    assert read_run(tmp_path / "run").header.scenario["available"] == "in_europe"


def test_the_function_is_asked_in_every_slot_and_sees_nothing_but_the_properties_named(tmp_path: Path) -> None:
    grid, _ = federation(N)
    reports(grid)
    seen: list[Mapping[str, Any]] = []

    def alternate(node: Mapping[str, Any]) -> bool:
        seen.append(node)
        return bool((len(seen) - 1) // N % 2 == node["gpus"] % 2)  # even clients in odd slots

    directed(tmp_path / "run", alternate).start(grid, initial_arrays(), num_rounds=4)
    assert [{client % 2 for client in row.cohort} for row in played(tmp_path / "run")] == [{0}, {1}, {0}, {1}]
    assert len(seen) == 4 * N and set(map(frozenset, seen)) == {frozenset({"region", "gpus"})}


def test_properties_may_be_computed_from_the_context(tmp_path: Path) -> None:
    grid, _ = federation(N)
    reports(grid, properties=lambda context: {"tags": ["big"] if context.node_config["gpus"] > 5 else ["small", "old"]})
    directed(tmp_path / "run", lambda node: "big" in node["tags"]).start(grid, initial_arrays(), num_rounds=2)
    assert [row.cohort for row in played(tmp_path / "run")] == [(6, 7), (6, 7)]


def test_candidates_that_report_losses_are_available_ones(tmp_path: Path) -> None:
    grid, _ = federation(N)
    reports(grid)
    selector = PowerOfChoice(clients=N, budget=K, seed=1, candidates=3)
    directed(tmp_path / "run", in_europe, selector=selector).start(grid, initial_arrays(), num_rounds=3)
    assert {row.candidates for row in played(tmp_path / "run")} == {EUROPE}


def test_too_few_available_clients_stop_the_run_as_absent_ones_do_and_it_goes_on_later(tmp_path: Path) -> None:
    grid, _ = federation(N)
    reports(grid)
    directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=2)
    away = [node for node in grid.nodes if node.name in ("site-1", "site-3")]
    grid.nodes = [node for node in grid.nodes if node not in away]
    says = r"1 clients are there .* 2 are needed; missing: site-1, site-3; connected, but not available: site-0, site-2"
    with pytest.raises(AvailabilityError, match=says):
        directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=4)
    grid.nodes += away
    directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=4)
    grid, _ = federation(N)
    reports(grid)
    directed(tmp_path / "whole", in_europe).start(grid, initial_arrays(), num_rounds=4)
    assert [row.cohort for row in played(tmp_path / "run")] == [row.cohort for row in played(tmp_path / "whole")]


class Killed(BaseException):
    """Stands in for SIGKILL."""


@pytest.mark.parametrize("after", [3, N + 1, N + K + N + 1])
def test_killed_it_goes_on_with_the_same_choices(tmp_path: Path, after: int) -> None:
    for name in ("whole", "run"):
        grid, _ = federation(N)
        reports(grid)

        def kill(message: Message, name: str = name, grid: FakeGrid = grid) -> None:
            if name == "run" and len(grid.sent) > after:
                raise Killed

        grid.before = kill
        if name == "run":
            with pytest.raises(Killed):
                directed(tmp_path / name, in_europe).start(grid, initial_arrays(), num_rounds=4)
            grid.before = lambda message: None
        directed(tmp_path / name, in_europe).start(grid, initial_arrays(), num_rounds=4)
    chosen = [[(row.cohort, row.available) for row in played(tmp_path / name)] for name in ("whole", "run")]
    assert chosen[0] == chosen[1]


def test_a_function_where_no_client_reports_properties_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match=r"no client reports properties; .*introduce\(app, properties="):
        directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=1)
    assert not (tmp_path / "run").exists()  # nothing is on record: the folder can be used again
    reports(grid, config=lambda client: {"partition-id": client})  # none has the keys that the app names
    with pytest.raises(ConfigurationError, match="no client reports properties"):
        directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=1)


def test_a_client_that_reports_nothing_is_not_elected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid, _ = federation(N)
    reports(grid, config=lambda client: {} if client == 3 else region(client))
    with caplog.at_level("INFO", logger="flwr.fedelect"):
        directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=3)
    assert {row.cohort for row in played(tmp_path / "run")} == {(1, 5)}
    assert "site-3 reports no properties and is not elected" in caplog.text
    assert caplog.text.count("not available by their properties: site-0, site-2, site-3, site-4") == 1


def test_a_node_that_is_silent_is_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedelect.flower.properties._QUERY_S", 0.05)
    grid, _ = federation(N)
    reports(grid)
    node = next(node for node in grid.nodes if node.name == "site-3")
    usual = node.answer
    node.answer = lambda message: None if message.metadata.message_type.startswith("query") else usual(message)
    directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=4)
    kinds = [message.metadata.message_type for message in grid.sent if message.metadata.dst_node_id == node.node_id]
    assert sum(kind.startswith("query") for kind in kinds) == 2
    assert {row.cohort for row in played(tmp_path / "run")} == {(1, 5)}


def test_a_function_that_raises_stops_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    grid, _ = federation(N)
    reports(grid)
    calls: list[int] = []

    def breaks(node: Mapping[str, Any]) -> bool:
        calls.append(1)
        return in_europe(node) if len(calls) <= 2 * N else bool(node["regoin"])

    breaks.__qualname__ = "in_europe"  # the user mends it and keeps its name
    says = r"available= raised KeyError: 'regoin', for site-0 with the properties {'region': 'us', 'gpus': 0}; mend it"
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", breaks).start(grid, initial_arrays(), num_rounds=4)
    assert [row.slot for row in played(tmp_path / "run")] == [1, 2]
    directed(tmp_path / "run", in_europe).start(grid, initial_arrays(), num_rounds=4)
    assert [row.slot for row in played(tmp_path / "run")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("available", "says"),
    [
        ("eu", "available: got 'eu'; allowed: a function"),
        (lambda node: node["region"], "available= returned 'us' for site-0"),
    ],
)
def test_what_is_no_function_into_truth_values_is_refused(tmp_path: Path, available: Any, says: str) -> None:
    grid, _ = federation(N)
    reports(grid)
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", available).start(grid, initial_arrays(), num_rounds=1)


def test_properties_are_keys_or_a_function_and_no_text() -> None:
    with pytest.raises(ConfigurationError, match=r"properties: got the text 'region'; allowed: .*\['region'\]"):
        introduce(ClientApp(), properties="region")


def test_a_node_answers_with_the_properties_that_its_app_names() -> None:
    federation(1)
    app = ClientApp()
    introduce(app, properties=["region", "missing"])
    context = Context(1, 1, dict(region(1)), RecordDict(), {})  # registered by name: it has none in its config
    message = Message(RecordDict(), dst_node_id=1, message_type="query.fedelect_properties")
    reply = app(message, context)
    assert reply.content["properties"] == ConfigRecord({"region": "eu"})
