"""What a user reads: the run folder at the start, who was asked, who failed and why, mistakes in the constructor."""

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from flwr.app import Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.serverapp.strategy import FedAvg
from tests.flower.app_kit import app_grid, first_model, make_app
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays
from tests.flower.test_time_limits import silence

from fedelect.errors import AvailabilityError, ConfigurationError, RunError
from fedelect.flower import GoalDirected, legacy
from fedelect.flower.exchange import describe_error
from fedelect.flower.opinions import Survey, refuse_broken_opinion
from fedelect.records import SlotRecord, read_run
from fedelect.selectors import FixedCohort, RandomCohort, RoundRobin

N, K = 8, 3


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="flwr.fedelect")


def directed(run: Path, **options: Any) -> GoalDirected:
    options.setdefault("selector", RandomCohort(clients=N, budget=K, seed=1))
    return GoalDirected(FedAvg(**options.pop("plain", {})), run=run, wait_s=0.0, **options)


def answer_evaluations(grid: FakeGrid, answer: Any) -> None:
    """Let all nodes answer messages to evaluate in another way."""
    for node in grid.nodes:
        usual = node.answer
        node.answer = lambda message, usual=usual: (  # type: ignore[misc]
            answer if message.metadata.message_type == "evaluate" else usual(message)
        )


def test_the_folder_to_resume_from_is_logged_before_the_first_slot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    grid, _ = federation(N)
    GoalDirected(FedAvg(), selector=FixedCohort(clients=N, cohort=[1, 2]), wait_s=0.0).start(grid, initial_arrays(), 1)
    said = [record.getMessage() for record in caplog.records]
    folder = str(tmp_path / "fedelect-runs" / "001")
    (named,) = [number for number, line in enumerate(said) if f"give the strategy run={folder!r}" in line]
    (elected,) = [number for number, line in enumerate(said) if line.startswith("slot 1 of 1: elected")]
    assert named < elected
    assert any("warm start, 1 round a slot" in line for line in said)
    assert any("elects 2 of up to 8 clients" in line for line in said)


def test_the_sample_and_those_asked_beside_it_are_counted_apart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    cohort = FixedCohort(clients=N, cohort=range(N - 1))
    directed(tmp_path / "run", selector=cohort, survey=2).start(grid, initial_arrays(), num_rounds=1)
    (row,) = read_run(tmp_path / "run").records
    assert row.measures is not None
    beside = int(row.measures.evaluations or 0) - 2
    assert beside in (5, 6)  # the cohort, but those of it that are in the sample
    assert f"slot 1: 2 clients are asked for their opinion, and {beside} others that trained" in caplog.text
    assert "opinions of 2 of 2 asked" in caplog.text


def test_members_that_are_not_waited_for_are_not_logged_as_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    silence(grid, "site-2")
    cohort = FixedCohort(clients=N, cohort=[0, 1, 2])
    directed(tmp_path / "run", selector=cohort, enough_updates=2).start(grid, initial_arrays(), num_rounds=1)
    assert "trained by site-0, site-1; failed: nobody; away or not waited for: site-2;" in caplog.text
    levels = {record.levelno for record in caplog.records if "enough others had replied" in record.getMessage()}
    assert levels == {logging.INFO}


def test_members_of_an_abandoned_slot_are_not_said_to_have_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    answer_evaluations(grid, Error(2, "no data"))
    directed(tmp_path / "run", opinion="accuracy").start(grid, initial_arrays(), num_rounds=2)
    cohort = ", ".join(f"site-{client}" for client in read_run(tmp_path / "run").records[0].cohort)
    assert f"slot 2: left out after failures or an abandoned slot: {cohort}" in caplog.text


