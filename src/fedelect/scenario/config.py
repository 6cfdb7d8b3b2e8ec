"""The scenario as it is written down: strict, frozen values with the paper's numbers as defaults.

Each key carries its meaning and its allowed values beside its type, for TOML comments and error messages. Types, ranges
and the rules that tie keys together are checked whenever a `ScenarioConfig` is made. Nothing here draws.
"""

import difflib
import re
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from fedelect.errors import BudgetError, ConfigurationError
from fedelect.scenario.availability import AvailabilityConfig
from fedelect.scenario.drift import DriftConfig
from fedelect.scenario.flaws import FlawsConfig, Members, check_members, list_kinds
from fedelect.scenario.hard import HardConfig
from fedelect.scenario.keys import LARGEST
from fedelect.scenario.keys import describe_key as _key
from fedelect.scenario.survey import SurveyConfig
from fedelect.scenario.system import SystemConfig
from fedelect.scenario.validation import ValidationConfig

LINEAR_KINDS = ("svm", "softmax")
"""Values of `model.kind` that name linear models; any other names a PyTorch module."""

PYTORCH_KEYS = ("optimiser", "momentum", "weight_decay", "loss")
"""Keys of [model] that linear models do not have."""

_Probability = Annotated[float, Meta(ge=0.0, le=1.0)]
_Count = Annotated[int, Meta(ge=1)]
_DECIBELS = "a number from -300 to 300"
_PROBABILITIES = "a number in [0, 1], or a list of one for each client"


class DataConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[data]: which data set, and how it is dealt to the clients."""

    source: Annotated[
        str,
        _key(
            "data set",
            '"mnist", "fashion-mnist", "digits", or the path of an .npz file or of a folder with one for each client',
            min_length=1,
        ),
    ] = "mnist"
    iid_clients: Annotated[
        int, _key("clients 0 .. this - 1 hold i.i.d. data", "a whole number from 0 to `clients`", ge=0)
    ] = 5
    skew: Annotated[
        Literal["labels", "dirichlet", "iid"], _key("what the other clients hold", '"labels", "dirichlet" or "iid"')
    ] = "labels"
    classes_per_client: Annotated[
        int, _key('classes in each client\'s hands under skew = "labels"', "a whole number >= 1", ge=1)
    ] = 2
    alpha: Annotated[float, _key('concentration under skew = "dirichlet"', "a number > 0", gt=0.0, le=LARGEST)] = 0.5
    samples: Annotated[
        tuple[_Count, _Count],
        _key("smallest and largest training size of a client", "two whole numbers >= 1, the smaller one first"),
    ] = (200, 900)
    test_share: Annotated[
        Literal["global", "own"],
        _key(
            "distribution of a client's test share: the whole set's, or its training labels'",
            '"global" or "own"',
        ),
    ] = "global"


class ModelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[model]: what is trained, and how a client trains it."""

    kind: Annotated[
        str,
        _key(
            "linear model (svm, softmax), or PyTorch module from (B, features) to (B, classes)",
            '"svm" or "softmax"; "mlp", "cnn" or "module:factory" with the extra `torch`',
            pattern=r"^(svm|softmax|mlp|cnn)$|^[\w.]+:\w+$",
        ),
    ] = "svm"
    step: Annotated[float, _key("step size of SGD or Adam", "a number > 0", gt=0.0, le=LARGEST)] = 1e-7
    epochs: Annotated[int, _key("local epochs in each round (E)", "a whole number >= 1", ge=1)] = 10
    batch: Annotated[int, _key("minibatch size (B)", "a whole number >= 1", ge=1)] = 100
    shuffle: Annotated[
        Literal["epoch", "round", "slot"],
        _key(
            "samples are reshuffled every epoch, or keep one order for a round or a slot (faster, other draws)",
            '"epoch", "round" or "slot"',
        ),
    ] = "epoch"
    precision: Annotated[Literal["float32", "float64"], _key("floats of model and data", '"float32" or "float64"')] = (
        "float32"
    )
    optimiser: Annotated[
        Literal["sgd", "adam"], _key("PyTorch only; its state starts fresh in each round", '"sgd" or "adam"')
    ] = "sgd"
    momentum: Annotated[float, _key("PyTorch with SGD only", "a number >= 0 and < 1", ge=0.0, lt=1.0)] = 0.0
    weight_decay: Annotated[float, _key("PyTorch only", "a number >= 0", ge=0.0, le=LARGEST)] = 0.0
    loss: Annotated[
        str,
        _key(
            "PyTorch only; your own takes (scores, labels) and gives one number",
            '"cross-entropy" or "module:function"',
            pattern=r"^cross-entropy$|^[\w.]+:\w+$",
        ),
    ] = "cross-entropy"

    @property
    def linear(self) -> bool:
        """Whether it is one of the linear models, which need no PyTorch."""
        return self.kind in LINEAR_KINDS


class ChannelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[channel]: how likely an upload is to arrive (theta). The last five keys serve "derived" only."""

    upload_probability: Annotated[
        _Probability | Literal["derived"] | tuple[_Probability, ...],
        _key("theta", 'a number in [0, 1], a list of one for each client, or "derived"'),
    ] = 1.0
    threshold_db: Annotated[float, _key("SNR an upload needs, dB", _DECIBELS, ge=-300.0, le=300.0)] = 0.0
    mean_snr_db: Annotated[float, _key("mean received SNR over the clients, dB", _DECIBELS, ge=-300.0, le=300.0)] = 20.0
    transmit_power_dbm: Annotated[float, _key("transmit power, dBm", _DECIBELS, ge=-300.0, le=300.0)] = 20.0
    finish_probability: Annotated[
        _Probability | tuple[_Probability, ...], _key("local training ends within the round", _PROBABILITIES)
    ] = 1.0
    dropout_probability: Annotated[
        _Probability | tuple[_Probability, ...], _key("the client drops out of the round", _PROBABILITIES)
    ] = 0.0


class TopologyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[topology]: where the clients are and who is linked to whom."""

    side_km: Annotated[float, _key("side of the square, km", "a number > 0", gt=0.0, le=LARGEST)] = 1.0
    link: Annotated[
        Literal["nearest", "radius", "edges"], _key("which clients are linked", '"nearest", "radius" or "edges"')
    ] = "nearest"
    neighbours: Annotated[
        int, _key('links of each client to its nearest under "nearest"', "a whole number >= 1", ge=1)
    ] = 4
    radius_km: Annotated[float, _key('reach of a link under "radius", km', "a number > 0", gt=0.0, le=LARGEST)] = 0.35
    edges: Annotated[
        tuple[tuple[int, int], ...],
        _key('the links under "edges"', 'a list of [client, client] pairs; empty unless link = "edges"'),
    ] = ()
    positions_km: Annotated[
        tuple[tuple[float, float], ...],
        _key("where the clients are, km; empty: drawn", "a list of one [x, y] inside the square for each client"),
    ] = ()


class BeliefsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[beliefs]: how the clients settle beliefs under democratized analytics."""

    reading: Annotated[
        Literal["ising", "evidence"], _key("which reading of the paper's equations", '"ising" or "evidence"')
    ] = "ising"
    coupling_scale: Annotated[
        float, _key("C of the coupling -C d^beta, d in km", "a finite number", ge=-LARGEST, le=LARGEST)
    ] = 1e-3
    coupling_exponent: Annotated[float, _key("beta of the coupling", "a number >= 0", ge=0.0, le=LARGEST)] = 3.7
    rounds: Annotated[int, _key("parallel message rounds", "a whole number >= 1", ge=1)] = 10
    damping: Annotated[
        float, _key("share of the old message that is kept", "a number >= 0 and < 1", ge=0.0, lt=1.0)
    ] = 0.0


class ScenarioConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that defines a scenario; the defaults are the paper's (Sec. VI).

    Raises:
        ConfigurationError: A value of the wrong type or out of range, or two that contradict each other. The
            message names the dotted key, what was got and what is allowed.
    """

    name: Annotated[str, _key("what the scenario is called", "text that is not empty", min_length=1)] = "paper"
    seed: Annotated[
        int, _key("seed of data, topology and runs", "a whole number from 0 to 2^63 - 1", ge=0, le=2**63 - 1)
    ] = 1
    clients: Annotated[int, _key("number of clients (N)", "a whole number >= 1", ge=1)] = 20
    budget: Annotated[int, _key("clients elected for each slot (K)", "a whole number from 1 to `clients`", ge=1)] = 5
    slots: Annotated[int, _key("turns of the loop (T)", "a whole number >= 1", ge=1)] = 200
    rounds_per_slot: Annotated[int, _key("rounds of FedAvg in a slot (L)", "a whole number >= 1", ge=1)] = 15
    start: Annotated[
        Literal["cold", "warm"],
        _key("a slot starts from the initial model, or from the last slot's", '"cold" or "warm"'),
    ] = "cold"
    opinion: Annotated[
        str,
        _key("how a client scores a model", '"accuracy" or "module:function"', pattern=r"^accuracy$|^[\w.]+:\w+$"),
    ] = "accuracy"
    redraw_every: Annotated[
        int, _key("redraw data and topology after this many trials; 0: never", "a whole number >= 0", ge=0)
    ] = 0
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    channel: ChannelConfig = ChannelConfig()
    topology: TopologyConfig = TopologyConfig()
    beliefs: BeliefsConfig = BeliefsConfig()
    # Tables that are unset are no part of what is written down.
    system: SystemConfig | UnsetType = UNSET
    flaws: FlawsConfig | UnsetType = UNSET
    hard: HardConfig | UnsetType = UNSET
    drift: DriftConfig | UnsetType = UNSET
    availability: AvailabilityConfig | UnsetType = UNSET
    survey: SurveyConfig | UnsetType = UNSET
    validation: ValidationConfig | UnsetType = UNSET

    @property
    def special_clients(self) -> dict[str, Members]:
        """Tables about some of the clients, by kind of flaw; the hard ones, who have none, are the last."""
        return list_kinds(self.flaws) | ({} if self.hard is UNSET else {"hard": self.hard})

    @property
    def measured(self) -> bool:
        """Whether slots are measured: in a warm start, and wherever clients are flawed, hard, away or not all asked."""
        tables = (self.flaws, self.hard, self.drift, self.availability, self.survey)
        return self.start == "warm" or any(table is not UNSET for table in tables)

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value is UNSET:
                continue
            try:
                plain = msgspec.to_builtins(value)
                msgspec.convert(plain, field.type)
            except msgspec.ValidationError as error:
                raise explain_refusal(error, {field.name: plain}, prefix=field.name) from error
            except TypeError as error:
                raise ConfigurationError(f"{field.name}: got {value!r}, which is not a plain value") from error
        _check_sizes(self)
        _check_model(self.model)
        _check_topology(self)
        keys = {kind if kind == "hard" else f"flaws.{kind}": table for kind, table in self.special_clients.items()}
        check_members(keys, self.clients)


def _check_sizes(config: ScenarioConfig) -> None:
    if config.budget > config.clients:
        raise BudgetError(
            f"budget: got {config.budget}; allowed: {describe_allowed('budget')}, which is {config.clients}"
        )
    data, channel = config.data, config.channel
    if data.iid_clients > config.clients:
        raise _wrong("data.iid_clients", data.iid_clients, f"; clients = {config.clients}")
    if data.samples[0] > data.samples[1]:
        raise _wrong("data.samples", list(data.samples))
    for name in ("upload_probability", "finish_probability", "dropout_probability"):
        value = getattr(channel, name)
        if isinstance(value, tuple) and len(value) != config.clients:
            raise _wrong(f"channel.{name}", f"{len(value)} values", f"; clients = {config.clients}")


