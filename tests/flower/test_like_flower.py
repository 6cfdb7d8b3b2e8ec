"""What a user's strategy does works as without us: the same run on plain Flower is the reference.

Equality is claimed for a warm start, one round a slot, all clients elected and asked.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAdam, FedAvg, FedMedian, Result, Strategy
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays
from tests.flower.test_resume import Killed

from fedelect.errors import RunMismatchError
from fedelect.flower import GoalDirected
from fedelect.records import read_run
from fedelect.selectors import FixedCohort, RandomCohort

N, ROUNDS = 5, 6


class PlainGrid(FakeGrid):
    """A grid on which Flower's own loop can run."""

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        replies = self.pull_messages(list(self.push_messages(messages)))
        return sorted(replies, key=lambda reply: names_of(self)[reply.metadata.src_node_id])


def names_of(grid: FakeGrid) -> dict[int, str]:
    return {node.node_id: node.name for node in grid.nodes}


class Decaying(FedAvg):
    """Halves the learning rate in place, as tutorials do."""

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Any:
        config["lr"] = 0.5 * float(str(config["lr"]))
        return super().configure_train(server_round, arrays, config, grid)

    def configure_evaluate(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Any:
        config["seen"] = int(str(config.get("seen", 0))) + 1
        return super().configure_evaluate(server_round, arrays, config, grid)


class Saving(Decaying):
    """Overrides `start`: writes results and the best model to a folder, and stops counting rounds as Flower does."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.summaries = 0

    def summary(self) -> None:
        self.summaries += 1
        super().summary()

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Any = None,
        note: str = "",
    ) -> Result:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.summary()
        train_config, evaluate_config = train_config or ConfigRecord(), evaluate_config or ConfigRecord()
        result, arrays, best = Result(), initial_arrays, -1.0
        for number in range(1, num_rounds + 1):
            replies = grid.send_and_receive(self.configure_train(number, arrays, train_config, grid), timeout=timeout)
            combined, metrics = self.aggregate_train(number, replies)
            if combined is not None:
                result.arrays = arrays = combined
            if metrics is not None:
                result.train_metrics_clientapp[number] = metrics
            replies = grid.send_and_receive(
                self.configure_evaluate(number, arrays, evaluate_config, grid), timeout=timeout
            )
            judged = self.aggregate_evaluate(number, replies)
            if judged is not None:
                result.evaluate_metrics_clientapp[number] = judged
                if float(str(judged["accuracy"])) > best:
                    best = float(str(judged["accuracy"]))
                    (self.folder / "best.json").write_text(json.dumps([number, best, note]))
            line = json.dumps({"round": number, "judged": dict(judged or {})}) + "\n"
            with (self.folder / "rounds.jsonl").open("a") as file:
                file.write(line)
        return result


def everybody(strategy: Strategy, run: Path, **options: Any) -> GoalDirected:
    selector = FixedCohort(clients=N, cohort=list(range(N)))
    return GoalDirected(strategy, selector=selector, run=run, wait_s=0.0, **options)


def plain_federation() -> tuple[PlainGrid, list[Any]]:
    grid, workers = federation(N)
    return PlainGrid(grid.nodes), workers


def configs_sent(grid: FakeGrid) -> list[tuple[str, str, dict[str, Any]]]:
    """(type, receiver, config) of every message, sorted within a round."""
    names = names_of(grid)
    rows = [
        (
            int(str(message.content.config_records["config"]["server-round"])),
            message.metadata.message_type,
            names[message.metadata.dst_node_id],
            dict(message.content.config_records["config"]),
        )
        for message in grid.sent
    ]
    rows.sort(key=lambda row: (row[0], row[1] == "evaluate", row[2]))
    return [row[1:] for row in rows]


def frozen(grid: FakeGrid) -> FakeGrid:
    """Keep every config as it was when it was sent: strategies go on changing it in place."""
    sent = grid.sent

    def note(message: Message) -> None:
        content = RecordDict(dict(message.content))
        content["config"] = ConfigRecord(dict(message.content.config_records["config"]))
        sent[-1] = Message(
            content, dst_node_id=message.metadata.dst_node_id, message_type=message.metadata.message_type
        )

    grid.before = note
    return grid


def shown(result: Result) -> Any:
    """Everything a result holds, comparable."""
    metrics = (
        result.train_metrics_clientapp,
        result.evaluate_metrics_clientapp,
        result.evaluate_metrics_serverapp,
    )
    arrays = {name: array.numpy().tolist() for name, array in result.arrays.items()}
    return arrays, [{number: dict(record) for number, record in one.items()} for one in metrics]


def central(round_: int, arrays: ArrayRecord) -> MetricRecord | None:
    return MetricRecord({"sum": float(arrays["a"].numpy().sum()), "round": round_}) if round_ % 2 == 0 else None


@pytest.mark.parametrize(
    "make", [FedAvg, Decaying, FedMedian, lambda: FedAdam(eta=0.3)], ids=["avg", "lr", "m", "adam"]
)
def test_configs_metrics_and_model_are_plain_flowers(tmp_path: Path, make: Any) -> None:
    outcomes = []
    for wrap in (lambda strategy: strategy, lambda strategy: everybody(strategy, tmp_path / "run")):
        grid, _ = plain_federation()
        frozen(grid)
        result = wrap(make()).start(
            grid=grid,
            initial_arrays=initial_arrays(),
            num_rounds=ROUNDS,
            train_config=ConfigRecord({"lr": 0.4}),
            evaluate_config=ConfigRecord({"batch": 8}),
            evaluate_fn=central,
        )
        outcomes.append((configs_sent(grid), shown(result)))
    assert outcomes[0] == outcomes[1]
    lrs = [config["lr"] for kind, who, config in outcomes[1][0] if kind == "train" and who == "site-0"]
    assert lrs == ([0.4 * 0.5**number for number in range(1, ROUNDS + 1)] if make is Decaying else [0.4] * ROUNDS)


def test_an_overridden_start_runs_with_its_own_arguments_files_and_summary(tmp_path: Path) -> None:
    files, results = [], []
    for name in ("plain", "ours"):
        grid, _ = plain_federation()
        strategy = Saving(tmp_path / name)
        runs = strategy if name == "plain" else everybody(strategy, tmp_path / "run")
        options: Any = {"train_config": ConfigRecord({"lr": 0.4}), "note": "mine"}
        results.append(shown(runs.start(grid=grid, initial_arrays=initial_arrays(), num_rounds=ROUNDS, **options)))
        files.append([(tmp_path / name / file).read_text() for file in ("best.json", "rounds.jsonl")])
        assert strategy.summaries == 1
    assert files[0] == files[1] and results[0] == results[1]


def kill_at(grid: FakeGrid, round_: int) -> None:
    def kill(message: Message) -> None:
        if message.content.config_records["config"]["server-round"] == round_:
            raise Killed

    grid.before = kill


@pytest.mark.parametrize("round_", [1, 2, ROUNDS])
def test_after_a_resume_configs_go_on_and_the_result_is_whole(tmp_path: Path, round_: int) -> None:
    def start(run: str, grid: FakeGrid) -> Result:
        return everybody(Decaying(), tmp_path / run).start(
            grid,
            initial_arrays(),
            num_rounds=ROUNDS,
            train_config=ConfigRecord({"lr": 0.4}),
            evaluate_fn=central,
        )

    whole = shown(start("whole", federation(N)[0]))
    grid, _ = federation(N)
    kill_at(grid, round_)
    with pytest.raises(Killed):
        start("run", grid)
    grid, workers = federation(N)
    asked: list[int] = []

    def watched(number: int, arrays: ArrayRecord) -> MetricRecord | None:
        asked.append(number)
        return central(number, arrays)

    result = everybody(Decaying(), tmp_path / "run").start(
        grid, initial_arrays(), num_rounds=ROUNDS, train_config=ConfigRecord({"lr": 0.4}), evaluate_fn=watched
    )
    assert shown(result) == whole
    assert [config["server-round"] for config in workers[0].configs] == list(range(round_, ROUNDS + 1))
    assert workers[0].configs[-1]["lr"] == 0.4 * 0.5**ROUNDS
    # The last finished round was judged centrally after its save: that one alone is judged again.
    assert asked == [*([0] if round_ == 1 else [round_ - 1]), *range(round_, ROUNDS + 1)]
    again = start("run", PlainGrid([]))
    assert shown(again) == whole  # a finished run is handed back whole, without a message


def test_a_finished_run_can_be_given_more_rounds(tmp_path: Path) -> None:
    def start(run: str, rounds: int) -> Result:
        grid, _ = federation(N)
        return everybody(FedAdam(eta=0.3), tmp_path / run).start(grid, initial_arrays(), num_rounds=rounds)

    whole = start("whole", 9)
    start("run", 4)
    assert shown(start("run", 9)) == shown(whole)
    header = read_run(tmp_path / "run").header
    assert header.slots == 9 and len(read_run(tmp_path / "run").records) == 9
    with pytest.raises(RunMismatchError, match="slots: 9 -> 4"):
        start("run", 4)


def test_only_the_elected_train_whatever_the_strategy_samples(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid, workers = federation(N)
    strategy = FedAvg(fraction_train=0.2, min_train_nodes=1, min_available_nodes=1000)
    selector = RandomCohort(clients=N, budget=2, seed=1)
    caplog.set_level("INFO")
    GoalDirected(strategy, selector=selector, run=tmp_path / "run", wait_s=0.0).start(
        grid, initial_arrays(), num_rounds=ROUNDS
    )
    for row in read_run(tmp_path / "run").records:
        assert tuple(w.client for w in workers if (row.slot, 0) in w.trained) == row.cohort
    assert "configure_train: Sampled 2 nodes (out of 2)" in caplog.text
    assert (strategy.fraction_train, strategy.min_train_nodes, strategy.min_available_nodes) == (0.2, 1, 1000)
    assert not {"configure_train", "aggregate_train"} & vars(strategy).keys()  # its hooks are its own again


def test_a_strategy_sees_errors_as_on_plain_flower(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Watching(FedAvg):
        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            replies = list(replies)
            seen.append([reply.error.reason or "" for reply in replies if reply.has_error()])
            return super().aggregate_train(server_round, replies)

    grid, workers = federation(N)
    broken = next(node for node in grid.nodes if node.name == "site-1")
    broken.answer = lambda message: Error(2, "out of memory")
    poisoned = next(node for node in grid.nodes if node.name == "site-3")

    def poison(message: Message) -> Any:
        reply: Any = workers[3](message)
        if message.metadata.message_type == "train":
            reply["arrays"]["a"] = Array(np.full(3, np.nan))
        return reply

    poisoned.answer = poison
    everybody(Watching(), tmp_path / "run").start(grid, initial_arrays(), num_rounds=1)
    assert seen == [["out of memory", "its update holds values that are not finite"]]
    (row,) = read_run(tmp_path / "run").records
    assert row.failed == (1, 3)


class Stopping(FedAvg):
    """A `start` that never evaluates and ends early."""

    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, *args: Any, **given: Any) -> Result:
        arrays = initial_arrays
        for number in range(1, num_rounds):
            replies = grid.send_and_receive(self.configure_train(number, arrays, ConfigRecord(), grid), timeout=5.0)
            arrays = self.aggregate_train(number, replies)[0] or arrays
        return Result(arrays=arrays)


def test_a_start_that_never_evaluates_plays_slots_that_are_not_judged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    result = everybody(Stopping(), tmp_path / "run").start(grid, initial_arrays(), num_rounds=4)
    rows = read_run(tmp_path / "run").records
    assert [(row.slot, row.status, row.opinions) for row in rows] == [(slot, "done", None) for slot in (1, 2, 3)]
    assert result.arrays["a"].numpy().min() > 0.0
    assert "Stopping ended after 3 of 4 slots" in caplog.text


def test_a_start_that_sends_by_push_and_pull_is_served_too(tmp_path: Path) -> None:
    class Pushing(FedAvg):
        def start(
            self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, *args: Any, **given: Any
        ) -> Result:
            arrays, config = initial_arrays, ConfigRecord()
            for number in range(1, num_rounds + 1):
                ids = list(grid.push_messages(self.configure_train(number, arrays, config, grid)))
                arrays = self.aggregate_train(number, grid.pull_messages(ids))[0] or arrays
                ids = list(grid.push_messages(self.configure_evaluate(number, arrays, config, grid)))
                self.aggregate_evaluate(number, grid.pull_messages(ids))
            return Result(arrays=arrays)

    grid, _ = federation(N)
    everybody(Pushing(), tmp_path / "run").start(grid, initial_arrays(), num_rounds=3)
    rows = read_run(tmp_path / "run").records
    assert [(row.status, row.arrivals) for row in rows] == [("done", (1,) * N)] * 3
    assert all(row.opinions is not None and None not in row.opinions for row in rows)
