"""An app for Flower's simulation engine whose nodes report a region, and more of which train from slot 3."""

from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from fedelect.flower import GoalDirected, introduce

CLIENTS, SLOTS = 6, 4
REGIONS = ("us", "eu")


def budget(slot: int) -> int:
    return 1 if slot < 3 else 2


def main(folder: str) -> None:
    """Play the run, into `folder`."""
    app = ClientApp()
    introduce(
        app, properties=lambda context: {"region": "eu" if int(context.node_config["partition-id"]) % 2 else "us"}
    )

    @app.train()
    def train(message: Message, context: Context) -> Message:
        metrics = MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": message.content["arrays"], "metrics": metrics}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return Message(RecordDict({"metrics": MetricRecord({"accuracy": 0.5, "num-examples": 1})}), reply_to=message)

    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        strategy = GoalDirected(
            FedAvg(), budget=budget, run=Path(folder), available=lambda node: bool(node["region"] == "eu")
        )
        strategy.start(grid, ArrayRecord({"a": Array(np.zeros(3))}), num_rounds=SLOTS)

    run_simulation(server, app, CLIENTS, backend_config={"client_resources": {"num_cpus": 1}})
