"""Apps shaped as Flower's own, in memory: their ClientApps answer on a grid that is a fake, their code is real."""

import copy
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from tests.flower.engine_kit import APPS
from tests.flower.fake_grid import FakeNode, take_identity
from tests.flower.test_like_flower import PlainGrid

MODULES = {"PyTorch": "pytorch_app", "scikit-learn": "sklearn_app", "XGBoost": "xgboost_app"}
NEEDED = {"PyTorch": "torch", "scikit-learn": "sklearn", "XGBoost": "xgboost"}
RUN_CONFIG: dict[str, Any] = {"local-epochs": 1, "batch-size": 32, "training-log": "", "train-method": "bagging"}


def import_part(library: str, part: str) -> Any:
    """Import `client_app` or `task` of the app in this library."""
    name = MODULES[library]
    folder = str(APPS / name)
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(f"{name}.{part}")


def make_app(library: str, *, app_mods: Sequence[Any] = (), train_mods: Sequence[Any] = ()) -> ClientApp:
    """Make the app's ClientApp, with mods on all of it or on `train`."""
    functions = import_part(library, "client_app")
    app = ClientApp(mods=list(app_mods))
    app.train(mods=list(train_mods))(functions.train)
    app.evaluate()(functions.evaluate)
    return app


def first_model(library: str) -> ArrayRecord:
    """The model that the app's ServerApp starts with."""
    if library == "XGBoost":
        return ArrayRecord([np.frombuffer(b"", dtype=np.uint8)])
    task = import_part(library, "task")
    if library == "PyTorch":
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        torch.manual_seed(0)
        return ArrayRecord(task.Net().state_dict())
    return ArrayRecord(task.get_model_params(task.create_model(1)))


def app_grid(app: ClientApp, nodes: int, **config: Any) -> PlainGrid:
    """A grid whose nodes run `app`; plain Flower runs on it, too."""
    take_identity()
    answers = [_answer_with(app, number, nodes, RUN_CONFIG | config) for number in range(nodes)]
    return PlainGrid([FakeNode(100 - 7 * n, name=f"site-{n}", answer=answer) for n, answer in enumerate(answers)])


def _answer_with(app: ClientApp, number: int, nodes: int, config: dict[str, Any]) -> Callable[[Message], Any]:
    state = RecordDict()

    def answer(message: Message) -> RecordDict | Error:
        context = Context(1, number, {"partition-id": number, "num-partitions": nodes}, state, config)
        own = copy.copy(message)  # a real grid copies, too
        own.__dict__["_content"] = copy.deepcopy(message.content)
        reply = app(own, context)
        return reply.error if reply.has_error() else reply.content

    return answer
