"""Save and restore a run on Flower: selector, model, inner strategy, the clients' numbers.

One save after every slot, as a checkpoint of the run folder. Training by real clients cannot be repeated, so the save
holds the slot's record too: it is written first, the record after it, and a process that dies between the two leaves
a save from which the record is completed. The initial model is kept beside it in `initial.arrays`, for an app that
draws it anew each time it starts must not go on from another.
"""

import pathlib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp.strategy import Strategy

from fedelect.errors import RunError
from fedelect.flower.inner import HOOKS
from fedelect.records import SlotRecord
from fedelect.records.files import read_checked, replace_checked

INITIAL_NAME = "initial.arrays"
"""File of the run folder that holds the initial model."""


class SavedArray(msgspec.Struct, frozen=True):
    """One array of a model, as Flower serialises it."""

    name: str
    dtype: str
    shape: list[int]
    stype: str
    data: bytes


class History(msgspec.Struct, kw_only=True):
    """What a `Result` of Flower holds beside the model, by round, and the configs as they are now.

    After a resume the rounds that are finished are replayed from it, without messages.

    Attributes:
        train: Round -> aggregated metrics of the clients' training.
        evaluate: Round -> aggregated metrics of the clients' evaluation.
        central: Round -> metrics of `evaluate_fn`, from round 0.
        train_config: The config that training is configured with, as the strategy left it.
        evaluate_config: Likewise of evaluation.
    """

    train: dict[int, dict[str, Any] | None] = {}
    evaluate: dict[int, dict[str, Any] | None] = {}
    central: dict[int, dict[str, Any] | None] = {}
    train_config: dict[str, Any] = {}
    evaluate_config: dict[str, Any] = {}


def note_metrics(of: dict[int, dict[str, Any] | None], round_: int, metrics: MetricRecord | None) -> None:
    """Note the metrics of a round, also that it has none."""
    of[round_] = None if metrics is None else dict(metrics)


def recall_metrics(of: Mapping[int, Mapping[str, Any] | None], round_: int) -> MetricRecord | None:
    """Return the metrics of a round; None if it had none."""
    noted = of.get(round_)
    return None if noted is None else MetricRecord(dict(noted))


def recall_config(config: ConfigRecord, values: Mapping[str, Any]) -> None:
    """Give a config, in place, the values that a strategy had left in it."""
    for key in [key for key in config if key not in values]:
        del config[key]
    for key, value in values.items():
        config[key] = value


class Save(msgspec.Struct, frozen=True, kw_only=True):
    """State of a run after a slot.

    Attributes:
        slot: The last slot that was played.
        selector: State of the cohort source: the selector's, or the certificates so far.
        names: The clients' names so far, by number.
        registered: Names seen so far that are more than a node's own word.
        model: The model after that slot.
        strategy: The inner strategy's state; None where each slot starts with a fresh one.
        history: Metrics and configs of the rounds so far.
        record: The slot's record.
        backoff: Which clients are left out, and until when (`fedelect.backoff`).
        best_slot: In a cold start the slot with the highest reward so far; 0 if there is none.
        best_reward: Its reward.
        best_model: Its model.
    """

    slot: int
    selector: dict[str, Any]
    names: list[str]
    model: list[SavedArray]
    strategy: dict[str, Any] | None = None
    history: "History"
    registered: list[str] = []
    record: SlotRecord
    backoff: dict[str, Any] = {}
    best_slot: int = 0
    best_reward: float = 0.0
    best_model: list[SavedArray] | None = None


_encoder, _decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Save)
_arrays_decoder = msgspec.msgpack.Decoder(list[SavedArray])

encode_save = _encoder.encode
"""A save as the payload of a checkpoint."""


def decode_save(payload: bytes) -> Save:
    """Decode the save in a checkpoint; RunError if it is something else."""
    try:
        return _decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise RunError(f"the run's checkpoint cannot be read: {error}; start the run again in a new folder") from error


def pack_arrays(arrays: ArrayRecord) -> list[SavedArray]:
    """A model as plain values."""
    return [SavedArray(name, array.dtype, list(array.shape), array.stype, array.data) for name, array in arrays.items()]


