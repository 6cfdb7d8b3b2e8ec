"""A strategy of Flower's older API in the shape of one of the Message API, so that both have one loop.

Models and metrics are copied into messages, which the loop checks and reads. Instructions and results travel beside
them as they are, so that the older strategy gets exactly what its clients sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.common import EvaluateIns, EvaluateRes, FitIns, FitRes, Parameters, Scalar, bytes_to_ndarray
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import Strategy as LegacyStrategy
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedelect.errors import ConfigurationError
from fedelect.flower.legacy_clients import ChosenClients, ProxyDirectory, make_message, make_reply

Instructions = FitIns | EvaluateIns
Result = FitRes | EvaluateRes
Failure = tuple[ClientProxy, Any] | BaseException

WEIGHT, LOSS = "num-examples", "loss"
"""Metrics under which the loop finds a result's number of examples and its loss."""

_NUMPY = "numpy.ndarray"


def to_arrays(parameters: Parameters) -> ArrayRecord:
    """Return parameters as arrays "0", "1" and so on; bytes that are no arrays stay bytes.

    Raises:
        ConfigurationError: They are something else.
    """
    if not isinstance(parameters, Parameters):
        raise ConfigurationError(
            f"a model is a {type(parameters).__name__} and cannot be read; have clients and strategy give "
            f"flwr.common.Parameters"
        )
    return ArrayRecord({str(place): _array(parameters, data) for place, data in enumerate(parameters.tensors)})


def _array(parameters: Parameters, data: bytes) -> Array:
    if parameters.tensor_type == _NUMPY:
        try:
            array = bytes_to_ndarray(data)
            return Array(str(array.dtype), tuple(array.shape), _NUMPY, data)
        except Exception:  # damaged bytes: an array that does not fit, which the loop refuses
            return Array("", (), _NUMPY, data)
    return Array("", (), parameters.tensor_type, data)


