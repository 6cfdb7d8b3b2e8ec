"""Our scenario, local training and named streams as a Flower app, simulated by Flower in this process.

    python -c "from tests.flower.same_streams import main; main('RUN_FOLDER')"

Run by a test in a process of its own, for Flower's engine starts Ray; imported, so that Ray's workers find it.
"""

import functools
import logging

import numpy as np
from examples.flower.elections.elections_app import work
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from fedelect.datasets import load_dataset
from fedelect.federation import initial_model
from fedelect.flower import GoalDirected, read_slot
from fedelect.scenario import DataConfig, ModelConfig, Scenario, ScenarioConfig, build_scenario
from fedelect.seeds import derive
from fedelect.selectors import QuickInitUcb

SEED, SLOTS, EXPLORATION = 11, 18, 1.0
CONFIG = ScenarioConfig(
    name="same streams",
    slots=SLOTS,
    rounds_per_slot=5,
    data=DataConfig(source="digits", samples=(20, 60)),
    model=ModelConfig(step=5e-4, epochs=2, batch=10, precision="float64"),
)


@functools.cache
def world() -> Scenario:
    return build_scenario(CONFIG, load_dataset("digits"))


client_app = ClientApp()


def model_of(message: Message) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    arrays = message.content["arrays"]
    assert isinstance(arrays, ArrayRecord)
    return arrays["model"].numpy()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    client, settings = int(context.node_config["partition-id"]), CONFIG.model
    slot, round_ = read_slot(message)
    inputs, labels = world().train_inputs[client], world().train_labels[client]
    model = work.train(
        model_of(message),
        inputs,
        labels,
        loss=settings.kind,
        step=settings.step,
        epochs=settings.epochs,
        batch=settings.batch,
        seed=SEED,
        slot=slot,
        round_=round_,
        client=client,
    )
    arrays, metrics = ArrayRecord({"model": Array(model)}), MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@client_app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    client = int(context.node_config["partition-id"])
    opinion = work.judge(model_of(message), world().test_inputs[client], world().test_labels[client])
    metrics = MetricRecord({"accuracy": opinion, "num-examples": len(world().test_labels[client])})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


def main(run: str) -> None:
    logging.getLogger("flwr").setLevel(logging.WARNING)
    server_app = ServerApp()

    @server_app.main()
    def serve(grid: Grid, context: Context) -> None:
        selector = QuickInitUcb(
            clients=CONFIG.clients, budget=CONFIG.budget, exploration=EXPLORATION, seed=derive(SEED, "selection", 0)
        )
        strategy = GoalDirected(
            FedAvg(), selector=selector, rounds_per_slot=CONFIG.rounds_per_slot, start="cold", run=run
        )
        arrays = ArrayRecord({"model": Array(initial_model(world()))})
        strategy.start(grid, arrays, num_rounds=SLOTS * CONFIG.rounds_per_slot, timeout=300)

    run_simulation(
        server_app,
        client_app,
        num_supernodes=CONFIG.clients,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2, "include_dashboard": False}},
    )
