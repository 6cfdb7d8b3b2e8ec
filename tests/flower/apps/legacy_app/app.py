"""An app of Flower's older API, played by one of its engines: `app.py ENGINE RUN [ADDRESS]`."""

import contextlib
import socket
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from flwr.client import ClientApp, NumPyClient, start_client
from flwr.client.mod import secaggplus_mod
from flwr.common import Context, GetPropertiesIns, ndarrays_to_parameters
from flwr.server import (
    LegacyContext,
    ServerApp,
    ServerAppComponents,
    ServerConfig,
    start_server,
)
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow

from fedelect.flower.legacy import GoalDirected
from fedelect.selectors import RoundRobin

CLIENTS, ROUNDS = 5, 4


class Client(NumPyClient):
    """Adds about 0.1 to the model; client 3 fails."""

    def __init__(self, number: int) -> None:
        self._number = number

    def get_properties(self, config: dict[str, Any]) -> dict[str, Any]:
        """Its name."""
        return {"client": f"site-{self._number}"}

    def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        """Train."""
        if self._number == 3:
            raise RuntimeError("no data here")
        return [array + 0.1 + 0.01 * self._number for array in parameters], 10, {"number": self._number}

    def evaluate(self, parameters: list[Any], config: dict[str, Any]) -> tuple[float, int, dict[str, Any]]:
        """Evaluate: the accuracy is the model's first weight."""
        return 1.0, 10, {"accuracy": float(np.clip(parameters[0][0], 0.0, 1.0))}


def make_client(context: Context) -> Any:
    """A client of the simulation engines."""
    return Client(int(context.node_config["partition-id"])).to_client()


class Watching(FedAvg):
    """FedAvg, which prints how many different updates it was given."""

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        """Combine."""
        print("different updates:", len({result.parameters.tensors[0] for _, result in results}), flush=True)
        print("seen:", sorted((result.num_examples, *result.metrics.values()) for _, result in results), flush=True)
        return super().aggregate_fit(server_round, results, failures)


def make_strategy(run: Path, identity: Any = "auto") -> GoalDirected:
    """FedAvg, with three of five clients in turn."""
    inner = Watching(initial_parameters=ndarrays_to_parameters([np.zeros(4)]), min_available_clients=CLIENTS)
    selector = RoundRobin(clients=CLIENTS, budget=3, seed=1)
    return GoalDirected(
        inner,
        selector=selector,
        run=run,
        identity=identity,
        wait_s=120.0,
        on_slot=lambda record: print("slot", record.slot, flush=True),
    )


def ask_name(proxy: ClientProxy) -> str:
    """The name that a client of `start_server` gives."""
    return str(proxy.get_properties(GetPropertiesIns({}), timeout=30.0, group_id=None).properties["client"])


def simulate(run: Path) -> None:
    """`start_simulation`."""
    from flwr.simulation import start_simulation

    start_simulation(
        client_fn=make_client,
        num_clients=CLIENTS,
        config=ServerConfig(num_rounds=ROUNDS),
        strategy=make_strategy(run),
        ray_init_args={"num_cpus": 2, "include_dashboard": False},
    )


def run_server_app(run: Path) -> None:
    """A ServerApp made by a function."""
    from flwr.simulation import run_simulation

    def components(context: Context) -> ServerAppComponents:
        return ServerAppComponents(strategy=make_strategy(run), config=ServerConfig(num_rounds=ROUNDS))

    run_simulation(ServerApp(server_fn=components), ClientApp(client_fn=make_client), CLIENTS)


def aggregate_securely(run: Path, threshold: str) -> None:
    """SecAgg+: of updates the server sees sums only. It breaks off if fewer than this share of the members are left."""
    from flwr.simulation import run_simulation

    app = ServerApp()

    @app.main()
    def main(grid: Any, context: Context) -> None:
        legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=ROUNDS), strategy=make_strategy(run))
        DefaultWorkflow(fit_workflow=SecAggPlusWorkflow(1.0, float(threshold)))(grid, legacy)

    run_simulation(app, ClientApp(client_fn=make_client, mods=[secaggplus_mod]), CLIENTS)


def serve(run: Path, address: str) -> None:
    """`start_server`."""
    start_server(server_address=address, config=ServerConfig(num_rounds=ROUNDS), strategy=make_strategy(run, ask_name))


def connect(number: str, address: str) -> None:
    """A client of `start_server`, which does not try again if nobody listens yet."""
    host, port = address.split(":")
    for _ in range(600):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host, int(port))):
            break
        time.sleep(0.2)
    start_client(server_address=address, client=Client(int(number)).to_client(), insecure=True)


if __name__ == "__main__":
    engine, where, *more = sys.argv[1:]
    if engine == "client":
        connect(where, *more)
    else:
        {"simulation": simulate, "app": run_server_app, "secure": aggregate_securely, "server": serve}[engine](
            Path(where), *more
        )
