"""A grid in memory: nodes that are functions, and every way in which they can fail."""

import importlib
import importlib.util
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from fedelect.flower import read_slot

Answer = Callable[[Message], RecordDict | Error | None]
"""What a node makes of a message; None is silence."""

NODE_UNAVAILABLE = 5
SUPERLINK = 1


@dataclass
class FakeNode:
    """A node: its registration, and what it answers."""

    node_id: int
    name: str = ""
    key: bytes = b""
    answer: Answer = lambda message: Error(2, "not set")
    registered: str = "2026-01-01T00:00:00+00:00"
    heartbeat: float = 30.0

    @property
    def info(self) -> Any:
        """What `Grid.get_nodes` shows of it."""
        return SimpleNamespace(
            node_id=self.node_id,
            name=self.name,
            public_key=self.key,
            registered_at=self.registered,
            last_activated_at="",
            heartbeat_interval=self.heartbeat,
        )


@dataclass
class FakeGrid(Grid):
    """A grid whose nodes answer at once. `refuse` is asked whether a message cannot be pushed.

    Attributes:
        nodes: Those that are connected.
        before: Called with each message before it is delivered; may change `nodes`.
        refuse: Whether the SuperLink takes a message.
        leave_gaps: Whether refused messages have "" in the list of ids, or are left out of it.
        sent: All messages pushed.
    """

    nodes: list[FakeNode]
    before: Callable[[Message], None] = lambda message: None
    refuse: Callable[[Message], bool] = lambda message: False
    leave_gaps: bool = True
    sent: list[Message] = field(default_factory=list)
    _replies: dict[str, Message] = field(default_factory=dict)
    _ids: Iterable[int] = field(default_factory=lambda: itertools.count(1))

    def get_node_ids(self) -> list[int]:
        return [node.node_id for node in self.nodes]

    def get_nodes(self) -> list[Any]:
        return [node.info for node in self.nodes]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for message in messages:
            if self.refuse(message):
                ids += [""] if self.leave_gaps else []
                continue
            identifier = f"m{next(iter(self._ids))}"
            message.metadata.__dict__["_message_id"] = identifier  # as Flower's own grids do
            ids.append(identifier)
            self.sent.append(message)
            self._deliver(identifier, message)
        return ids

    def _deliver(self, identifier: str, message: Message) -> None:
        self.before(message)
        node = next((node for node in self.nodes if node.node_id == message.metadata.dst_node_id), None)
        if node is None:  # the SuperLink answers for a node that is lost
            reply = Message(Error(NODE_UNAVAILABLE, "Node Unavailable"), reply_to=message)
            reply.metadata.__dict__["_src_node_id"] = SUPERLINK
            self._replies[identifier] = reply
            return
        try:
            answer = node.answer(message)
        except Exception as error:
            answer = Error(2, f"Traceback:\n  some line\n{type(error).__name__}: {error}")
        if answer is not None:
            self._replies[identifier] = Message(answer, reply_to=message)

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        # Last in, first out: nobody may rely on the order in which replies come.
        return [
            self._replies.pop(identifier) for identifier in reversed(list(message_ids)) if identifier in self._replies
        ]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        raise AssertionError("not used: it hides who did not answer")

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise AssertionError("deprecated in Flower")

    def set_run(self, run: object) -> None:
        raise AssertionError

    @property
    def run(self) -> Any:
        raise AssertionError


MODEL = {"a": np.zeros(3), "b": np.zeros((2, 2))}


def initial_arrays() -> ArrayRecord:
    return ArrayRecord({name: Array(value) for name, value in MODEL.items()})


def quality(client: int) -> float:
    """How good a model gets when this client trains alone, in [0, 1]; the best are 3, 7 and 11."""
    return 0.9 if client % 4 == 3 else 0.2 + 0.02 * client


class Worker:
    """An ordinary client: moves the model by its own quality, and judges a model by what is in it.

    Attributes:
        client: Its number.
        trained: Every (slot, round) it trained in.
        configs: Every config it got.
        opinion: What it says of a model, if not its honest opinion.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self.trained: list[tuple[int, int]] = []
        self.configs: list[dict[str, object]] = []
        self.opinion: Callable[[float], Any] | None = None

    def __call__(self, message: Message) -> RecordDict | Error | None:
        kind = message.metadata.message_type
        if kind == "train":
            return self.train(message)
        if kind == "evaluate":
            return self.evaluate(message)
        return Error(2, f"ValueError: No {kind} function registered")

    def train(self, message: Message) -> RecordDict:
        config = message.content["config"]
        assert isinstance(config, ConfigRecord)
        self.configs.append(dict(config))
        if "fedelect-slot" in message.content:  # not on plain Flower
            self.trained.append(read_slot(message))
        arrays = message.content["arrays"]
        assert isinstance(arrays, ArrayRecord)
        moved = [np.asarray(array + quality(self.client)) for array in arrays.to_numpy_ndarrays()]
        update = ArrayRecord({name: Array(value) for name, value in zip(arrays, moved, strict=True)})
        return RecordDict({"arrays": update, "metrics": MetricRecord({"num-examples": 10, "loss": 0.5})})

    def evaluate(self, message: Message) -> RecordDict:
        arrays = message.content["arrays"]
        assert isinstance(arrays, ArrayRecord)
        honest = float(np.clip(arrays.to_numpy_ndarrays()[0].mean() / 10, 0, 1)) * (1 - 0.001 * self.client)
        said: Any = honest if self.opinion is None else self.opinion(honest)
        return RecordDict({"metrics": MetricRecord({"accuracy": said, "loss": 1.0 - honest, "num-examples": 20})})


def take_identity() -> None:
    """Let this process send messages: a ServerApp has its identity from Flower. Older versions know none."""
    name = "flwr.supercore.task_identity"
    if importlib.util.find_spec(name) is not None:
        identity = importlib.import_module(name).TaskIdentity
        identity.task_id = identity.run_id = identity.node_id = 1


def federation(clients: int) -> tuple[FakeGrid, list[Worker]]:
    """A grid of `clients` registered nodes, and what runs on them."""
    take_identity()
    workers = [Worker(client) for client in range(clients)]
    # Node ids in no order: nothing may depend on them.
    nodes = [
        FakeNode(node_id=(7919 * (client + 3)) % 1009 + 10, name=f"site-{client}", answer=worker)
        for client, worker in enumerate(workers)
    ]
    return FakeGrid(nodes[::-1]), workers