def test_a_run_that_ends_for_want_of_opinions_names_a_client_and_its_reason(tmp_path: Path) -> None:
    grid, _ = federation(N)
    answer_evaluations(grid, RecordDict({"metrics": MetricRecord({"accuracy": 37.5, "num-examples": 9})}))
    says = r"0 opinions count and 4 are needed \(no opinion of site-0: its opinion 37.5 is not in \[0, 1\]\)"
    with pytest.raises(RunError, match=says):
        directed(tmp_path / "run", opinion="accuracy").start(grid, initial_arrays(), num_rounds=9)
    assert re.fullmatch(says, str(read_run(tmp_path / "run").records[0].note))


def test_a_run_that_ends_for_want_of_updates_names_a_client_and_its_reason(tmp_path: Path) -> None:
    grid, _ = federation(N)
    for node in grid.nodes:
        node.answer = lambda message: Error(2, "no data")
    says = r"updates of 0 members arrived and 1 are needed \(no update of site-\d: error 2: no data\)"
    with pytest.raises(RunError, match=says):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=9)


def test_a_metric_outside_the_range_is_named_with_a_value(tmp_path: Path) -> None:
    grid, _ = federation(N)
    answer_evaluations(grid, RecordDict({"metrics": MetricRecord({"accuracy": 36.6228, "num-examples": 9})}))
    with pytest.raises(ConfigurationError, match=r"no metric is plainly it; not in \[0, 1\] is accuracy \(as 36.62\)"):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=2)


def test_one_odd_reply_alone_does_not_stop_the_run_as_a_broken_function() -> None:
    reason, reply = "its reply cannot be read: KeyError", cast(Any, SimpleNamespace(content=RecordDict()))
    survey = Survey(opinions=np.full(N, np.nan), noise=np.zeros(N), rejected={0: reason})
    refuse_broken_opinion(survey, {0: reply})
    survey.rejected[1] = reason
    with pytest.raises(ConfigurationError, match="likewise for every other reply"):
        refuse_broken_opinion(survey, {0: reply, 1: reply})


def test_a_function_that_raises_for_all_replies_stops_the_run_after_the_first_survey(tmp_path: Path) -> None:
    grid, _ = federation(N)
    says = r"opinion= raised KeyError: 'metric', and likewise .* holds the records 'metrics' with .*accuracy.*Mend"
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", opinion=lambda reply: reply["metric"]["accuracy"]).start(grid, initial_arrays(), 5)
    assert [message.metadata.message_type for message in grid.sent].count("train") == K
    again = directed(tmp_path / "run", opinion=lambda reply: reply["metrics"]["accuracy"])
    again.start(grid, initial_arrays(), 5)  # the folder can be used
    assert read_run(tmp_path / "run").complete


def test_a_function_that_raises_later_costs_the_slot_only(tmp_path: Path) -> None:
    told: list[SlotRecord] = []

    def read(reply: RecordDict) -> float:
        if len(told) == 1:
            raise KeyError("accuracy")
        return float(reply["metrics"]["accuracy"])  # type: ignore[arg-type]

    grid, _ = federation(N)
    directed(tmp_path / "run", opinion=read, on_slot=told.append).start(grid, initial_arrays(), num_rounds=3)
    assert [row.status for row in told] == ["done", "abandoned", "done"]


RAISED = "Exception ClientAppException occurred. Message: no data"


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (2, f"<class 'flwr.clientapp.client_app.ClientAppException'>:<'\n{RAISED}'>", "error 2: no data"),
        (2, f"<class 'ray.RayTaskError(X)'>:<'ray::run()\n  File x\nX: \n{RAISED}'>", "error 2: no data"),
        (2, "<class 'ValueError'>:<'it's <'odd'>'>", "error 2: it's <'odd'>"),
        (2, "Traceback:\n  a line\nValueError: no data", "error 2: ValueError: no data"),
        (2, "<class 'ValueError'>:<''>", "error 2: no reason given"),
        (3, "Message Unavailable - The requested", "error 3: no answer in time, or the node was removed"),
        (4, "Reply Message Unavailable - The", "error 4: no answer in time, or the node was removed"),
    ],
)
def test_an_error_is_told_in_the_words_of_the_app(code: int, reason: str, said: str) -> None:
    grid, _ = federation(1)
    message = Message(RecordDict(), dst_node_id=grid.nodes[0].node_id, message_type="train")
    assert describe_error(Message(Error(code, reason), reply_to=message)) == said