def list_numbers(metrics: Mapping[str, Scalar]) -> dict[str, int | float]:
    """Return the metrics that are numbers."""
    found = {name: value.item() if hasattr(value, "item") else value for name, value in metrics.items()}
    return {
        name: value for name, value in found.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


class Exchange:
    """Instructions to clients and their results, in one round of training or evaluation.

    Args:
        directory: The clients.

    Attributes:
        metrics: What the older strategy made of the last training's metrics.
        evaluated: What it made of the last evaluation: a loss, or None, and metrics.
    """

    def __init__(self, directory: ProxyDirectory) -> None:
        self.directory = directory
        self.metrics: dict[str, Scalar] = {}
        self.evaluated: tuple[float | None, dict[str, Scalar]] = None, {}
        self._instructions: dict[int, tuple[RecordDict, Instructions]] = {}  # by id of the message's content
        self._sent: dict[int, Message] = {}  # by number of the client
        self._results: dict[int, tuple[Message, tuple[ClientProxy, Any]]] = {}  # by id of the reply
        self._failures: list[Failure] = []
        self._models: list[tuple[ArrayRecord, Parameters]] = []  # the last two: before and after a training

    def __deepcopy__(self, memo: object) -> "Exchange":
        """Return itself: it is no state of the strategy."""
        return self

    def hold(self, parameters: Parameters) -> ArrayRecord:
        """Return parameters as arrays, and remember which they are."""
        arrays = to_arrays(parameters)
        self._models = [*self._models[-1:], (arrays, parameters)]
        return arrays

    def release(self, arrays: ArrayRecord) -> Parameters:
        """Return the parameters that these arrays were made of, as they were."""
        return next(parameters for own, parameters in self._models if own is arrays)

    def make_messages(self, wanted: Iterable[tuple[ClientProxy, Instructions]], message_type: str) -> list[Message]:
        """Return messages that stand for instructions; clients with the same instructions share their content."""
        self._instructions = {}
        contents: dict[int, RecordDict] = {}
        messages = []
        for proxy, own in wanted:
            content = contents.setdefault(id(own), RecordDict())
            self._instructions[id(content)] = content, own
            messages.append(make_message(content, self.directory.number(proxy), message_type))
        return messages

    def send(self, messages: Iterable[Message]) -> list[tuple[ClientProxy, Any]]:
        """Return the instructions that messages stand for, as Flower's older loop sends them."""
        self._sent = {message.metadata.dst_node_id: message for message in messages}
        self._results, self._failures = {}, []
        return [
            (self.directory.proxy(number), self._instructions[id(message.content)][1])
            for number, message in self._sent.items()
        ]

    def receive(self, results: Sequence[tuple[ClientProxy, Any]], failures: Sequence[Failure]) -> list[Message]:
        """Return results as replies to the messages, and an error for each client without a result."""
        self._failures = list(failures)
        replies = {}
        for proxy, result in results:
            number = self.directory.number(proxy)
            replies[number] = reply = make_reply(number, _to_content(result))
            self._results[id(reply)] = reply, (proxy, result)
        named = {self.directory.number(one[0]): one[1].status.message for one in failures if isinstance(one, tuple)}
        others = {f"{type(one).__name__}: {one}" for one in failures if isinstance(one, BaseException)}
        for number in self._sent.keys() - replies.keys():
            why = named.get(number) or "; ".join(sorted(others)) or "no answer"
            replies[number] = make_reply(number, Error(_FAILED, why))
        return list(replies.values())

    def give(self, replies: Iterable[Message]) -> tuple[list[tuple[ClientProxy, Any]], list[Any]]:
        """Return the results behind replies, and the failures that Flower reported."""
        own = [self._results[id(reply)][1] for reply in replies if id(reply) in self._results]
        return own, list(self._failures)

    def list_refused(self, given: Iterable[tuple[ClientProxy, Any]]) -> list[tuple[ClientProxy, Any]]:
        """Return the results that are not among those given."""
        kept = {id(result) for _, result in given}
        return [own for _, own in self._results.values() if id(own[1]) not in kept]


_FAILED = 2  # Flower's code for an exception in a client


def _to_content(result: Result) -> RecordDict:
    if isinstance(result, FitRes):
        metrics = list_numbers({WEIGHT: result.num_examples})  # the rest is for the strategy alone
        return RecordDict({"arrays": to_arrays(result.parameters), "metrics": MetricRecord(dict(metrics))})
    told = {LOSS: result.loss, **result.metrics, WEIGHT: result.num_examples}
    return RecordDict({"metrics": MetricRecord(dict(list_numbers(told)))})


class LegacyAdapter(Strategy):
    """A strategy of the older API as one of the Message API. It is shown the chosen clients only.

    Args:
        strategy: The older one.
        exchange: Instructions and results.
    """

    weighted_by_key = WEIGHT

    def __init__(self, strategy: LegacyStrategy, exchange: Exchange) -> None:
        self.strategy = strategy
        self._exchange = exchange

    @property
    def min_evaluate_nodes(self) -> int:
        """The older strategy's `min_evaluate_clients`; 0 if it has none."""
        return int(getattr(self.strategy, "min_evaluate_clients", 0))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return messages for the instructions of `configure_fit`.

        Raises:
            ConfigurationError: It leaves some of the elected out.
        """
        chosen = self._show(grid)
        wanted = self.strategy.configure_fit(server_round, self._exchange.release(arrays), chosen)
        if wanted and len({proxy.cid for proxy, _ in wanted}) < chosen.num_available():
            name = type(self.strategy).__name__
            raise ConfigurationError(
                f"{name}.configure_fit takes {len(wanted)} of the {chosen.num_available()} elected clients that it is "
                f"shown, so it decides itself who trains; let it take all of them, or use a budget of {len(wanted)}"
            )
        return self._exchange.make_messages(wanted, "train")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return what `aggregate_fit` makes of the results."""
        results, failures = self._exchange.give(replies)
        failures += self._exchange.list_refused(results)
        parameters, metrics = self.strategy.aggregate_fit(server_round, results, failures)
        self._exchange.metrics = metrics
        arrays = None if parameters is None else self._exchange.hold(parameters)
        return arrays, MetricRecord(dict(list_numbers(metrics)))

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return messages for the instructions of its `configure_evaluate`; clients that it leaves out get them too."""
        chosen, parameters = self._show(grid), self._exchange.release(arrays)
        wanted = self.strategy.configure_evaluate(server_round, parameters, chosen)
        default = wanted[0][1] if wanted else EvaluateIns(parameters, {})
        others = chosen.all().keys() - {proxy.cid for proxy, _ in wanted}
        return self._exchange.make_messages(
            [*wanted, *((chosen.all()[cid], default) for cid in sorted(others))], "evaluate"
        )

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return what its `aggregate_evaluate` makes of the results of the sample; nothing if nobody was asked."""
        results, failures = self._exchange.give(replies)
        if not results and not failures:
            return None
        self._exchange.evaluated = self.strategy.aggregate_evaluate(server_round, results, failures)
        return MetricRecord(dict(list_numbers(self._exchange.evaluated[1])))

    def summary(self) -> None:
        """Log nothing: older strategies have no summary."""

    def _show(self, grid: Grid) -> ChosenClients:
        return ChosenClients([self._exchange.directory.proxy(number) for number in grid.get_node_ids()])
