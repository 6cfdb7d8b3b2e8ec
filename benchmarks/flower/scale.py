"""What GoalDirected costs in a large federation: seconds a round beside FedAvg with as many messages.

    python benchmarks/flower/scale.py [--nodes 500 2000] [--rounds 8] [--repeats 4] [--profile]

Flower's simulation engine with N nodes and a client that does nothing: it returns the model it was sent, and an
accuracy. In each round 10 clients train and about 50 evaluate: GoalDirected asks a sample of 40, and the 10 elected
beside it; FedAvg samples 10 and 50 at random. Both play on one grid in one process, in turns of a few rounds, so that
whatever else the machine does strikes both alike. The first round of a turn is left out. Beside the time by the clock,
the table has the CPU time of the server's own thread. That hardly depends on other load and on how often a strategy
looks for replies. Target: at most 1.15 times the seconds of FedAvg. With --profile a table of where the server's thread
spends its time follows.
"""

import argparse
import cProfile
import importlib
import io
import itertools
import logging
import pstats
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict

in_a_process: Any = importlib.import_module("overhead").in_a_process  # beside this script

K, ASKED, TARGET = 10, 40, 1.15
KINDS = ("FedAvg", "GoalDirected(FedAvg)")


def train(message: Message, context: Context) -> Message:
    metrics = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": message.content["arrays"], "metrics": metrics}), reply_to=message)


def evaluate(message: Message, context: Context) -> Message:
    accuracy = int(context.node_config["partition-id"]) / int(context.node_config["num-partitions"])
    metrics = MetricRecord({"accuracy": accuracy, "num-examples": 1})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


def measure(nodes: int, rounds: int, repeats: int, profile: bool) -> dict[str, Any]:
    """For each kind, [seconds, CPU seconds of the server's thread] of every round but the first of a turn.

    With `profile` also the table of the profiler, under "profile".
    """
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    from fedelect.flower import GoalDirected

    logging.getLogger("flwr").setLevel(logging.ERROR)
    client_app = ClientApp()
    client_app.train()(train)
    client_app.evaluate()(evaluate)
    ends: list[tuple[float, float]] = []

    class Noting(FedAvg):
        def aggregate_evaluate(self, *args: Any) -> Any:
            metrics = super().aggregate_evaluate(*args)
            ends.append((time.perf_counter(), time.thread_time()))
            return metrics

    server_app = ServerApp()
    found: dict[str, Any] = {kind: [] for kind in KINDS} | {"profile": ""}

    @server_app.main()
    def serve(grid: Grid, context: Context) -> None:
        arrays = ArrayRecord([np.zeros((10, 10))])
        profiles = {kind: cProfile.Profile() for kind in KINDS}
        with tempfile.TemporaryDirectory() as folder:
            for repeat, kind in itertools.product(range(repeats), KINDS):
                ends.clear()
                if kind == "FedAvg":
                    strategy: Any = Noting(fraction_train=K / nodes, fraction_evaluate=(ASKED + K) / nodes)
                else:
                    run = Path(folder) / f"run-{repeat}"
                    strategy = GoalDirected(Noting(), budget=K, survey=ASKED, seed=repeat, run=run)
                if profile:
                    profiles[kind].enable()
                strategy.start(grid, arrays, num_rounds=rounds + 1)
                profiles[kind].disable()
                found[kind] += [[b - a for a, b in zip(*pair, strict=True)] for pair in itertools.pairwise(ends)]
        text = io.StringIO()
        for kind in KINDS if profile else ():
            text.write(f"\n{kind}, N = {nodes}: {repeats * (rounds + 1)} rounds\n")
            pstats.Stats(profiles[kind], stream=text).sort_stats("cumulative").print_stats(45)
        found["profile"] = text.getvalue()

    resources: Any = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2, "include_dashboard": False}}
    run_simulation(server_app, client_app, num_supernodes=nodes, backend_config=resources)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    print(f"{given.repeats} turns of {given.rounds} rounds each, K = {K}, {ASKED} asked and the elected beside them\n")
    print("| N | strategy | seconds a round: median | middle half | times FedAvg | CPU of the server's thread |")
    print("| --- | --- | --- | --- | --- | --- |")
    for nodes in given.nodes:
        found = in_a_process(f"scale.measure({nodes}, {given.rounds}, {given.repeats}, {given.profile})")
        usual = statistics.median(seconds for seconds, _ in found["FedAvg"])
        for kind in KINDS:
            low, middle, high = statistics.quantiles([seconds for seconds, _ in found[kind]], n=4)
            cpu = statistics.median(cpu for _, cpu in found[kind])
            ratio = f"{middle / usual:.2f}"
            print(f"| {nodes} | {kind} | {middle:.3f} | {low:.3f} to {high:.3f} | {ratio} | {1000 * cpu:.0f} ms |")
        print(found["profile"], end="")


if __name__ == "__main__":
    main()
