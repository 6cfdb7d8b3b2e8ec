"""A federation on Flower with peers beside its clients, all in this process: real apps, mods, peers and sockets."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, FakeNode, Worker, federation, initial_arrays
from tests.flower.server_view import Fields, Received
from tests.runtime.control.controlled_peers import ControlledPeers
from tests.runtime.federation_kit import Place, make_federation, place

from fedelect.flower import ELECTION_ACTION, ElectionMod, PeerElected
from fedelect.records import read_run

L, CLIENTS, BUDGET = 2, 4, 2
WHERE = place(clients=CLIENTS, budget=BUDGET)
TRAINING: Fields = {
    "arrays": {name: f"float64 {shape} numpy.ndarray" for name, shape in (("a", [3]), ("b", [2, 2]))},
    "metrics": {"num-examples": int, "loss": float},
}


@dataclass
class WatchedGrid(FakeGrid):
    """A grid whose nodes answer each in a thread of its own, as SuperNodes do, and that notes all that the server gets.

    Contents go through Flower's own wire format, both ways.
    """

    received: list[Received] = field(default_factory=list)

    def _deliver(self, identifier: str, message: Message) -> None:
        content = recorddict_from_proto(recorddict_to_proto(message.content))
        twin = Message(content, metadata=message.metadata)  # type: ignore[call-overload]  # Flower's own way
        deliver = super()._deliver
        threading.Thread(target=lambda: deliver(identifier, twin), daemon=True).start()

    def pull_messages(self, message_ids: Any) -> list[Message]:
        pulled = super().pull_messages(message_ids)
        for message in pulled:
            kind = message.metadata.message_type
            self.received.append(
                Received(kind, b"", message.error.reason) if message.has_error() else Received.of(kind, message.content)
            )
        return pulled


@dataclass
class Federation:
    """All of it.

    Attributes:
        out: Its folder: `fed`, and `run` for the run.
        grid: Flower.
        workers: What trains and judges.
        peers: Who elects.
        said: By client, what its app last thought of a model; for apps that leak.
        where: Its graph.
        apps: By client, its app.
        answers: By client, what answers for it if it is honest.
    """

    out: Path
    grid: WatchedGrid
    workers: list[Worker]
    peers: ControlledPeers
    said: dict[int, float]
    where: Place
    apps: dict[int, ClientApp] = field(default_factory=dict)
    answers: dict[int, Callable[[Message], RecordDict]] = field(default_factory=dict)

    def strategy(self, **options: Any) -> PeerElected:
        usual: dict[str, Any] = {
            "rounds_per_slot": L,
            "run": self.out / "run",
            "wait_s": 5.0,
            "roster": self.out / "fed" / "server",
        }
        return PeerElected(FedAvg(), **(usual | options))

    def answer(self, client: int, change: Callable[[Message, RecordDict], Any]) -> None:
        """Let a node answer what `change` makes of its honest answer."""
        honest = self.answers[client]
        self.node(client).answer = lambda message: change(message, honest(message))

    def node(self, client: int) -> FakeNode:
        return next(node for node in self.grid.nodes if node.name == f"peer{client:02d}")


@contextmanager
def elective(
    out: Path, *, mods: Callable[[dict[int, float], int], list[Mod]] = lambda said, client: [], **settings: Any
) -> Iterator[Federation]:
    """Found a federation and start its peers; `mods` are the app's own, outside ours, from (opinions, client)."""
    where: Place = settings.pop("where", WHERE)
    _, folders = make_federation(out / "fed", where, **settings)
    grid, workers = federation(where.clients)
    watched = WatchedGrid(grid.nodes)
    peers = ControlledPeers(folders)
    made = Federation(out, watched, workers, peers, {}, where)
    try:
        for worker in workers:
            client = worker.client
            made.apps[client] = app_of(worker, made.said, mods(made.said, client))
            made.answers[client] = runner(made.apps[client], client, {"peer": str(folders[client])})
            next(node for node in watched.nodes if node.name == f"site-{client}").name = f"peer{client:02d}"
            made.node(client).answer = made.answers[client]
        yield made
    finally:
        peers.close()


def start(fed: Federation, slots: int, **options: Any) -> PeerElected:
    """Play slots of one round."""
    strategy = fed.strategy(**({"rounds_per_slot": 1} | options))
    strategy.start(fed.grid, initial_arrays(), num_rounds=slots, timeout=300)
    return strategy


def statuses(fed: Federation) -> list[str]:
    return [row.status for row in sorted(read_run(fed.out / "run").records, key=lambda row: row.slot)]


def app_of(worker: Worker, said: dict[int, float], mods: list[Mod]) -> ClientApp:
    """An ordinary app; nothing in it knows of elections but the one line with the mod."""
    app = ClientApp(mods=mods)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return Message(worker.train(message), reply_to=message)

    @app.evaluate(ELECTION_ACTION, mods=[ElectionMod()])
    def evaluate(message: Message, context: Context) -> Message:
        content = worker.evaluate(message)
        metrics = content["metrics"]
        assert isinstance(metrics, MetricRecord)
        said[worker.client] = float(str(metrics["accuracy"]))
        return Message(content, reply_to=message)

    return app


def runner(app: ClientApp, client: int, node_config: dict[str, Any]) -> Callable[[Message], RecordDict]:
    context = Context(run_id=1, node_id=client + 1, node_config=node_config, state=RecordDict(), run_config={})
    return lambda message: app(message, context).content
