"""Clients of Flower's older API in memory, and its real Server and ClientManager."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.common import (
    Code,
    DisconnectRes,
    EvaluateIns,
    EvaluateRes,
    FitIns,
    FitRes,
    GetParametersIns,
    GetParametersRes,
    GetPropertiesIns,
    GetPropertiesRes,
    Parameters,
    ReconnectIns,
    Scalar,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server import History, Server, SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import Strategy

OK = Status(Code.OK, "")


def initial() -> Parameters:
    """The initial model."""
    return ndarrays_to_parameters([np.zeros(3), np.zeros((2, 2))])


@dataclass
class Trace:
    """What the clients were asked: (kind, client, config), in any order within a round."""

    asked: list[tuple[str, str, dict[str, Scalar]]] = field(default_factory=list)

    def of(self, kind: str) -> list[str]:
        """The clients asked for one kind of work."""
        return sorted(client for what, client, _ in self.asked if what == kind)


class Worker(ClientProxy):
    """A client: it adds 1 to every weight, and its accuracy grows with the model.

    Args:
        number: Its number, and its cid unless that is given.
        trace: Where it notes what it was asked.
    """

    def __init__(self, number: int, trace: Trace, cid: str | None = None) -> None:
        super().__init__(f"client-{number}" if cid is None else cid)
        self.node_id = number
        self.number = number
        self.trace = trace
        self.train: Callable[[FitIns], FitRes] = self._train
        self.metrics: dict[str, Scalar] = {}

    def _train(self, ins: FitIns) -> FitRes:
        model = [array + 1.0 for array in parameters_to_ndarrays(ins.parameters)]
        # FedAdam and its kind take weights, DP strategies a norm bit, XGBoost's nothing of it.
        metrics: dict[str, Scalar] = {"dpfedavg_norm_bit": True, "norm_bit": True, "where": f"site {self.number}"}
        return FitRes(OK, ndarrays_to_parameters(model), 10 + self.number, metrics)

    def fit(self, ins: FitIns, timeout: float | None, group_id: int | None) -> FitRes:
        """Train."""
        self.trace.asked.append(("fit", self.cid, dict(ins.config)))
        return self.train(ins)

    def evaluate(self, ins: EvaluateIns, timeout: float | None, group_id: int | None) -> EvaluateRes:
        """Evaluate: the accuracy is the first weight, up to 10."""
        self.trace.asked.append(("evaluate", self.cid, dict(ins.config)))
        return EvaluateRes(OK, 0.5, 20, {"accuracy": self._accuracy(ins.parameters), "where": "here", **self.metrics})

    def _accuracy(self, parameters: Parameters) -> float:
        if parameters.tensor_type != "numpy.ndarray":
            return 0.5
        return float(np.clip(parameters_to_ndarrays(parameters)[0][0] / 10.0, 0.0, 1.0))

    def get_properties(self, ins: GetPropertiesIns, timeout: float | None, group_id: int | None) -> GetPropertiesRes:
        """Its name."""
        return GetPropertiesRes(OK, {"client": f"site-{self.number}"})

    def get_parameters(self, ins: GetParametersIns, timeout: float | None, group_id: int | None) -> GetParametersRes:
        """An initial model."""
        return GetParametersRes(OK, initial())

    def reconnect(self, ins: ReconnectIns, timeout: float | None, group_id: int | None) -> DisconnectRes:
        """Nothing to do."""
        return DisconnectRes("")


def trees(ins: FitIns) -> FitRes:
    """One tree, in the shape in which XGBoost writes it as JSON."""
    model = {
        "gbtree_model_param": {"num_trees": "1", "num_parallel_tree": "1"},
        "iteration_indptr": [0, 1],
        "trees": [{"id": 0}],
        "tree_info": [0],
    }
    booster = json.dumps({"learner": {"gradient_booster": {"model": model}}}).encode()
    return FitRes(OK, Parameters([booster], ""), 10, {})


def make_clients(count: int) -> tuple[SimpleClientManager, list[Worker], Trace]:
    """A real ClientManager with `count` clients."""
    manager, trace = SimpleClientManager(), Trace()
    workers = [Worker(number, trace) for number in range(count)]
    register(manager, workers)
    return manager, workers, trace


def register(manager: SimpleClientManager, workers: Iterable[Worker]) -> None:
    """Connect clients."""
    for worker in workers:
        assert manager.register(worker)


def play(strategy: Strategy, manager: SimpleClientManager, rounds: int) -> tuple[Server, History]:
    """Play rounds with Flower's own loop of the older API."""
    server: Any = Server(client_manager=manager, strategy=strategy)
    history, _ = server.fit(num_rounds=rounds, timeout=None)
    return server, history
