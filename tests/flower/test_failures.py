"""Clients that fail, leave, come back, lie or talk nonsense: the run goes on and says what happened."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from tests.flower.fake_grid import FakeGrid, FakeNode, Worker, federation, initial_arrays, quality
from tests.flower.test_goal_directed import K, L, N, directed, records

from fedelect.errors import AvailabilityError, RunError
from fedelect.flower import read_slot
from fedelect.flower.exchange import exchange
from fedelect.records import SlotRecord
from fedelect.selectors import FixedCohort, QuickInitUcb


def fixed(*cohort: int) -> FixedCohort:
    return FixedCohort(clients=N, cohort=list(cohort))


def node(grid: FakeGrid, client: int) -> FakeNode:
    return next(one for one in grid.nodes if one.name == f"site-{client}")


def raises(message: Message) -> RecordDict:
    raise ValueError("out of memory")


def test_a_client_that_raises_is_left_out_of_the_average_and_on_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    node(grid, 3).answer = raises
    caplog.set_level(logging.INFO, logger="flwr.fedelect")
    directed(tmp_path / "run", selector=fixed(2, 3, 5)).start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.status == "done" and row.arrivals == (L, 0, L) and row.empty_rounds == 0
    assert row.opinions is not None and row.opinions[3] is None and row.opinions.count(None) == 1
    model = L * np.mean([quality(2), quality(5)])
    assert row.reward == pytest.approx(np.mean([model / 10 * (1 - 0.001 * c) for c in range(N) if c != 3]))
    assert "no update of site-3: error 2: ValueError: out of memory" in caplog.text
    assert "no opinion of site-3: error 2" in caplog.text
    assert "trained by site-2, site-5; failed: site-3; opinions of 11 of 12" in caplog.text


def test_silence_is_waited_for_no_longer_than_the_timeout(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid, _ = federation(N)
    node(grid, 5).answer = lambda message: None
    strategy = directed(tmp_path / "run", selector=fixed(2, 3, 5), rounds_per_slot=1)
    strategy.start(grid, initial_arrays(), num_rounds=1, timeout=0.1)
    (row,) = records(tmp_path / "run")
    assert row.arrivals == (1, 1, 0) and row.opinions is not None and row.opinions[5] is None
    assert "no update of site-5: no answer within 0.1 s" in caplog.text


def test_a_node_killed_in_mid_slot_loses_its_round_and_the_slot_goes_on(tmp_path: Path) -> None:
    grid, workers = federation(N)

    def kill(message: Message) -> None:
        if workers[3].trained:
            grid.nodes = [one for one in grid.nodes if one.name != "site-3"]

    grid.before = kill  # from then on the SuperLink answers in its place, under its own id
    directed(tmp_path / "run", selector=fixed(2, 3, 5)).start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.status == "done" and row.arrivals == (L, 1, L)
    assert row.opinions is not None and row.opinions[3] is None


def test_the_choice_is_among_the_clients_that_are_there(tmp_path: Path) -> None:
    grid, _ = federation(N)
    away = [node(grid, client) for client in (3, 7)]
    grid.nodes = [one for one in grid.nodes if one not in away]
    strategy = directed(tmp_path / "run", names=[f"site-{client}" for client in range(N)])
    strategy.start(grid, initial_arrays(), num_rounds=12 * L)
    rows = records(tmp_path / "run")
    assert not {3, 7} & {client for row in rows for client in row.cohort}
    assert all(row.opinions is not None and row.opinions[3] is row.opinions[7] is None for row in rows)


def test_a_client_that_comes_back_under_another_node_id_is_the_same_arm(tmp_path: Path) -> None:
    grid, workers = federation(N)
    gone = node(grid, 7)
    slots_without: list[int] = []

    def leave_and_return(message: Message) -> None:
        slot, _ = read_slot(message)
        there = any(one.name == "site-7" for one in grid.nodes)
        if slot in (3, 4, 5):
            slots_without.append(slot)
            grid.nodes = [one for one in grid.nodes if one.name != "site-7"]
        elif slot >= 6 and not there:
            grid.nodes.append(FakeNode(node_id=4711, name="site-7", answer=gone.answer))

    grid.before = leave_and_return
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=30 * L)
    rows = records(tmp_path / "run")
    gave = {row.slot for row in rows if row.opinions is not None and row.opinions[7] is not None}
    assert gave == set(range(1, 31)) - {3, 4, 5}
    assert any(7 in row.cohort for row in rows if row.slot > 6)  # among the best: it is elected again
    assert {slot for slot, _ in workers[7].trained} & set(range(6, 31))


def test_fewer_clients_than_planned_are_waited_for_and_the_missing_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    late = node(grid, 11)
    grid.nodes.remove(late)
    caplog.set_level(logging.INFO, logger="flwr.fedelect")
    names = [f"site-{client}" for client in range(N)]
    directed(tmp_path / "run", names=names, wait_s=0.05).start(grid, initial_arrays(), num_rounds=L)
    assert "11 of 12 clients are there; waiting up to 0.05 s" in caplog.text
    assert "going on with 11 of 12 clients; missing: site-11" in caplog.text


def test_too_few_clients_stop_the_run_with_their_names_and_it_can_be_started_again(tmp_path: Path) -> None:
    grid, _ = federation(N)
    everybody = list(grid.nodes)
    names = [f"site-{client}" for client in range(N)]
    grid.nodes = [one for one in everybody if one.name in ("site-0", "site-1")]
    with pytest.raises(AvailabilityError, match=r"2 clients are there after 0 s and 3 are needed; missing: site-2, "):
        directed(tmp_path / "run", names=names).start(grid, initial_arrays(), num_rounds=2 * L)
    grid.nodes = everybody
    directed(tmp_path / "run", names=names).start(grid, initial_arrays(), num_rounds=2 * L)
    assert len(records(tmp_path / "run")) == 2


def test_clients_lost_between_slots_stop_the_run_and_it_goes_on_when_they_are_back(tmp_path: Path) -> None:
    grid, _ = federation(N)
    everybody = list(grid.nodes)

    def vanish(message: Message) -> None:
        if message.metadata.message_type == "evaluate" and len(grid.sent) > 2 * (N + K * L):
            grid.nodes = everybody[:2]

    grid.before = vanish
    with pytest.raises(AvailabilityError, match="missing: site-"):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=6 * L)
    done = len(records(tmp_path / "run"))
    assert 2 <= done < 6
    grid.nodes, grid.before = everybody, lambda message: None
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=6 * L)
    assert len(records(tmp_path / "run")) == 6


def test_a_slot_below_the_quorum_of_opinions_is_abandoned_and_another_is_asked(tmp_path: Path) -> None:
    grid, workers = federation(N)
    for worker in workers[:4]:
        worker.opinion = lambda honest: math.nan
    selector = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)

    def heal(message: Message) -> None:
        if read_slot(message)[0] == 3:
            workers[0].opinion = None

    grid.before = heal
    directed(tmp_path / "run", selector=selector, quorum=0.75).start(grid, initial_arrays(), num_rounds=4 * L)
    rows = records(tmp_path / "run")
    assert [row.status for row in rows] == ["abandoned", "abandoned", "done", "done"]
    assert rows[0].note is not None and rows[0].note.startswith(
        "8 opinions count and 9 are needed (no opinion of site-0: "
    )
    assert rows[0].reward is None
    assert rows[0].opinions is not None and rows[0].opinions[:4] == (None,) * 4
    assert not set(rows[0].cohort) & set(rows[1].cohort)  # an abandoned slot changes the next choice


def test_a_slot_in_which_too_few_train_is_abandoned_at_once(tmp_path: Path) -> None:
    grid, workers = federation(N)
    for client in set(range(N)) - {5}:
        node(grid, client).answer = lambda message: Error(2, "no")
    strategy = directed(tmp_path / "run", selector=fixed(2, 3, 5), train_quorum=2, abandoned_allowed=1)
    with pytest.raises(
        RunError, match=r"2 slots in a row came to nothing, the last one because in round 1 the updates"
    ):
        strategy.start(grid, initial_arrays(), num_rounds=5 * L)
    rows = records(tmp_path / "run")
    assert [(row.status, row.rounds, row.arrivals, row.opinions) for row in rows] == [
        ("abandoned", 1, (0, 0, 1), None),
        ("abandoned", 1, (1, 0, 0), None),
    ]
    assert workers[5].trained == [(1, 0), (2, 0)]


def test_a_round_without_any_update_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    grid, workers = federation(N)

    def fails_once(message: Message) -> RecordDict | Error | None:
        if message.metadata.message_type == "train" and read_slot(message)[1] == 1:
            return Error(2, "no")
        return workers[4](message)

    node(grid, 4).answer = fails_once
    strategy = directed(
        tmp_path / "run", selector=FixedCohort(clients=N, cohort=[4]), rounds_per_slot=3, abandoned_allowed=0
    )
    with pytest.raises(RunError):
        strategy.start(grid, initial_arrays(), num_rounds=3)
    (row,) = records(tmp_path / "run")
    assert (row.rounds, row.empty_rounds, row.arrivals) == (2, 1, (1,))


@pytest.mark.parametrize("leave_gaps", [True, False])
def test_a_message_that_the_superlink_refuses_is_a_failure_of_that_client_only(
    tmp_path: Path, leave_gaps: bool
) -> None:
    grid, _ = federation(N)
    refused = node(grid, 3).node_id
    grid.refuse, grid.leave_gaps = (lambda message: message.metadata.dst_node_id == refused), leave_gaps
    directed(tmp_path / "run", selector=fixed(2, 3, 5)).start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.arrivals == (L, 0, L) and row.opinions is not None and row.opinions.count(None) == 1


def test_an_exchange_with_nobody_asks_the_grid_nothing() -> None:
    answers = exchange(FakeGrid([]), {}, timeout_s=1.0)
    assert answers.replies == {} and answers.failures == {}


NONSENSE: dict[str, Any] = {
    "nan": math.nan,
    "infinite": math.inf,
    "above": 1.0000001,
    "below": -1e-9,
    "huge": 1e300,
    "a list": [0.5, 0.5],
    "an absurd list": [1] * 1000,
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE)
def test_an_opinion_that_is_no_opinion_never_moves_the_selector(tmp_path: Path, said: Any) -> None:
    grid, workers = federation(N)
    workers[6].opinion = lambda honest: said
    misled = directed(tmp_path / "lied")
    misled.start(grid, initial_arrays(), num_rounds=10 * L)
    grid, workers = federation(N)
    node(grid, 6).answer = lambda message: (
        Error(2, "no") if message.metadata.message_type == "evaluate" else workers[6](message)
    )
    silent = directed(tmp_path / "silent")
    silent.start(grid, initial_arrays(), num_rounds=10 * L)
    assert misled.selector.state() == silent.selector.state()
    assert all(row.opinions is not None and row.opinions[6] is None for row in records(tmp_path / "lied"))


def test_a_reply_without_the_metric_or_without_metrics_is_no_opinion(tmp_path: Path) -> None:
    grid, workers = federation(N)

    def other(message: Message) -> RecordDict | Error | None:
        if message.metadata.message_type == "train":
            return workers[6](message)
        return RecordDict({"metrics": MetricRecord({"precision": 0.5, "num-examples": 3})})

    node(grid, 6).answer = other
    node(grid, 8).answer = lambda message: (
        RecordDict() if message.metadata.message_type == "evaluate" else workers[8](message)
    )
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.opinions is not None
    assert [client for client, opinion in enumerate(row.opinions) if opinion is None] == [6, 8]


def test_a_users_opinion_function_that_fails_on_a_reply_costs_that_opinion_only(tmp_path: Path) -> None:
    grid, _ = federation(N)

    def picky(reply: RecordDict) -> Any:
        accuracy = float(str(reply["metrics"]["accuracy"]))
        return {0: "good", 1: True, 2: None, 3: np.float32(0.5)}.get(
            round(1000 * (1 - accuracy / BEST)), 1 / (accuracy > 0)
        )

    BEST = L * np.mean([quality(client) for client in (0, 1, 2)]) / 10
    directed(tmp_path / "run", selector=fixed(0, 1, 2), opinion=picky).start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.opinions == (None, None, None, 0.5, *([1.0] * (N - 4)))


def misshapen(kind: str, worker: Worker, message: Message) -> RecordDict | Error | None:
    reply = worker(message)
    if message.metadata.message_type != "train" or not isinstance(reply, RecordDict):
        return reply
    arrays, metrics = reply["arrays"], reply["metrics"]
    assert isinstance(arrays, ArrayRecord) and isinstance(metrics, MetricRecord)
    if kind == "shape":
        arrays["a"] = Array(np.zeros(5))
    elif kind == "names":
        arrays["c"] = Array(np.zeros(3))
    elif kind == "damaged":
        arrays["a"] = Array("float64", (3,), "numpy.ndarray", b"nonsense")
    elif kind == "wrong inside":
        arrays["a"] = Array("float64", (3,), "numpy.ndarray", Array(np.zeros(7)).data)
    elif kind == "list":
        metrics["num-examples"] = [5, 5]
    elif kind == "no arrays":
        del reply["arrays"]
    elif kind == "no metrics":
        del reply["metrics"]
    else:
        metrics["num-examples"] = {"negative": -5, "zero": 0, "nan": math.nan, "infinite": math.inf}[kind]
    return reply


@pytest.mark.parametrize(
    "kind",
    [
        "shape",
        "names",
        "damaged",
        "wrong inside",
        "list",
        "no arrays",
        "no metrics",
        "negative",
        "zero",
        "nan",
        "infinite",
    ],
)
def test_an_update_that_cannot_be_averaged_is_left_out(tmp_path: Path, kind: str) -> None:
    grid, workers = federation(N)
    node(grid, 3).answer = lambda message: misshapen(kind, workers[3], message)
    result = directed(tmp_path / "run", selector=fixed(2, 3, 5)).start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.arrivals == (L, 0, L)
    assert result.arrays["a"].numpy() == pytest.approx(L * np.mean([quality(2), quality(5)]))


GANG = (0, 1, 2)


def colluding(run: Path, average: str) -> list[SlotRecord]:
    """A run in which a quarter of the clients praise what one of them helped to train and damn the rest."""
    grid, workers = federation(N)
    playing = [0]

    def watch(message: Message) -> None:
        playing[0] = read_slot(message)[0]

    def praise(honest: float) -> float:
        return 1.0 if any((playing[0], 0) in workers[client].trained for client in GANG) else 0.0

    grid.before = watch
    for client in GANG:
        workers[client].opinion = praise
    directed(run, average=average, trim=0.25).start(grid, initial_arrays(), num_rounds=40 * L)
    return records(run)


def excess(row: SlotRecord) -> float:
    """By how much the reward lies outside the range of the honest opinions."""
    honest = [o for client, o in enumerate(row.opinions or ()) if client not in GANG and o is not None]
    assert row.reward is not None
    return max(row.reward - max(honest), min(honest) - row.reward)


def elections(rows: list[SlotRecord]) -> int:
    return sum(len(set(row.cohort) & set(GANG)) for row in rows)


@pytest.mark.parametrize("average", ["median", "trimmed"])
def test_a_colluding_minority_cannot_move_a_robust_average_out_of_the_honest_range(
    tmp_path: Path, average: str
) -> None:
    robust, naive = colluding(tmp_path / average, average), colluding(tmp_path / "mean", "mean")
    assert max(map(excess, robust)) <= 0.0
    assert max(map(excess, naive)) > 0.05
    assert elections(robust) < 0.5 * elections(naive)  # it is not elected for its own praise
