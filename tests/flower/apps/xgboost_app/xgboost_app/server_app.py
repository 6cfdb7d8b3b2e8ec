"""The ServerApp: trees are bagged, or one client at a time adds its own; the recommended selector decides who."""

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedXgbBagging, FedXgbCyclic

from fedelect.flower import GoalDirected
from xgboost_app.task import unpack

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and save the final model where the ServerApp runs."""
    config = context.run_config
    kind = FedXgbBagging if config["train-method"] == "bagging" else FedXgbCyclic
    strategy = GoalDirected(kind(fraction_evaluate=config["fraction-evaluate"]), budget=config["budget"])
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord([np.frombuffer(b"", dtype=np.uint8)]),
        num_rounds=config["num-server-rounds"],
    )
    unpack(result.arrays).save_model("final_model.json")
