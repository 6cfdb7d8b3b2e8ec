"""The adapter over a grid in memory: who is asked, what is learnt, what is recorded."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, MetricRecord
from flwr.server.strategy import FedAvg as OldFedAvg
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedMedian,
    FedProx,
    Krum,
    Strategy,
)
from tests.flower.fake_grid import federation, initial_arrays, quality

from fedelect.errors import ConfigurationError, NoElection, RunMismatchError
from fedelect.flower import GoalDirected
from fedelect.records import SlotRecord, read_run, summarise
from fedelect.selectors import AbstractSelector, BpUcb, FixedCohort, QuickInitUcb
from fedelect.vocabulary import Feedback

N, K, L = 12, 3, 5


def directed(run: Path, strategy: Strategy | None = None, **options: Any) -> GoalDirected:
    selector = options.pop("selector", None) or QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
    options = {"rounds_per_slot": L, "wait_s": 0.0} | options
    options.setdefault("start", "cold" if options["rounds_per_slot"] >= L else "warm")
    return GoalDirected(strategy or FedAvg(), selector=selector, run=run, **options)


def records(run: Path) -> list[SlotRecord]:
    return sorted(read_run(run).records, key=lambda record: record.slot)


def test_the_elected_clients_train_and_everybody_gives_an_opinion(tmp_path: Path) -> None:
    grid, workers = federation(N)
    result = directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=6 * L)
    rows = records(tmp_path / "run")
    assert [row.slot for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        who = {worker.client for worker in workers if (row.slot, 0) in worker.trained}
        assert tuple(sorted(who)) == row.cohort and row.arrivals == (L,) * K and row.rounds == L
        # The mean of the members' moves, L times, is the model; a tenth of it, less a bit for each client, the opinion.
        model = L * np.mean([quality(client) for client in row.cohort])
        expected = [model / 10 * (1 - 0.001 * client) for client in range(N)]
        assert row.opinions == pytest.approx(expected, abs=1e-12)
        assert row.reward == pytest.approx(np.mean(expected), abs=1e-12)
    assert [kind.metadata.message_type for kind in grid.sent].count("evaluate") == 6 * N
    assert result.arrays["a"].numpy() == pytest.approx(L * np.mean([quality(c) for c in rows[-1].cohort]))
    assert sorted(result.train_metrics_clientapp) == list(range(1, 6 * L + 1))
    assert sorted(result.evaluate_metrics_clientapp) == [L * slot for slot in range(1, 7)]


def test_the_choices_are_the_selectors(tmp_path: Path) -> None:
    grid, _ = federation(N)
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=30 * L)
    selector = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
    for row in records(tmp_path / "run"):
        selection = selector.ask()
        assert (selection.cohort, selection.indices) == (row.cohort, row.indices)
        assert row.opinions is not None
        selector.tell(selection, Feedback(opinions=[float(o) for o in row.opinions if o is not None]))


def test_a_run_is_shown_as_any_other(tmp_path: Path) -> None:
    grid, _ = federation(N)
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=4 * L)
    run = read_run(tmp_path / "run")
    assert run.header.source == "flower" and run.header.framework == "fa" and run.complete
    assert run.header.client_names == tuple(f"site-{client}" for client in range(N))
    (row,) = summarise(run)
    assert row.label == "quick-init-ucb" and row.done == 4 and row.upload_failures.mean == 0.0


class Doubling(FedAvg):
    """A user's own strategy, with a setting in the config and something of its own after aggregation."""

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: Any, grid: Grid) -> Any:
        config["mine"] = 7
        assert len(list(grid.get_node_ids())) == K
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round: int, replies: Any) -> tuple[ArrayRecord | None, MetricRecord | None]:
        arrays, metrics = super().aggregate_train(server_round, replies)
        assert arrays is not None
        return ArrayRecord({name: Array(2 * array.numpy()) for name, array in arrays.items()}), metrics


