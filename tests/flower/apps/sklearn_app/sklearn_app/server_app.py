"""The ServerApp: FedAvg aggregates, the recommended selector decides who trains."""

import joblib
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedelect.flower import GoalDirected
from sklearn_app.task import create_model, get_model_params, set_model_params

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and save the final model where the ServerApp runs."""
    config = context.run_config
    model = create_model(config["local-epochs"])
    strategy = GoalDirected(
        FedAvg(
            fraction_train=config["fraction-train"],
            fraction_evaluate=config["fraction-evaluate"],
            min_available_nodes=config["min-available-clients"],
        ),
        budget=config["budget"],
    )
    result = strategy.start(
        grid=grid, initial_arrays=ArrayRecord(get_model_params(model)), num_rounds=config["num-server-rounds"]
    )
    set_model_params(model, result.arrays.to_numpy_ndarrays())
    joblib.dump(model, "logreg_model.pkl")