@pytest.mark.parametrize(
    ("strategy", "options", "says"),
    [
        (FedAvg, {}, r"got the class FedAvg; allowed: an object of it, such as FedAvg\(\)"),
        (GoalDirected(FedAvg(), budget=K), {}, "got GoalDirected; allowed: the strategy that it wraps"),
        (FedAvg(), {"budget": 0}, "budget: got 0"),
        (FedAvg(), {"budget": -3}, "budget: got -3"),
        (FedAvg(), {"clients": 2}, "got 2, fewer than the budget of 3"),
        (FedAvg(), {"names": ["a", "b"]}, "names: got 2, fewer than the budget of 3"),
        (FedAvg(), {"enough_updates": 5}, "enough_updates: got 5; a cohort has 3 members"),
        (FedAvg(), {"train_quorum": 4}, "train_quorum: got 4; a cohort has 3 members"),
        (FedAvg(), {"run": __file__}, "which is a file; allowed: a folder"),
    ],
)
def test_a_mistake_is_refused_in_the_constructor(strategy: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        GoalDirected(strategy, **{"budget": K} | options)


@pytest.mark.parametrize(
    ("options", "says"), [({"budget": 0}, "budget: got 0"), ({"budget": 3, "clients": 2}, "fewer than the budget of 3")]
)
def test_a_mistake_with_the_older_api_is_refused_in_the_constructor(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        legacy.GoalDirected(LegacyFedAvg(), **options)


def test_clients_that_never_came_are_not_said_to_be_missing(tmp_path: Path) -> None:
    grid, _ = federation(2)
    selector = RoundRobin(clients=N, budget=K, seed=1)
    says = r"missing: nobody \(up to 6 that have not been seen yet may join\)"
    with pytest.raises(AvailabilityError, match=says):
        directed(tmp_path / "run", selector=selector).start(grid, initial_arrays(), num_rounds=1)


def test_a_mod_for_local_privacy_on_the_training_works(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    app = make_app("scikit-learn", train_mods=[LocalDpMod(1.0, 1.0, 50.0, 1e-5)])
    grid = app_grid(app, N)
    directed(tmp_path / "run").start(grid, first_model("scikit-learn"), num_rounds=2)
    assert [row.status for row in read_run(tmp_path / "run").records] == ["done", "done"]


def test_on_the_whole_app_it_addresses_refused_evaluations_to_the_wrong_node() -> None:
    """What docs/FLOWER.md says of it; if a newer Flower mends it, the page must change."""
    pytest.importorskip("sklearn")
    app: ClientApp = make_app("scikit-learn", app_mods=[LocalDpMod(1.0, 1.0, 50.0, 1e-5)])
    replies: list[Message] = []
    grid = app_grid(make_app("scikit-learn"), 1)
    node = grid.nodes[0]
    usual = node.answer

    def note(message: Message) -> Any:
        replies.append(app(message, _context()))
        return usual(message)

    node.answer = note
    FedAvg(fraction_train=0.0, min_train_nodes=0, min_evaluate_nodes=1, min_available_nodes=1).start(
        grid, first_model("scikit-learn"), num_rounds=1
    )
    (reply,) = replies
    assert reply.has_error() and reply.metadata.dst_node_id == node.node_id


def _context() -> Any:
    from flwr.app import Context

    config: dict[str, Any] = {"local-epochs": 1, "batch-size": 32, "training-log": ""}
    return Context(1, 1, {"partition-id": 0, "num-partitions": 1}, RecordDict(), config)