def unpack_arrays(saved: list[SavedArray]) -> ArrayRecord:
    """The reverse of `pack_arrays`."""
    return ArrayRecord({one.name: Array(one.dtype, tuple(one.shape), one.stype, one.data) for one in saved})


def keep_initial_model(folder: Path, arrays: ArrayRecord, *, slot: int = 0) -> ArrayRecord:
    """The run's initial model: `arrays` if the run is new, else what it was begun with.

    Raises:
        RunError: `slot` slots have been played, and what they began with is gone or damaged.
    """
    file = folder / INITIAL_NAME
    if not file.exists():
        if slot > 0:
            raise RunError(
                f"{file} is missing and {slot} slots were played from it; restore it from a copy, or begin a new folder"
            )
        replace_checked(file, _encoder.encode(pack_arrays(arrays)))
        return arrays
    try:
        content = read_checked(file)
        if content is None:
            raise RunError(f"{file} is damaged; restore it from a copy, or begin a new folder")
        return unpack_arrays(_arrays_decoder.decode(content))
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{file} cannot be read: {error}; restore it from a copy, or begin a new folder") from error


class _UnsavableError(Exception):
    """A value cannot be written down; the message says which and of what kind."""


def strategy_state(strategy: Strategy) -> tuple[dict[str, Any], list[str]]:
    """Return all attributes of a strategy, and of strategies inside it, as plain values without functions.

    Returns:
        The attributes, and a description of those that cannot be written down. After a resume these are as the app
        made them.
    """
    state: dict[str, Any] = {}
    unsaved: list[str] = []
    for name, value in vars(strategy).items():
        if name in HOOKS or isinstance(value, _STATELESS):
            continue
        if isinstance(value, Strategy):
            inside, more = strategy_state(value)
            state[name] = ("strategy", inside)
            unsaved += more
            continue
        try:
            state[name] = _to_plain(value, f"{type(strategy).__name__}.{name}")
        except _UnsavableError as reason:
            unsaved.append(str(reason))
    return state, unsaved


_STATELESS = (types.FunctionType, types.BuiltinFunctionType, type)


def restore_strategy(strategy: Strategy, state: Mapping[str, Any]) -> None:
    """Give a strategy that was made in the same way the state that `strategy_state` took."""
    for name, (kind, value) in state.items():
        if kind == "strategy":
            restore_strategy(getattr(strategy, name), value)
        else:
            setattr(strategy, name, _from_plain(kind, value))


def _to_plain(value: object, where: str) -> tuple[str, Any]:
    """A value with a word for its kind. Subclasses are not taken for what they derive from: they may hold more."""
    if value is None or type(value) in (bool, float, str, bytes):
        return "value", value
    if type(value) is int:
        return ("value", value) if -(2**63) <= value < 2**63 else ("whole", hex(value))
    if (type(value) is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind not in "OV":
        array = np.asarray(value)
        kind = "array" if type(value) is np.ndarray else "scalar"
        return kind, [array.dtype.str, list(array.shape), array.tobytes()]
    if type(value) is ArrayRecord:
        return "arrays", msgspec.to_builtins(pack_arrays(value), builtin_types=(bytes,))
    if type(value) is dict:
        return "dict", [[_to_plain(k, where), _to_plain(v, f"{where}[{k!r}]")] for k, v in value.items()]
    if isinstance(value, pathlib.PurePath) and type(value) in (type(pathlib.Path()), type(pathlib.PurePath())):
        return "path", str(value)
    if type(value) in (list, tuple):
        return type(value).__name__, [_to_plain(item, where) for item in cast(Iterable[object], value)]
    raise _UnsavableError(f"{where} is a {type(value).__name__}")


def _from_plain(kind: str, value: Any) -> Any:
    if kind in ("array", "scalar"):
        dtype, shape, data = value
        array = np.frombuffer(data, dtype=dtype).reshape(shape).copy()
        return array if kind == "array" else array[()]
    if kind == "whole":
        return int(value, 16)
    if kind == "path":
        return pathlib.Path(value)
    if kind == "arrays":
        return unpack_arrays(msgspec.convert(value, list[SavedArray]))
    if kind == "dict":
        return {_from_plain(*key): _from_plain(*item) for key, item in value}
    if kind in ("list", "tuple"):
        items = [_from_plain(*item) for item in value]
        return items if kind == "list" else tuple(items)
    return value
