"""Messages out, replies in, by Flower's public grid.

Replies are matched by the message they answer, for the error that stands in for a killed node comes from the SuperLink
and not from the node. A client that does not answer is a failure with a reason, never a silent gap. Messages of an
inner strategy are addressed anew, to the clients that were chosen.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import ClientId

LOG = logging.getLogger("flwr.fedelect")
"""Below Flower's own logger, so that lines appear among those of the run."""

_FIRST_LOOK_S, _SLOWER, _LAST_LOOK_S = 0.02, 1.2, 1.0  # quick for short phases, easy on the SuperLink in long ones
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Answers:
    """Replies and failures of an exchange.

    Attributes:
        replies: The replies with content, in order of client number.
        failures: Why there is no reply, for every other client asked.
        errors: The replies that report an error instead; these clients are among the failures.
        seconds: How long each reply took to arrive.
    """

    replies: dict[ClientId, Message] = field(default_factory=dict)
    failures: dict[ClientId, str] = field(default_factory=dict)
    errors: dict[ClientId, Message] = field(default_factory=dict)
    seconds: dict[ClientId, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """Early stop: once `reached` is true, wait only `grace_s` longer.

    Attributes:
        reached: Called with each answer as it arrives.
        grace_s: Seconds to wait for the others.
    """

    reached: Callable[[Message], bool]
    grace_s: float


def exchange(
    grid: Grid, asked: Mapping[ClientId, Message], *, timeout_s: float, enough: EarlyStop | None = None
) -> Answers:
    """Send every client its message and wait until all have answered, the time is up, or enough have answered."""
    if not asked:
        return Answers()
    began, limit_s = time.monotonic(), timeout_s
    waiting = _push(grid, asked)
    arrived: dict[ClientId, Message] = {}
    seconds: dict[ClientId, float] = {}
    pause = _FIRST_LOOK_S
    while waiting:
        for reply in grid.pull_messages(list(waiting)):
            client = waiting.pop(reply.metadata.reply_to_message_id, None)
            if client is not None:
                arrived[client] = reply
                seconds[client] = time.monotonic() - began
                if enough is not None and enough.reached(reply):
                    limit_s = min(timeout_s, round(time.monotonic() - began + enough.grace_s, 1))
                    enough = None
        left = began + limit_s - time.monotonic()
        if not waiting or left <= 0:
            break
        time.sleep(min(pause, left))
        pause = min(pause * _SLOWER, _LAST_LOOK_S)
    late = set(waiting.values())
    answers = Answers(seconds=seconds)
    for client in sorted(asked):
        if client in late:
            answers.failures[client] = f"no answer within {limit_s:g} s"
        elif client not in arrived:
            answers.failures[client] = "the message could not be sent"
        elif arrived[client].has_error():
            answers.failures[client] = describe_error(arrived[client])
            answers.errors[client] = arrived[client]
        else:
            answers.replies[client] = arrived[client]
    return answers


def describe_error(reply: Message) -> str:
    """Return what a reply that reports an error says."""
    said = _GONE if reply.error.code in _GONE_CODES else _short(reply.error.reason)
    return f"error {reply.error.code}: {said}"


_GONE_CODES = (3, 4)  # the SuperLink holds the message, or its reply, no longer
_GONE = "no answer in time, or the node was removed"


def _push(grid: Grid, asked: Mapping[ClientId, Message]) -> dict[str, ClientId]:
    """Message id -> client, of the messages that were accepted."""
    given = list(grid.push_messages(list(asked.values())))
    # One grid puts nothing in the place of a message it refused, another leaves the place out.
    ids = given if len(given) == len(asked) else [message.metadata.message_id for message in asked.values()]
    accepted = {identifier for identifier in given if identifier}
    return {identifier: client for identifier, client in zip(ids, asked, strict=True) if identifier in accepted}


def _short(reason: str | None) -> str:
    """The last line of a reason, which may be a whole traceback, without what Flower puts around an exception."""
    wrapped = _WRAPPED.fullmatch(reason or "")
    lines = [line.strip() for line in (wrapped[1] if wrapped else reason or "").splitlines() if line.strip()]
    return lines[-1].removeprefix(_RAISED)[:_LONGEST_REASON] if lines else "no reason given"


_WRAPPED = re.compile(r"<class '.*?'>:<'(.*)'>", re.DOTALL)
_RAISED = "Exception ClientAppException occurred. Message: "


def address_messages(
    wanted: Iterable[Message], nodes: Mapping[ClientId, int], *, timeout_s: float
) -> dict[ClientId, Message]:
    """Address an inner strategy's messages, one to each of `nodes` (client -> node id).

    Raises:
        ConfigurationError: It sends each node something else, and one of the chosen nodes nothing.
    """
    messages = list(wanted)
    own = {message.metadata.dst_node_id: message for message in messages}
    shared = messages[0] if messages and all(one.content is messages[0].content for one in messages) else None
    asked = {}
    for client, node_id in sorted(nodes.items()):
        message = own.get(node_id)
        if message is None and shared is not None:
            message = Message(shared.content, dst_node_id=node_id, message_type=shared.metadata.message_type)
        if message is None:
            raise ConfigurationError(
                "the inner strategy has no message for a client that was chosen; "
                "a strategy that itself decides who trains cannot be combined with a selector"
            )
        message.metadata.ttl = min(message.metadata.ttl, timeout_s)  # nobody should train for a round that is over
        asked[client] = message
    return asked


def select_sound_updates(
    replies: Mapping[ClientId, Message], sent: ArrayRecord, *, weight: str | None
) -> tuple[dict[ClientId, Message], dict[ClientId, str]]:
    """Return the training replies that can be aggregated, in order of client number, and why the others cannot.

    A reply is sound if its arrays can be read and hold neither nan nor infinity, and its weight is a number above 0 and
    at most `LARGEST_WEIGHT`. If the model holds floats, the arrays must have the model's names and shapes, unless
    no reply has them: some strategies exchange something else than the model, such as trees as bytes. Metrics never
    decide over an update.

    Args:
        replies: The replies by client.
        sent: The model that was sent.
        weight: Name of the metric that weighs a reply in the average; None if there is none.
    """
    form = _array_form(sent)
    forms = {
        client: [_array_form(record) for record in reply.content.array_records.values()]
        for client, reply in replies.items()
    }
    compares = _has_floats(sent) and any(own == [form] for own in forms.values())
    weighed = weight if any(_has_metric(reply.content, weight) for reply in replies.values()) else None
    sound, odd = {}, {}
    for client, reply in sorted(replies.items()):
        if (compares and forms[client] != [form]) or (not forms[client] and any(forms.values())):
            odd[client] = "its update has other arrays than the model"
        elif (fault := _find_fault(reply.content, weighed)) is not None:
            odd[client] = fault
        else:
            sound[client] = reply
    return sound, odd


LARGEST_WEIGHT = 1e9
"""Largest weight of an update that is believed: one client must not take all of the average."""


def share_metrics(replies: Sequence[Message]) -> list[Message]:
    """Return replies with the metrics that all have, in a record of one name, for strategies that insist on that."""
    forms = [_metric_form(reply.content) for reply in replies]
    common = set.intersection(*forms) if forms else set()
    records = [list(reply.content.metric_records) for reply in replies]
    if all(own == common for own in forms) and all(names == records[0] for names in records):
        return list(replies)
    keys = {key for key, _ in common}
    LOG.warning("clients send different metrics; combined are those that all have: %s", ", ".join(sorted(keys)))
    for reply, names in zip(replies, records, strict=True):
        content = RecordDict({name: record for name, record in reply.content.items() if name not in names})
        for name, usual in zip(names, records[0] if len(names) == len(records[0]) else names, strict=True):
            metrics = reply.content.metric_records[name]
            content[usual] = MetricRecord({key: value for key, value in metrics.items() if key in keys})
        reply.content = content
    return list(replies)


def _has_floats(arrays: ArrayRecord) -> bool:
    """Return whether this is a model of numbers (some arrays may be counters), and not, say, trees as bytes."""
    return any(re.fullmatch(r"b?float\d+", str(array.dtype)) for array in arrays.values())


def _has_metric(content: RecordDict, name: str | None) -> bool:
    return any(name in record for record in content.metric_records.values())


def _weight_fault(content: RecordDict, weight: str) -> str | None:
    """Return what is wrong with the weight of an update, or None."""
    values = [record[weight] for record in content.metric_records.values() if weight in record]
    if len(values) != 1:
        return f"its reply holds {len(values)} metrics called {weight!r} instead of one"
    value = values[0]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST_WEIGHT:
        return f"its {weight!r} is {_short(repr(value))}, not a number above 0 and at most {LARGEST_WEIGHT:g}"
    return None


def _array_form(record: ArrayRecord) -> object:
    return sorted((name, tuple(array.shape), array.stype) for name, array in record.items())


def _metric_form(content: RecordDict) -> set[tuple[str, int]]:
    """Return (metric, length of a list or -1) of every metric."""
    records = content.metric_records.values()
    return {(key, len(value) if isinstance(value, list) else -1) for record in records for key, value in record.items()}


def _find_fault(content: RecordDict, weight: str | None) -> str | None:
    return (None if weight is None else _weight_fault(content, weight)) or _array_fault(content)


def _array_fault(content: RecordDict) -> str | None:
    """Return what is wrong in the arrays of an update, or None; reads all of them."""
    try:
        for record in content.array_records.values():
            if any(array.numpy().shape != tuple(array.shape) for array in record.values() if array.stype == _NUMPY):
                return "its update is damaged"
            if not all_finite(record):
                return "its update holds values that are not finite"
    except Exception:  # whatever damaged bytes make of it
        return "its update is damaged"
    return None


def all_finite(arrays: ArrayRecord) -> bool:
    """Whether a model is free of nan and infinity; arrays that are not NumPy's are skipped."""
    return all(bool(np.isfinite(array.numpy()).all()) for array in arrays.values() if array.stype == _NUMPY)


_NUMPY = "numpy.ndarray"  # Flower's word for how its own strategies write an array down