def _check_model(model: ModelConfig) -> None:
    for name in PYTORCH_KEYS:
        value = getattr(model, name)
        if model.linear and value != getattr(ModelConfig(), name):
            raise _wrong(f"model.{name}", repr(value), f', with a PyTorch module only; kind = "{model.kind}"')
    if model.momentum and model.optimiser != "sgd":
        raise _wrong("model.momentum", model.momentum, ', with optimiser = "sgd" only; Adam has its own')


def _check_topology(config: ScenarioConfig) -> None:
    topology, clients = config.topology, config.clients
    if topology.link != "edges" and topology.edges:
        raise _wrong("topology.edges", f'{len(topology.edges)} pairs with link = "{topology.link}"')
    for index, (one, other) in enumerate(topology.edges):
        if one == other or not (0 <= one < clients and 0 <= other < clients):
            raise ConfigurationError(
                f"topology.edges[{index}]: got [{one}, {other}]; allowed: two different clients of 0..{clients - 1}"
            )
    if topology.link == "edges" and not topology.edges and clients > 1:
        raise ConfigurationError('topology.edges: got none with link = "edges"; allowed: at least one pair')
    if topology.positions_km and len(topology.positions_km) != clients:
        raise _wrong("topology.positions_km", f"{len(topology.positions_km)} positions", f"; clients = {clients}")
    for index, position in enumerate(topology.positions_km):
        if not all(0.0 <= coordinate <= topology.side_km for coordinate in position):
            raise ConfigurationError(
                f"topology.positions_km[{index}]: got {list(position)}; allowed: [x, y] with both from 0 to "
                f"topology.side_km = {topology.side_km}"
            )


def _wrong(key: str, got: object, also: str = "") -> ConfigurationError:
    return ConfigurationError(f"{key}: got {got}; allowed: {describe_allowed(key)}{also}")


def field_meta(owner: type, name: str) -> Meta | None:
    """Meaning (`description`) and allowed values (`extra["allowed"]`) of a key; None for a table."""
    hint = get_type_hints(owner, include_extras=True)[name]
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note for note in notes if isinstance(note, Meta)), None)


def table_type(owner: type, name: str) -> type[Struct] | None:
    """Type of the table `name` of `owner`, also of one that may be left unset; None if it is not a table."""
    hint = get_type_hints(owner)[name]
    kinds = (hint, *get_args(hint))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)), None)


def describe_allowed(key: str) -> str:
    """Allowed values of a dotted key of the scenario, in words, such as "a whole number >= 1"."""
    *tables, name = re.sub(r"\[[^]]*\]", "", key).split(".")
    meta = field_meta(_find_table(tables), name)
    if meta is not None and meta.extra is not None:
        return str(meta.extra["allowed"])
    keys = [field.name for field in msgspec.structs.fields(_find_table([*tables, name]))]
    return f"a table [{key}] of keys {', '.join(keys)}"


def _find_table(path: list[str]) -> type[Struct]:
    owner: type[Struct] = ScenarioConfig
    for name in path:
        found = table_type(owner, name)
        assert found is not None, f"{'.'.join(path)} is not a table"
        owner = found
    return owner


def explain_refusal(error: msgspec.ValidationError, given: dict[str, Any], prefix: str = "") -> ConfigurationError:
    """Turn msgspec's error about `given` into ours: dotted key, what was got, what is allowed."""
    if isinstance(error.__cause__, ConfigurationError):
        return error.__cause__
    text, _, path = str(error).partition(" - at `$")
    key = (prefix + path.rstrip("`")).lstrip(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL)
    if unknown:
        names = [field.name for field in msgspec.structs.fields(_find_table(key.split(".") if key else []))]
        close = difflib.get_close_matches(unknown[1], names, n=1)
        hint = f' (did you mean "{close[0]}"?)' if close else ""
        path = f"{key}.{unknown[1]}" if key else unknown[1]
        return ConfigurationError(f"{path}: got an unknown key{hint}; allowed: {', '.join(names)}")
    got: Any = given
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", key):
        got = got[name] if name else got[int(index)]
    shown = repr(got) if len(repr(got)) <= 80 else f"{repr(got)[:77]}..."
    return ConfigurationError(f"{key}: got {shown}; allowed: {describe_allowed(key)}")
