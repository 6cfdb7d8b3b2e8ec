"""The inner strategy of a run: its own hooks, ours in their place while its `start` runs, its state."""

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

HOOKS = ("configure_train", "aggregate_train", "configure_evaluate", "aggregate_evaluate")
"""Methods of a strategy by which Flower's loop calls it."""


class Hooks(Protocol):
    """What stands in the place of a strategy's hooks."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the messages of a round of training."""

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Combine the updates."""

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the messages of a round of evaluation."""

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Combine the metrics."""


class InnerStrategy:
    """A strategy and the hooks it has of its own.

    Args:
        strategy: Any strategy of Flower's Message API, also one that wraps another (differential privacy does so).

    Attributes:
        strategy: As given.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.configure_train = strategy.configure_train
        self.aggregate_train = strategy.aggregate_train
        self.configure_evaluate = strategy.configure_evaluate
        self.aggregate_evaluate = strategy.aggregate_evaluate

    @property
    def name(self) -> str:
        """Its class."""
        return type(self.strategy).__name__

    def setting(self, name: str, default: Any) -> Any:
        """Return a public setting of Flower's strategies, also of one that is wrapped."""
        return read_setting(self.strategy, name, default)

    @contextlib.contextmanager
    def replace_hooks(self, hooks: Hooks) -> Iterator[None]:
        """Put other hooks in the place of its own, on the instance, while the block runs."""
        own = vars(self.strategy)
        before = {name: own[name] for name in HOOKS if name in own}
        own.update({name: getattr(hooks, name) for name in HOOKS})
        try:
            yield
        finally:
            for name in HOOKS:
                del own[name]
            own.update(before)

    @contextlib.contextmanager
    def choose_all(self) -> Iterator[None]:
        """Let the strategy take every node it is shown, whatever its fractions and minimums say.

        Those of training and evaluation alike: FedXgbCyclic evaluates by the numbers for training.
        """
        wanted: dict[str, float] = {f"fraction_{kind}": 1.0 for kind in ("train", "evaluate")}
        wanted |= {f"min_{kind}_nodes": 0 for kind in ("train", "evaluate", "available")}
        changed: list[tuple[dict[str, Any], str, Any, bool, Any]] = []
        for one in list_strategies(self.strategy):
            own = vars(one)
            for name, value in wanted.items():
                if hasattr(one, name):
                    changed.append((own, name, value, name in own, own.get(name)))
                    own[name] = value
        try:
            yield
        finally:
            for own, name, value, had, old in changed:
                if own.get(name) is not value:  # the strategy set it anew, on purpose
                    continue
                if had:
                    own[name] = old
                else:
                    del own[name]


def read_setting(strategy: object, name: str, default: Any) -> Any:
    """Return a public setting of a strategy, of either API, or of one that it wraps."""
    return next((getattr(one, name) for one in list_strategies(strategy) if hasattr(one, name)), default)


def list_strategies(strategy: object) -> Iterator[Any]:
    """Yield the strategy, and those that it wraps, also of the older API."""
    seen: set[int] = set()
    one: Any = strategy
    while hasattr(one, "aggregate_evaluate") and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = getattr(one, "strategy", None)


def remember_state(strategy: Strategy) -> Callable[[], None]:
    """Return a function that gives `strategy`, and strategies inside it, the attributes they have now, in place.

    It can be called again and again. The hooks that stand in the place of its own are left alone.

    Raises:
        Exception: Whatever an attribute raises that cannot be copied.
    """
    holders = list(list_strategies(strategy))
    memo = {id(one): one for one in holders}
    saved = [copy.deepcopy(_attributes(one), dict(memo)) for one in holders]

    def take_back() -> None:
        for one, attributes in zip(holders, saved, strict=True):
            own = vars(one)
            for name in _attributes(one).keys() - attributes.keys():
                del own[name]
            own.update(copy.deepcopy(attributes, dict(memo)))

    return take_back


def _attributes(strategy: Strategy) -> dict[str, Any]:
    """All attributes but hooks."""
    return {name: value for name, value in vars(strategy).items() if name not in HOOKS}
