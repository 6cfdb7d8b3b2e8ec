"""The ServerApp: FedAvg aggregates, Quick-Init UCB decides who trains."""

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits_app import task
from fedelect.flower import GoalDirected
from fedelect.selectors import QuickInitUcb

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the federation, or go on with it."""
    config = context.run_config
    strategy = GoalDirected(
        FedAvg(),
        # To compare cohorts, start cold. In a warm start `budget=5` alone, which gives equal turns, does as well.
        selector=QuickInitUcb(
            clients=config["clients"], budget=config["budget"], exploration=config["exploration"], seed=config["seed"]
        ),
        rounds_per_slot=config["rounds-per-slot"],
        opinion="accuracy",
        run=config["run-folder"],
        start=config["start"],
        wait_s=config["wait"],
    )
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(task.initial_model()),
        num_rounds=config["rounds-per-slot"] * config["slots"],
        timeout=config["timeout"],
    )
