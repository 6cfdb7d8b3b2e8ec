"""Flower's simulation engine (Ray): the server a loop over Flower's Grid, clients in lean NumPy or a PyTorch loop.

The simulation is started once and serves all slots, so that its start (some ten seconds) is in no time. Flower hands
out messages every tenth of a second, one for each node; a server that trains several slots at once shares that wait, so
that is measured too.
"""

import os

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import logging
import queue
import threading
import time
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, final

import numpy as np
from benchmarks.contenders.ours import train_lean
from benchmarks.contenders.work import Visit, Work, build_world, mean_opinion, signs, with_ones
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from numpy.typing import NDArray

_shares: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}  # of the actor's own process


@cache
def _module(work: Work, threads: int = 1) -> Any:
    from benchmarks.contenders.plain_module import PlainModule

    return PlainModule(build_world(work), threads)


def _train(work: Work, message: Any) -> Any:
    client = int(message.content["config"]["client"])
    start = message.content["arrays"]["model"].numpy()
    model = _train_module(work, start, client) if work.module else _train_linear(work, start, client)
    metrics = MetricRecord({"num-examples": work.samples})
    return Message(RecordDict({"arrays": _record(model), "metrics": metrics}), reply_to=message)


def _train_linear(work: Work, start: NDArray[Any], client: int) -> NDArray[Any]:
    world = build_world(work)
    if client not in _shares:
        _shares[client] = with_ones(world.train_inputs[client]), signs(world.train_labels[client])
    return train_lean(start, *_shares[client], world.config, np.random.default_rng(client))


def _train_module(work: Work, start: NDArray[Any], client: int) -> NDArray[Any]:
    import torch

    trained: NDArray[Any] = _module(work).train_client(torch.tensor(start), client).numpy()
    return trained


def _record(model: NDArray[Any]) -> Any:
    return ArrayRecord({"model": Array(np.ascontiguousarray(model, dtype=np.float32))})


@final
class Flower:
    """One simulation that waits for slots to train.

    Args:
        work: What a slot is.
        threads: How many actors Ray may run, one core each.
        together: How many slots the server trains at once; each has nodes of its own.
    """

    versions = f"flwr {version('flwr')}, ray {version('ray')}"

    def __init__(self, work: Work, threads: int, *, together: int = 1) -> None:
        self._world, self._work, self._threads = build_world(work), work, threads
        self._together = together
        self._nodes = work.budget * together
        self._asked: queue.Queue[Sequence[Visit]] = queue.Queue()
        self._answered: queue.Queue[list[NDArray[Any]] | BaseException] = queue.Queue()
        logging.getLogger("flwr").setLevel(logging.ERROR)
        client_app = ClientApp()
        client_app.train()(lambda message, context: _train(work, message))
        server_app = ServerApp()
        server_app.main()(lambda grid, context: self._serve(grid))
        settings = {
            "init_args": {"address": "local", "num_cpus": threads, "include_dashboard": False, "log_to_driver": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0},
        }
        arguments = {"num_supernodes": self._nodes, "backend_config": settings}
        threading.Thread(target=self._simulate, args=(server_app, client_app), kwargs=arguments, daemon=True).start()

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """As many slots at once as `together` says."""
        opinions = []
        for first in range(0, len(visits), self._together):
            self._asked.put(visits[first : first + self._together])
            models = self._answered.get()
            if isinstance(models, BaseException):
                raise RuntimeError("the simulation failed") from models
            opinions += [self._opinion(model) for model in models]
        return opinions

    def _first(self) -> NDArray[Any]:
        if not self._work.module:
            return np.zeros((785, 10), dtype=np.float32)
        first: NDArray[Any] = _module(self._work, self._threads).first.numpy()
        return first

    def _opinion(self, model: NDArray[Any]) -> float:
        if not self._work.module:
            return mean_opinion(self._world, model)
        import torch

        return float(_module(self._work, self._threads).survey(torch.tensor(model)))

    def _simulate(self, *apps: Any, **settings: Any) -> None:
        try:
            run_simulation(*apps, **settings)
        except BaseException as error:
            self._answered.put(error)

    def _serve(self, grid: Any) -> None:
        try:
            while len(nodes := sorted(grid.get_node_ids())) < self._nodes:
                time.sleep(0.1)
            while True:
                self._answered.put(self._slots(grid, nodes, self._asked.get()))
        except BaseException as error:
            self._answered.put(error)
            raise

    def _slots(self, grid: Any, nodes: list[int], visits: Sequence[Visit]) -> list[NDArray[Any]]:
        models = [self._first() for _ in visits]
        places = [(number, client) for number, visit in enumerate(visits) for client in visit.cohort]
        for _ in range(self._world.config.rounds_per_slot):
            records = [_record(model) for model in models]
            messages = [
                Message(
                    RecordDict({"arrays": records[number], "config": ConfigRecord({"client": client})}),
                    dst_node_id=node,
                    message_type=MessageType.TRAIN,
                    group_id=str(number),
                )
                for (number, client), node in zip(places, nodes, strict=False)
            ]
            slot_of = dict(zip(nodes, (number for number, _ in places), strict=False))
            uploads: list[list[NDArray[Any]]] = [[] for _ in visits]
            for reply in grid.send_and_receive(messages):
                if reply.has_error():
                    raise RuntimeError(f"a client failed: {reply.error.reason}")
                uploads[slot_of[reply.metadata.src_node_id]].append(reply.content["arrays"]["model"].numpy())
            models = [np.mean(own, axis=0) for own in uploads]
        return models
