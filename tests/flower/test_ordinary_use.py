"""What ordinary use on Flower must not do: fail in silence, favour who fails, throw training away."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays, quality

from fedelect.errors import ConfigurationError
from fedelect.flower import GoalDirected, read_slot
from fedelect.flower.checks import SUPPLIED
from fedelect.records import read_run
from fedelect.selectors import AbstractSelector, FixedCohort, QuickInitUcb, RandomCohort, selector_classes

N, K = 10, 3


def rename(grid: FakeGrid, **names: str) -> None:
    """Let all nodes send metrics under other names; a name that is not among theirs is sent as 0.5."""
    for node in grid.nodes:

        def answer(message: Message, worker: Any = node.answer) -> RecordDict | Error | None:
            reply: RecordDict | Error | None = worker(message)
            if message.metadata.message_type != "evaluate" or not isinstance(reply, RecordDict):
                return reply
            own: dict[str, Any] = dict(reply["metrics"])
            metrics: dict[str, Any] = {new: own.pop(old, 0.5) for new, old in names.items()}
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


def score_model(model: ArrayRecord) -> float:
    return float(model["a"].numpy().mean())


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
    directed(tmp_path / "run", selector=selector, quorum=0.5, score=score_model).start(
        grid, initial_arrays(), num_rounds=40
    )
    rows = read_run(tmp_path / "run").records
    assert len(rows) == 40
    elections = np.bincount([client for row in rows for client in row.cohort], minlength=N)
    assert elections[:failing].max() < 0.6 * 40 * K / N


@pytest.mark.parametrize("name", sorted(selector_classes().keys() - fitting().keys() - {"fixed", "bp-ucb", "bp-gp"}))
def test_what_flower_cannot_supply_is_said_in_the_constructor(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not supplied on Flower; choose another selector"):
        directed(tmp_path / "run", selector=selector_classes()[name](clients=N, budget=K, seed=1))
    assert not (tmp_path / "run").exists()


def test_the_shortest_use_elects_among_the_nodes_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        grid, _ = federation(N)
        strategy = GoalDirected(FedAvg(), budget=K)
        result = strategy.start(grid, initial_arrays(), num_rounds=10)
        assert result.arrays["a"].numpy().min() > 0.0
        run = read_run(tmp_path / "fedelect-runs" / f"{number:03d}")
        header = run.header
        assert (header.clients, header.budget, header.slots) == (2 * N, K, 10)
        assert header.selectors[0].kind == "SoundCycle" and strategy.selector.clients == 2 * N
        counts = np.bincount([client for row in run.records for client in row.cohort], minlength=N)
        assert counts.tolist() == [3] * N  # everybody has its turn
        assert all(row.status == "done" for row in run.records)


def test_clients_may_join_up_to_the_capacity_and_a_resumed_run_keeps_their_numbers(tmp_path: Path) -> None:
    grid, _ = federation(N)
    everybody, grid.nodes = grid.nodes, grid.nodes[:6]

    def join(message: Message) -> None:
        if message.metadata.message_type == "train" and read_slot(message)[0] == 4:
            grid.nodes = everybody

    grid.before = join
    options: dict[str, Any] = {"budget": K, "run": tmp_path / "run", "wait_s": 0.0}
    GoalDirected(FedAvg(), **options).start(grid, initial_arrays(), num_rounds=12)
    records = read_run(tmp_path / "run").records
    assert read_run(tmp_path / "run").header.clients == 12
    assert max(client for row in records[:4] for client in row.cohort) < 6
    assert {client for row in records for client in row.cohort} == set(range(N))
    again = GoalDirected(FedAvg(), **options).start(grid, initial_arrays(), num_rounds=12)
    assert again.arrays["a"].numpy().min() > 0.0


def test_a_selector_or_a_budget_is_needed_and_not_both(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="give a selector, or `budget`"):
        GoalDirected(FedAvg(), run=tmp_path / "run")
    with pytest.raises(ConfigurationError, match="the selector's own"):
        directed(tmp_path / "run", budget=3)


def test_updates_as_bytes_of_any_length_reach_a_strategy_that_joins_them(tmp_path: Path) -> None:
    class Joining(FedAvg):
        """As FedXgbBagging does: what clients send is appended to the model."""

        lengths: ClassVar[list[int]] = []

        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            parts: list[Any] = [reply.content.array_records["arrays"]["0"].numpy() for reply in replies]
            self.lengths.append(len(parts))
            return ArrayRecord([np.concatenate(parts)]), None

    grid, _ = federation(N)
    for number, node in enumerate(grid.nodes):

        def answer(message: Message, size: int = 5 + number) -> RecordDict:
            if message.metadata.message_type == "evaluate":
                return RecordDict({"metrics": MetricRecord({"auc": 0.5, "num-examples": 3})})
            trees = ArrayRecord([np.full(size, 7, dtype=np.uint8)])
            return RecordDict({"arrays": trees, "metrics": MetricRecord({"num-examples": 3})})

        node.answer = answer
    strategy = GoalDirected(Joining(), budget=K, run=tmp_path / "run", wait_s=0.0)
    strategy.start(grid, ArrayRecord([np.zeros(0, dtype=np.uint8)]), num_rounds=4)
    assert Joining.lengths == [K] * 4


@pytest.mark.parametrize("weight", [1e308, float("nan"), -1, 0])
def test_a_weight_beyond_belief_is_refused_with_the_clients_name(
    tmp_path: Path, weight: float, caplog: pytest.LogCaptureFixture
) -> None:
    grid, _ = federation(N)
    node = next(node for node in grid.nodes if node.name == "site-2")

    def answer(message: Message, worker: Any = node.answer) -> Any:
        reply = worker(message)
        if message.metadata.message_type == "train":
            reply["metrics"]["num-examples"] = weight
        return reply

    node.answer = answer
    cohort = FixedCohort(clients=N, cohort=[1, 2, 3])
    with caplog.at_level("WARNING", logger="flwr"):
        result = directed(tmp_path / "run", selector=cohort).start(grid, initial_arrays(), num_rounds=1)
    assert result.arrays["a"].numpy() == pytest.approx(np.mean([quality(1), quality(3)]))
    assert "no update of site-2: its 'num-examples' is" in caplog.text


def test_clients_with_metrics_of_their_own_are_aggregated_all_the_same(tmp_path: Path) -> None:
    grid, _ = federation(N)
    node = next(node for node in grid.nodes if node.name == "site-2")

    def answer(message: Message, worker: Any = node.answer) -> Any:
        reply = worker(message)
        if message.metadata.message_type == "train":
            reply["metrics"]["extra"] = 1.0
        return reply

    node.answer = answer
    cohort = FixedCohort(clients=N, cohort=[1, 2, 3])
    result = directed(tmp_path / "run", selector=cohort).start(grid, initial_arrays(), num_rounds=1)
    assert result.arrays["a"].numpy() == pytest.approx(np.mean([quality(client) for client in (1, 2, 3)]))


def asked_in(grid: FakeGrid) -> dict[int, set[str]]:
    """By slot, the names of the nodes that were asked to evaluate."""
    names = {node.node_id: node.name for node in grid.nodes}
    asked: dict[int, set[str]] = {}
    for message in grid.sent:
        if message.metadata.message_type == "evaluate":
            slot, _ = read_slot(message)
            asked.setdefault(slot, set()).add(names[message.metadata.dst_node_id])
    return asked


@pytest.mark.parametrize(
    ("survey", "fraction", "size"), [(8, 1.0, 8), (0.25, 1.0, 15), (None, 0.2, 12), (None, 1.0, 50)]
)
def test_a_sample_drawn_anew_is_asked_and_the_elected_beside_it(
    tmp_path: Path, survey: Any, fraction: float, size: int
) -> None:
    grid, _ = federation(60)
    selector = QuickInitUcb(clients=60, budget=K, exploration=0.1, seed=1)
    strategy = GoalDirected(
        FedAvg(fraction_evaluate=fraction), selector=selector, run=tmp_path / "run", wait_s=0.0, survey=survey
    )
    strategy.start(grid, initial_arrays(), num_rounds=6)
    asked, rows = asked_in(grid), read_run(tmp_path / "run").records
    for row in rows:
        elected = {f"site-{client}" for client in row.cohort}
        assert elected <= asked[row.slot] and size <= len(asked[row.slot]) <= size + K
        assert row.opinions is not None and row.mean_opinion is not None
        assert {f"site-{n}" for n, opinion in enumerate(row.opinions) if opinion is not None} == asked[row.slot]
        everybody = [float(opinion) for opinion in row.opinions if opinion is not None]
        assert row.mean_opinion == pytest.approx(np.mean(everybody), abs=0.02)
    assert len({frozenset(one) for one in asked.values()}) == 6


def test_a_sampled_run_resumes_with_the_levels_it_has_learnt(tmp_path: Path) -> None:
    def run(folder: str, rounds: int) -> list[Any]:
        grid, _ = federation(N)
        selector = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
        options: dict[str, Any] = {"selector": selector, "survey": 4}
        seen = 0

        def stop(message: Message) -> None:
            nonlocal seen
            seen += message.metadata.message_type == "train"
            if seen > rounds * K:
                raise KeyboardInterrupt

        grid.before = stop
        with contextlib.suppress(KeyboardInterrupt):
            directed(tmp_path / folder, **options).start(grid, initial_arrays(), num_rounds=8)
        return [(row.slot, row.cohort, row.reward) for row in read_run(tmp_path / folder).records]

    whole = run("whole", 8)
    assert len(run("parts", 3)) == 3
    assert run("parts", 8) == whole and len(whole) == 8


def test_without_evaluation_a_selector_that_needs_none_plays_and_another_is_refused(tmp_path: Path) -> None:
    grid, _ = federation(N)
    silent = FedAvg(fraction_evaluate=0.0)
    GoalDirected(silent, budget=K, run=tmp_path / "run", wait_s=0.0).start(grid, initial_arrays(), num_rounds=3)
    rows = read_run(tmp_path / "run").records
    assert [row.status for row in rows] == ["done"] * 3 and asked_in(grid) == {}
    selector = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
    with pytest.raises(ConfigurationError, match="fraction_evaluate is 0; give survey="):
        GoalDirected(silent, selector=selector, run=tmp_path / "other")


@pytest.mark.parametrize("survey", [0, -1, 1.5, 0.0, True, "all"])
def test_a_survey_that_cannot_be_is_refused(tmp_path: Path, survey: Any) -> None:
    with pytest.raises(ConfigurationError, match="survey: got"):
        directed(tmp_path / "run", survey=survey)


def misfit(grid: FakeGrid, name: str, change: Any) -> None:
    """Let one node change its training replies."""
    node = next(node for node in grid.nodes if node.name == name)

    def answer(message: Message, worker: Any = node.answer) -> Any:
        reply = worker(message)
        if message.metadata.message_type == "train":
            change(reply)
        return reply

    node.answer = answer


@pytest.mark.parametrize("kind", ["shape", "no arrays", "other record"])
def test_a_model_with_counters_survives_a_client_whose_reply_does_not_fit(tmp_path: Path, kind: str) -> None:
    def change(reply: RecordDict) -> None:
        if kind == "shape":
            reply.array_records["arrays"]["a"] = Array(np.zeros(5))
        elif kind == "no arrays":
            del reply["arrays"]
        else:
            reply["numbers"] = reply["metrics"]
            del reply["metrics"]

    grid, _ = federation(N)
    for node in grid.nodes:  # as BatchNorm does, every client counts its batches
        misfit(grid, node.name, lambda reply: reply.array_records["arrays"].update(count=Array(np.array(3))))
    misfit(grid, "site-2", change)
    model = ArrayRecord({**initial_arrays(), "count": Array(np.array(0))})
    cohort = FixedCohort(clients=N, cohort=[1, 2, 3])
    result = directed(tmp_path / "run", selector=cohort).start(grid, model, num_rounds=1)
    sound = (1, 3) if kind != "other record" else (1, 2, 3)
    assert result.arrays["a"].numpy() == pytest.approx(np.mean([quality(client) for client in sound]))


def test_after_a_wrong_opinion_the_same_folder_can_be_tried_again(tmp_path: Path) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match="no evaluation reply holds"):
        directed(tmp_path / "run", opinion="acuracy").start(grid, initial_arrays(), num_rounds=2)
    directed(tmp_path / "run", opinion="accuracy").start(grid, initial_arrays(), num_rounds=2)
    assert read_run(tmp_path / "run").complete


def test_names_or_a_number_of_clients_are_the_capacity(tmp_path: Path) -> None:
    grid, _ = federation(N)
    names = [f"site-{client}" for client in range(N)]
    GoalDirected(FedAvg(), budget=K, names=names, run=tmp_path / "named", wait_s=0.0).start(
        grid, initial_arrays(), num_rounds=2
    )
    assert read_run(tmp_path / "named").header.client_names == tuple(names)
    strategy = GoalDirected(FedAvg(), budget=K, clients=5, run=tmp_path / "few", wait_s=0.0)
    strategy.start(grid, initial_arrays(), num_rounds=4)
    assert {client for row in read_run(tmp_path / "few").records for client in row.cohort} <= set(range(5))
    grid.nodes = []
    assert strategy.start(grid, initial_arrays(), num_rounds=4).arrays["a"].numpy().min() > 0.0  # it is finished