@pytest.mark.parametrize(
    ("strategy", "moved"),
    [
        (FedAvg(), lambda qualities: np.mean(qualities)),
        (FedAvg(fraction_train=0.1, fraction_evaluate=0.0), lambda qualities: np.mean(qualities)),
        (FedAvg(fraction_train=0.0), lambda qualities: np.mean(qualities)),
        (FedAvg(min_train_nodes=7, min_available_nodes=40, min_evaluate_nodes=50), lambda q: np.mean(q)),
        (FedProx(proximal_mu=0.3), lambda qualities: np.mean(qualities)),
        (FedMedian(), lambda qualities: np.median(qualities)),
        (Krum(num_malicious_nodes=0), None),
        (FedAdam(eta=0.1), None),
        (DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1e-9, 1e3, K), lambda qualities: np.mean(qualities)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_strategy_aggregates_what_the_elected_send(tmp_path: Path, strategy: Strategy, moved: Any) -> None:
    grid, _ = federation(N)
    options = {"rounds_per_slot": 1, "selector": FixedCohort(clients=N, cohort=[2, 3, 5])}
    result = directed(tmp_path / "run", strategy, **options).start(grid, initial_arrays(), num_rounds=1)
    qualities = [quality(client) for client in (2, 3, 5)]
    (value,) = set(np.round(result.arrays["a"].numpy(), 5).tolist())
    if moved is not None:
        assert value == pytest.approx(moved(qualities), abs=1e-5)
    elif isinstance(strategy, Krum):
        assert value in [pytest.approx(one) for one in qualities]
    else:
        assert value > 0
    assert [row.arrivals for row in records(tmp_path / "run")] == [(1, 1, 1)]


def test_a_users_subclass_sees_the_elected_and_its_config_arrives(tmp_path: Path) -> None:
    grid, workers = federation(N)
    cohort = FixedCohort(clients=N, cohort=[0, 4, 9])
    result = directed(tmp_path / "run", Doubling(), selector=cohort).start(grid, initial_arrays(), num_rounds=L)
    mean = np.mean([quality(client) for client in (0, 4, 9)])
    assert result.arrays["a"].numpy() == pytest.approx(62 * mean)  # 2 (2 (... (2 mean) + mean ...) + mean)
    assert workers[4].configs[0]["mine"] == 7 and workers[4].configs[0]["server-round"] == 1


def test_a_cold_start_counts_rounds_from_one_in_each_slot_and_a_warm_one_counts_on(tmp_path: Path) -> None:
    counted = {}
    for start in ("cold", "warm"):
        grid, workers = federation(N)
        cohort = FixedCohort(clients=N, cohort=[1, 2, 3])
        directed(tmp_path / start, selector=cohort, start=start).start(grid, initial_arrays(), num_rounds=3 * L)
        counted[start] = [config["server-round"] for config in workers[1].configs]
        rewards = [row.mean_opinion for row in records(tmp_path / start)]
        assert (rewards[0] == rewards[1] == rewards[2]) == (start == "cold")
    assert counted == {"cold": [*range(1, L + 1)] * 3, "warm": [*range(1, 3 * L + 1)]}


def test_an_optimiser_on_the_server_starts_fresh_in_each_cold_slot(tmp_path: Path) -> None:
    rewards = {}
    for start in ("cold", "warm"):
        grid, _ = federation(N)
        strategy = directed(
            tmp_path / start, FedAdam(eta=0.5), selector=FixedCohort(clients=N, cohort=[3, 7, 11]), start=start
        )
        strategy.start(grid, initial_arrays(), num_rounds=3 * L)
        rewards[start] = [row.mean_opinion for row in records(tmp_path / start)]
    assert rewards["cold"][0] == rewards["cold"][1] == rewards["cold"][2] == rewards["warm"][0]
    assert rewards["warm"][0] != rewards["warm"][1]


def test_replies_reach_the_strategy_in_order_of_client_whatever_their_order_of_arrival(tmp_path: Path) -> None:
    seen: list[list[int]] = []

    class Watching(FedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            replies = list(replies)
            seen.append([reply.metadata.src_node_id for reply in replies])
            return super().aggregate_train(server_round, replies)

    grid, _ = federation(N)
    names = {node.node_id: int(node.name.removeprefix("site-")) for node in grid.nodes}
    directed(tmp_path / "run", Watching()).start(grid, initial_arrays(), num_rounds=8 * L)
    assert all([names[node] for node in one] == sorted(names[node] for node in one) and len(one) == K for one in seen)


def test_central_evaluation_sees_every_round(tmp_path: Path) -> None:
    grid, _ = federation(N)
    seen = []

    def central(round_: int, arrays: ArrayRecord) -> MetricRecord:
        seen.append(round_)
        return MetricRecord({"size": float(arrays["a"].numpy().sum())})

    result = directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=2 * L, evaluate_fn=central)
    assert seen == [*range(2 * L + 1)] and sorted(result.evaluate_metrics_serverapp) == seen


def test_an_opinion_may_be_a_function_of_the_reply(tmp_path: Path) -> None:
    grid, _ = federation(N)
    strategy = directed(tmp_path / "run", opinion=lambda reply: 1.0 - float(reply["metrics"]["accuracy"]))
    strategy.start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.opinions is not None and row.opinions[0] is not None
    assert row.opinions[0] == pytest.approx(1 - L * np.mean([quality(c) for c in row.cohort]) / 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quorum": 0.0}, "quorum"),
        ({"quorum": 1.5}, "quorum"),
        ({"train_quorum": 4}, "train_quorum: got 4; a cohort has 3"),
        ({"train_quorum": 0}, "train_quorum"),
        ({"rounds_per_slot": 0}, "rounds_per_slot"),
        ({"start": "tepid"}, 'allowed: "cold" or "warm"'),
        ({"start": "cold", "rounds_per_slot": 4}, "fewer than 5 rounds get nowhere; use start='warm'"),
        ({"average": "mode"}, "average"),
        ({"trim": 0.5}, "trim"),
        ({"wait_s": -1.0}, "wait_s"),
        ({"abandoned_allowed": -1}, "abandoned_allowed"),
        ({"identity": "face"}, "identity"),
        ({"opinion": 3}, "opinion"),
        ({"opinion": ""}, "opinion"),
        ({"names": ["a", "b"]}, "2 names for 12 clients"),
        ({"selector": "quick"}, "selector"),
        ({"selector": BpUcb(clients=N, budget=K, exploration=0.1, seed=1)}, "the clients' beliefs, .*PeerElected"),
        ({"strategy": "FedAvg"}, "strategy: got str; allowed: a strategy of flwr.serverapp.strategy"),
        (
            {"strategy": OldFedAvg()},
            "got FedAvg of the older flwr.server.strategy; .*fedelect.flower.legacy.GoalDirected",
        ),
        ({"survey_every": 0}, "survey_every: got 0"),
        ({"loss": ""}, "loss: got ''"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        directed(tmp_path / "run", **options)


def test_a_number_of_rounds_that_is_no_whole_number_of_slots_is_refused(tmp_path: Path) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match=r"multiple of rounds_per_slot \(5\)"):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=7)
    assert not (tmp_path / "run").exists()


def test_a_selector_that_was_used_before_is_refused(tmp_path: Path) -> None:
    selector = QuickInitUcb(clients=N, budget=K, seed=1)
    selector.ask()
    with pytest.raises(ConfigurationError, match="used before"):
        directed(tmp_path / "run", selector=selector).start(federation(N)[0], initial_arrays(), num_rounds=L)


def test_a_strategy_that_sends_nothing_is_refused(tmp_path: Path) -> None:
    class Silent(FedAvg):
        def configure_train(self, server_round: int, arrays: ArrayRecord, config: Any, grid: Grid) -> list[Message]:
            return []

    with pytest.raises(ConfigurationError, match=r"Silent\.configure_train returns no messages"):
        directed(tmp_path / "run", Silent()).start(federation(N)[0], initial_arrays(), num_rounds=L)
    assert not (tmp_path / "run").exists()


def test_a_strategy_that_waits_for_ever_is_told_so(tmp_path: Path) -> None:
    class Patient(FedAvg):
        def configure_train(self, server_round: int, arrays: ArrayRecord, config: Any, grid: Grid) -> list[Message]:
            while len(list(grid.get_node_ids())) < N:
                pass
            return []

    with pytest.raises(ConfigurationError, match="waits for more than the 3 nodes"):
        directed(tmp_path / "run", Patient()).start(federation(N)[0], initial_arrays(), num_rounds=L)


def test_a_strategy_that_cannot_be_copied_is_refused_a_cold_start(tmp_path: Path) -> None:
    class Locked(FedAvg):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(ConfigurationError, match=r"cannot be copied: cannot pickle '_thread.lock'"):
        directed(tmp_path / "run", Locked())
    directed(tmp_path / "run", Locked(), start="warm")


def test_the_hooks_of_the_outer_strategy_say_that_it_plays_its_own_slots(tmp_path: Path) -> None:
    strategy = directed(tmp_path / "run")
    with pytest.raises(ConfigurationError, match="wrap the inner one"):
        strategy.aggregate_train(1, [])


def test_another_configuration_does_not_take_up_the_folder(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=L)
    with pytest.raises(RunMismatchError, match=r"scenario.strategy: 'FedAvg' -> 'FedMedian'"):
        directed(tmp_path / "run", FedMedian()).start(federation(N)[0], initial_arrays(), num_rounds=L)


class Undecided(AbstractSelector):
    """Nobody is elected in the second slot."""

    def __init__(self) -> None:
        super().__init__(clients=N, budget=1)

    def _choose(self, slot: int, available: Any) -> Any:
        if slot == 2:
            raise NoElection("the clients did not agree")
        return (slot,), ()


def test_a_slot_without_an_election_is_on_record_as_skipped(tmp_path: Path) -> None:
    grid, _ = federation(N)
    directed(tmp_path / "run", selector=Undecided()).start(grid, initial_arrays(), num_rounds=3 * L)
    assert [(row.status, row.cohort) for row in records(tmp_path / "run")] == [
        ("done", (1,)),
        ("skipped", ()),
        ("done", (3,)),
    ]
