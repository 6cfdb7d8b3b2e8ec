"""What GoalDirected costs: time for each slot beside bare FedAvg, on Flower's simulation engine.

    python benchmarks/flower/overhead.py [--slots 20] [--repeats 3]

The digits app of examples/flower with N = 20, K = 5 and 5 rounds a slot, after which all 20 evaluate. Bare FedAvg
samples 5 of 20 at random in each round and evaluates in every fifth. Both run in processes of their own, in turn. The
first two slots, in which Ray starts, are left out. Time in our own methods is the slot's time without what is spent
in Flower's grid, in the inner strategy and asleep while clients work. Prints a Markdown table.
"""

import argparse
import importlib
import itertools
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict

ROOT = Path(__file__).parents[2]
N, K, L, LEFT_OUT = 20, 5, 5, 2


def train(message: Message, context: Context) -> Message:
    """As the example's client does."""
    task = importlib.import_module("digits_app.task")
    inputs, labels, _, _ = task.load_share(int(context.node_config["partition-id"]), N)
    arrays = message.content["arrays"]
    assert isinstance(arrays, ArrayRecord)
    model = task.train(arrays.to_numpy_ndarrays(), inputs, labels, epochs=3, step=0.5)
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord(model), "metrics": metrics}), reply_to=message)


def evaluate(message: Message, context: Context) -> Message:
    """As the example's client does."""
    task = importlib.import_module("digits_app.task")
    _, _, inputs, labels = task.load_share(int(context.node_config["partition-id"]), N)
    arrays = message.content["arrays"]
    assert isinstance(arrays, ArrayRecord)
    score = task.accuracy(arrays.to_numpy_ndarrays(), inputs, labels)
    metrics = MetricRecord({"accuracy": score, "num-examples": len(labels)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


def measure(kind: str, slots: int) -> list[dict[str, float]]:
    """For each slot its seconds and, of these, those in our own methods."""
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    task = importlib.import_module("digits_app.task")
    client_app = ClientApp()
    client_app.train()(train)
    client_app.evaluate()(evaluate)
    elsewhere = [0.0]
    ends: list[tuple[float, float]] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                elsewhere[0] += time.perf_counter() - begun

        return call

    class Bare(FedAvg):
        def configure_evaluate(self, server_round: int, *args: Any) -> Iterable[Any]:
            return super().configure_evaluate(server_round, *args) if server_round % L == 0 else []

        def aggregate_evaluate(self, server_round: int, replies: Any) -> Any:
            metrics = super().aggregate_evaluate(server_round, replies)
            if server_round % L == 0:
                ends.append((time.perf_counter(), 0.0))
            return metrics

    class Timed(FedAvg):
        configure_train = timed(FedAvg.configure_train)
        aggregate_train = timed(FedAvg.aggregate_train)
        configure_evaluate = timed(FedAvg.configure_evaluate)
        aggregate_evaluate = timed(FedAvg.aggregate_evaluate)

    server_app = ServerApp()

    @server_app.main()
    def serve(grid: Grid, context: Context) -> None:
        arrays = ArrayRecord(task.initial_model())
        ends.append((time.perf_counter(), elsewhere[0]))
        if kind == "FedAvg":
            Bare(fraction_train=K / N).start(grid, arrays, num_rounds=slots * L)
            return
        from fedelect.flower import GoalDirected
        from fedelect.flower.run_loop import RunLoop
        from fedelect.selectors import QuickInitUcb

        exchange = importlib.import_module("fedelect.flower.exchange")
        exchange.time = _Clock(time.monotonic, timed(time.sleep))  # type: ignore[attr-defined]
        for name in ("push_messages", "pull_messages", "get_nodes", "get_node_ids"):
            setattr(grid, name, timed(getattr(grid, name)))
        close = RunLoop._close_slot

        def close_slot(self: RunLoop) -> None:
            played = self._open is not None
            close(self)
            if played:
                ends.append((time.perf_counter(), elsewhere[0]))

        RunLoop._close_slot = close_slot  # type: ignore[method-assign]
        with tempfile.TemporaryDirectory() as folder:
            selector = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
            strategy = GoalDirected(
                Timed(), selector=selector, rounds_per_slot=L, start="cold", run=Path(folder) / "run"
            )
            strategy.start(grid, arrays, num_rounds=slots * L)

    resources: Any = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2, "include_dashboard": False}}
    run_simulation(server_app, client_app, num_supernodes=N, backend_config=resources)
    return [
        {"seconds": end - begin, "own": end - begin - (out - out_before)}
        for (begin, out_before), (end, out) in itertools.pairwise(ends)
    ][LEFT_OUT:]


class _Clock:
    def __init__(self, monotonic: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.monotonic, self.sleep = monotonic, sleep


def in_a_process(call: str) -> Any:
    """Return the result of `module.function(...)` of this folder, in a process with a Flower home of its own."""
    code = f"import json, {call.partition('.')[0]}; result = {call}; print('RESULT', json.dumps(result))"
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "benchmarks/flower", "examples/flower"))
    with tempfile.TemporaryDirectory() as home:
        quiet = {"FLWR_HOME": home, "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | quiet
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=1800
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(lines[0].removeprefix("RESULT "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    rows: dict[str, list[dict[str, float]]] = {"FedAvg": [], "GoalDirected(FedAvg)": []}
    for _ in range(given.repeats):
        for kind in rows:
            rows[kind] += in_a_process(f"overhead.measure({kind!r}, {given.slots + LEFT_OUT})")
    print(f"\n{given.repeats} runs of {given.slots} slots each, N = {N}, K = {K}, {L} rounds a slot\n")
    print("| strategy | seconds a slot: median | middle half | in our own methods: median | share of the slot |")
    print("| --- | --- | --- | --- | --- |")
    for kind, slots in rows.items():
        seconds = sorted(row["seconds"] for row in slots)
        low, middle, high = statistics.quantiles(seconds, n=4)
        own, share = "", ""
        if kind != "FedAvg":
            own = f"{1000 * statistics.median(row['own'] for row in slots):.1f} ms"
            share = f"{100 * sum(row['own'] for row in slots) / sum(seconds):.2f} %"
        print(f"| {kind} | {middle:.3f} | {low:.3f} to {high:.3f} | {own} | {share} |")


if __name__ == "__main__":
    main()
