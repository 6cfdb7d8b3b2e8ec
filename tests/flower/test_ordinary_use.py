"""What ordinary use on Flower must not do: fail in silence, favour who fails, throw training away."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays, quality

from fedelect.errors import ConfigurationError
from fedelect.flower import GoalDirected
from fedelect.flower.strategy import SUPPLIED
from fedelect.records import read_run
from fedelect.selectors import AbstractSelector, FixedCohort, RandomCohort, selector_classes

N, K = 10, 3


def rename(grid: FakeGrid, **names: str) -> None:
    """Let all nodes send metrics under other names; a name that is not among theirs is sent as 0.5."""
    for node in grid.nodes:

        def answer(message: Message, worker: Any = node.answer) -> RecordDict | Error | None:
            reply = worker(message)
            if message.metadata.message_type != "evaluate" or not isinstance(reply, RecordDict):
                return reply
            own = dict(reply["metrics"])
            metrics = {new: own.pop(old, 0.5) for new, old in names.items()}
            return RecordDict({"metrics": MetricRecord({"num-examples": 10, **metrics})})

        node.answer = answer


def directed(run: Path, **options: Any) -> GoalDirected:
    selector = options.pop("selector", None) or RandomCohort(clients=N, budget=K, seed=1)
    return GoalDirected(FedAvg(), selector=selector, run=run, wait_s=0.0, **options)


@pytest.mark.parametrize("name", ["accuracy", "eval_acc", "val-accuracy", "Test F1", "auc"])
def test_the_metric_that_is_plainly_the_opinion_is_taken(tmp_path: Path, name: str) -> None:
    grid, _ = federation(N)
    rename(grid, **{name: "accuracy", "eval_loss": "loss", "rounds": "seconds"})
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=2)
    assert [record.status for record in read_run(tmp_path / "run").records] == ["done", "done"]


@pytest.mark.parametrize(
    ("options", "names", "says"),
    [
        (
            {},
            {"goodness": "accuracy"},
            r"no metric is plainly it; they hold goodness, num-examples.*opinion=\"accuracy\"",
        ),
        ({}, {"acc": "accuracy", "f1": "other"}, "several metrics may be the opinion: acc, f1"),
        (
            {"opinion": "accuracy"},
            {"eval_acc": "accuracy"},
            "no evaluation reply holds .*'accuracy'.*hold eval_acc, num",
        ),
    ],
)
def test_a_metric_that_is_not_there_stops_the_run_after_the_first_survey(
    tmp_path: Path, options: dict[str, Any], names: dict[str, str], says: str
) -> None:
    grid, _ = federation(N)
    rename(grid, **names)
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", **options).start(grid, initial_arrays(), num_rounds=3)
    assert [message.metadata.message_type for message in grid.sent].count("train") == K


def test_warm_with_one_round_a_slot_is_the_default(tmp_path: Path) -> None:
    grid, _ = federation(N)
    cohort = FixedCohort(clients=N, cohort=[1, 2, 3])
    result = directed(tmp_path / "run", selector=cohort).start(grid, initial_arrays(), num_rounds=4)
    assert result.arrays["a"].numpy() == pytest.approx(4 * np.mean([quality(client) for client in (1, 2, 3)]))
    assert read_run(tmp_path / "run").header.scenario["start"] == "warm"


def test_the_result_of_a_cold_start_is_the_best_slots_model(tmp_path: Path) -> None:
    grid, _ = federation(N)
    options: dict[str, Any] = {"rounds_per_slot": 5, "start": "cold"}
    result = directed(tmp_path / "run", **options).start(grid, initial_arrays(), num_rounds=30)
    best = max(read_run(tmp_path / "run").records, key=lambda row: row.reward or 0.0)
    assert result.arrays["a"].numpy() == pytest.approx(5 * np.mean([quality(client) for client in best.cohort]))
    again = directed(tmp_path / "run", **options).start(grid, initial_arrays(), num_rounds=30)
    assert (again.arrays["a"].numpy() == result.arrays["a"].numpy()).all()


def fitting() -> dict[str, type[AbstractSelector]]:
    return {name: kind for name, kind in selector_classes().items() if kind.needs <= SUPPLIED and name != "fixed"}


@pytest.mark.parametrize("failing", [1, 3])
@pytest.mark.parametrize("name", fitting())
def test_clients_that_always_fail_get_less_than_their_fair_share_and_block_nothing(
    tmp_path: Path, name: str, failing: int
) -> None:
    grid, _ = federation(N)
    for node in grid.nodes:
        if int(node.name.removeprefix("site-")) < failing:
            node.answer = lambda message: Error(2, "broken")
    selector = fitting()[name](clients=N, budget=K, seed=2)
    directed(tmp_path / "run", selector=selector, quorum=0.5).start(grid, initial_arrays(), num_rounds=40)
    rows = read_run(tmp_path / "run").records
    assert len(rows) == 40
    elections = np.bincount([client for row in rows for client in row.cohort], minlength=N)
    assert elections[:failing].max() < 0.6 * 40 * K / N


@pytest.mark.parametrize("name", sorted(selector_classes().keys() - fitting().keys() - {"fixed", "bp-ucb", "bp-gp"}))
def test_what_flower_cannot_supply_is_said_in_the_constructor(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not supplied on Flower; choose a selector"):
        directed(tmp_path / "run", selector=selector_classes()[name](clients=N, budget=K, seed=1))  # type: ignore[call-arg]
    assert not (tmp_path / "run").exists()
