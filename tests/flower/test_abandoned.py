"""An abandoned slot leaves no trace in the model, nor in the inner strategy, whatever was sent in it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.flower.fake_grid import FakeGrid, Worker, federation, initial_arrays, quality
from tests.flower.test_failures import fixed, node
from tests.flower.test_goal_directed import L, N, directed, records

from fedelect.errors import RunError
from fedelect.flower import read_slot
from fedelect.flower.saves import strategy_state

LOST = 2  # the slot that is abandoned


def fails_in(grid: FakeGrid, client: int, worker: Worker, round_: int) -> None:
    """Let a client fail in one round of the slot that is to be abandoned."""

    def answer(message: Message) -> RecordDict | Error | None:
        here = read_slot(message) == (LOST, round_)
        return Error(2, "no") if message.metadata.message_type == "train" and here else worker(message)

    node(grid, client).answer = answer


@pytest.mark.parametrize("round_", range(L))
def test_an_abandoned_slot_leaves_model_and_strategy_of_a_warm_start_as_they_were(tmp_path: Path, round_: int) -> None:
    options: dict[str, Any] = {"selector": fixed(2, 3, 5), "train_quorum": 2, "start": "warm"}
    before = FedAdam(eta=0.5)
    expected = directed(tmp_path / "one", before, **options).start(federation(N)[0], initial_arrays(), num_rounds=L)
    grid, workers = federation(N)
    for client in (2, 3):
        fails_in(grid, client, workers[client], round_)
    after = FedAdam(eta=0.5)
    options["selector"] = fixed(2, 3, 5)
    result = directed(tmp_path / "two", after, **options).start(grid, initial_arrays(), num_rounds=2 * L)
    assert [row.status for row in records(tmp_path / "two")] == ["done", "abandoned"]
    assert (result.arrays["a"].numpy() == expected.arrays["a"].numpy()).all()
    assert strategy_state(after) == strategy_state(before)
    options["selector"] = fixed(2, 3, 5)
    again = directed(tmp_path / "two", FedAdam(eta=0.5), **options).start(grid, initial_arrays(), num_rounds=2 * L)
    assert (again.arrays["a"].numpy() == expected.arrays["a"].numpy()).all()  # what was saved is the same


def test_the_result_of_a_cold_start_is_the_model_of_the_last_slot_that_was_done(tmp_path: Path) -> None:
    grid, workers = federation(N)
    for client in (2, 3):
        fails_in(grid, client, workers[client], 1)
    strategy = directed(tmp_path / "run", selector=fixed(2, 3, 5), train_quorum=2)
    result = strategy.start(grid, initial_arrays(), num_rounds=2 * L)
    assert result.arrays["a"].numpy() == pytest.approx(L * np.mean([quality(client) for client in (2, 3, 5)]))


def test_too_few_opinions_leave_the_slot_unjudged_and_its_training_in_place(tmp_path: Path) -> None:
    grid, workers = federation(N)

    def silence(message: Message) -> None:
        for worker in workers[:8]:
            lost = read_slot(message)[0] == LOST
            worker.opinion = (lambda honest: math.nan) if lost else None

    grid.before = silence
    strategy = directed(tmp_path / "run", selector=fixed(2, 3, 5), start="warm")
    result = strategy.start(grid, initial_arrays(), num_rounds=3 * L)
    rows = records(tmp_path / "run")
    assert [row.status for row in rows] == ["done", "abandoned", "done"]
    moved = L * sum(np.mean([quality(client) for client in row.cohort]) for row in rows)
    assert result.arrays["a"].numpy() == pytest.approx(moved)


def sends(worker: Worker, value: float) -> Any:
    def answer(message: Message) -> RecordDict | Error | None:
        reply = worker(message)
        if message.metadata.message_type == "train" and isinstance(reply, RecordDict):
            arrays = reply["arrays"]
            assert isinstance(arrays, ArrayRecord)
            arrays["a"] = Array(np.array([0.0, value, 0.0]))
        return reply

    return answer


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_update_that_is_not_finite_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: float
) -> None:
    grid, workers = federation(N)
    node(grid, 3).answer = sends(workers[3], value)
    result = directed(tmp_path / "run", selector=fixed(2, 3, 5), start="warm").start(
        grid, initial_arrays(), num_rounds=L
    )
    assert records(tmp_path / "run")[0].arrivals == (L, 0, L)
    assert result.arrays["a"].numpy() == pytest.approx(L * np.mean([quality(2), quality(5)]))
    assert "no update of site-3: its update holds values that are not finite" in caplog.text


class Overflowing(FedAvg):
    """Combines finite updates to something infinite."""

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        arrays, metrics = super().aggregate_train(server_round, replies)
        assert arrays is not None
        arrays["a"] = Array(np.full(3, math.inf))
        return arrays, metrics


def test_a_model_that_is_not_finite_is_never_taken_over(tmp_path: Path) -> None:
    strategy = directed(tmp_path / "run", Overflowing(), start="warm", abandoned_allowed=0)
    with pytest.raises(RunError, match="combined to values that are not finite"):
        strategy.start(federation(N)[0], initial_arrays(), num_rounds=L)
    assert [row.status for row in records(tmp_path / "run")] == ["abandoned"]


class Uncopyable(FedAvg):
    """Counts what it has combined, and holds something that cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = (line for line in "ab")


def test_a_strategy_that_cannot_be_copied_keeps_its_state_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, workers = federation(N)
    for client in (2, 3):
        fails_in(grid, client, workers[client], 1)
    options: dict[str, Any] = {"selector": fixed(2, 3, 5), "train_quorum": 2, "start": "warm"}
    result = directed(tmp_path / "run", Uncopyable(), **options).start(grid, initial_arrays(), num_rounds=2 * L)
    assert result.arrays["a"].numpy() == pytest.approx(L * np.mean([quality(client) for client in (2, 3, 5)]))
    assert "goes on with what it made of the abandoned slot" in caplog.text
