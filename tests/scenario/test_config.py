from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.errors import BudgetError, ConfigurationError
from fedelect.scenario import (
    BeliefsConfig,
    ChannelConfig,
    DataConfig,
    ModelConfig,
    ScenarioConfig,
    TopologyConfig,
    parse_scenario,
    scenario_toml,
)

_positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
_finite = st.floats(allow_nan=False, allow_infinity=False)
_counts = st.integers(1, 10**6)


@st.composite
def models(draw: st.DrawFn) -> ModelConfig:
    kind = draw(st.sampled_from(["svm", "softmax", "mlp", "cnn", "my.module:factory"]))
    step, batch = draw(_positive), draw(_counts)
    if kind in ("svm", "softmax"):
        return ModelConfig(kind=kind, step=step, batch=batch)
    return ModelConfig(
        kind=kind,
        step=step,
        batch=batch,
        optimiser="sgd",
        momentum=draw(st.floats(0, 1, exclude_max=True)),
        weight_decay=draw(_positive),
        loss=draw(st.sampled_from(["cross-entropy", "my.module:loss"])),
    )


@st.composite
def configs(draw: st.DrawFn) -> ScenarioConfig:
    clients = draw(st.integers(1, 12))
    sizes = sorted(draw(st.tuples(_counts, _counts)))
    each = st.lists(st.floats(0, 1), min_size=clients, max_size=clients).map(tuple)
    side = draw(st.floats(0.1, 100))
    links: tuple[Literal["nearest", "radius", "edges"], ...] = ("nearest", "radius", "edges")
    link = draw(st.sampled_from(links if clients > 1 else links[:2]))
    derived: st.SearchStrategy[Literal["derived"]] = st.just("derived")
    ends = st.tuples(st.integers(0, clients - 1), st.integers(0, clients - 1)).filter(lambda pair: pair[0] != pair[1])
    places = st.lists(st.tuples(st.floats(0, side), st.floats(0, side)), min_size=clients, max_size=clients)
    return ScenarioConfig(
        name=draw(st.text(min_size=1)),
        seed=draw(st.integers(0, 2**63 - 1)),
        clients=clients,
        budget=draw(st.integers(1, clients)),
        slots=draw(_counts),
        rounds_per_slot=draw(_counts),
        start=draw(st.sampled_from(["cold", "warm"])),
        opinion=draw(st.sampled_from(["accuracy", "my.module:score"])),
        redraw_every=draw(st.integers(0, 9)),
        data=DataConfig(
            source=draw(st.sampled_from(["mnist", "fashion-mnist", "digits", 'odd "path"\\é.npz'])),
            iid_clients=draw(st.integers(0, clients)),
            skew=draw(st.sampled_from(["labels", "dirichlet", "iid"])),
            classes_per_client=draw(_counts),
            alpha=draw(_positive),
            samples=(sizes[0], sizes[1]),
            test_share=draw(st.sampled_from(["global", "own"])),
        ),
        model=draw(models()),
        channel=ChannelConfig(
            upload_probability=draw(st.floats(0, 1) | derived | each),
            threshold_db=draw(st.floats(-300, 300)),
            finish_probability=draw(st.floats(0, 1) | each),
        ),
        topology=TopologyConfig(
            side_km=side,
            link=link,
            edges=tuple(draw(st.lists(ends, min_size=1))) if link == "edges" else (),
            positions_km=tuple(draw(st.just([]) | places)),
        ),
        beliefs=BeliefsConfig(coupling_scale=draw(_finite), damping=draw(st.floats(0, 1, exclude_max=True))),
    )


@given(configs())
def test_a_scenario_survives_being_written_as_toml_and_parsed(config: ScenarioConfig) -> None:
    assert parse_scenario(scenario_toml(config)) == config


def test_an_empty_scenario_is_the_papers() -> None:
    config = parse_scenario("")
    assert (config.clients, config.budget, config.rounds_per_slot, config.slots) == (20, 5, 15, 200)
    assert (config.model.step, config.model.epochs, config.model.batch) == (1e-7, 10, 100)
    assert (config.beliefs.coupling_scale, config.beliefs.coupling_exponent) == (1e-3, 3.7)


def test_the_written_scenario_explains_each_key() -> None:
    lines = scenario_toml(ScenarioConfig()).splitlines()
    at = lines.index("clients = 20")
    assert lines[at - 1] == "# number of clients (N): a whole number >= 1"
    assert "[channel]" in lines


BAD = [
    ("clients = 0", "clients", "0", "a whole number >= 1"),
    ("clients = 2.5", "clients", "2.5", "a whole number >= 1"),
    ("clients = true", "clients", "True", "a whole number >= 1"),
    ('clients = "many"', "clients", "many", "a whole number >= 1"),
    ("seed = -1", "seed", "-1", "a whole number from 0"),
    ('name = ""', "name", "''", "text that is not empty"),
    ('start = "hot"', "start", "hot", '"cold" or "warm"'),
    ('opinion = "no such"', "opinion", "no such", '"accuracy" or "module:function"'),
    ("budget = 21", "budget", "21", "from 1 to `clients`"),
    ("clinets = 3", "clinets", 'did you mean "clients"', "clients, budget"),
    ("data = 3", "data", "3", "a table [data] of keys source, iid_clients"),
    ("[data]\nsource = 3", "data.source", "3", '"mnist", "fashion-mnist", "digits"'),
    ("[data]\niid_clients = 21", "data.iid_clients", "21", "from 0 to `clients`; clients = 20"),
    ('[data]\nskew = "some"', "data.skew", "some", '"labels", "dirichlet" or "iid"'),
    ("[data]\nalpha = 0", "data.alpha", "0", "a number > 0"),
    ("[data]\nalpha = nan", "data.alpha", "nan", "a number > 0"),
    ("[data]\nsamples = [9, 8]", "data.samples", "[9, 8]", "the smaller one first"),
    ("[data]\nsamples = [9]", "data.samples", "[9]", "two whole numbers"),
    ("[data]\nsamples = [0, 8]", "data.samples[0]", "0", "two whole numbers >= 1"),
    ("[data]\nsample = [1, 8]", "data.sample", 'did you mean "samples"', "source, iid_clients"),
    ("[model]\nstep = inf", "model.step", "inf", "a number > 0"),
    ("[model]\nstep = -1e-7", "model.step", "-1e-07", "a number > 0"),
    ('[model]\nkind = "deep"', "model.kind", "deep", '"svm" or "softmax"'),
    ('[model]\nkind = "my_module:"', "model.kind", "my_module:", '"cnn" or "module:factory"'),
    ('[model]\noptimiser = "adam"', "model.optimiser", "adam", 'with a PyTorch module only; kind = "svm"'),
    ("[model]\nmomentum = 0.9", "model.momentum", "0.9", 'with a PyTorch module only; kind = "svm"'),
    ('[model]\nkind = "softmax"\nweight_decay = 1', "model.weight_decay", "1.0", 'only; kind = "softmax"'),
    ('[model]\nloss = "my_module:loss"', "model.loss", "my_module:loss", 'only; kind = "svm"'),
    ('[model]\nkind = "mlp"\nloss = "hinge"', "model.loss", "hinge", '"cross-entropy" or "module:function"'),
    ('[model]\nkind = "mlp"\nmomentum = 1.0', "model.momentum", "1.0", "a number >= 0 and < 1"),
    ('[model]\nkind = "cnn"\noptimiser = "rms"', "model.optimiser", "rms", '"sgd" or "adam"'),
    ('[model]\nkind = "cnn"\noptimiser = "adam"\nmomentum = 0.5', "model.momentum", "0.5", 'optimiser = "sgd" only'),
    ('[model]\nprecision = "half"', "model.precision", "half", '"float32" or "float64"'),
    ("[channel]\nupload_probability = 1.5", "channel.upload_probability", "1.5", "a number in [0, 1]"),
    ('[channel]\nupload_probability = "guess"', "channel.upload_probability", "guess", '"derived"'),
    ("[channel]\nupload_probability = [0.5]", "channel.upload_probability", "1 values", "clients = 20"),
    ("[channel]\nfinish_probability = [2.0]", "channel.finish_probability[0]", "2.0", "in [0, 1]"),
    ("[channel]\ndropout_probability = [0, 1]", "channel.dropout_probability", "2 values", "clients = 20"),
    ("[channel]\nthreshold_db = nan", "channel.threshold_db", "nan", "a number from -300 to 300"),
    ('[topology]\nlink = "mesh"', "topology.link", "mesh", '"nearest", "radius" or "edges"'),
    ('[topology]\nlink = "edges"', "topology.edges", "none", "at least one pair"),
    ("[topology]\nedges = [[0, 1]]", "topology.edges", "1 pairs", "empty unless"),
    ('[topology]\nlink = "edges"\nedges = [[0, 1], [3, 3]]', "topology.edges[1]", "[3, 3]", "two different clients"),
    ('[topology]\nlink = "edges"\nedges = [[0, 20]]', "topology.edges[0]", "[0, 20]", "0..19"),
    ('[topology]\nlink = "edges"\nedges = [[0, "b"]]', "topology.edges[0][1]", "'b'", "[client, client]"),
    ("[topology]\npositions_km = [[0.1, 0.1]]", "topology.positions_km", "1 positions", "clients = 20"),
    ("clients = 1\nbudget = 1\n[data]\niid_clients = 1\n[topology]\npositions_km = [[0.1, 2]]",
     "topology.positions_km[0]", "[0.1, 2.0]", "topology.side_km = 1.0"),
    ("[beliefs]\ndamping = 1.0", "beliefs.damping", "1.0", "< 1"),
    ("[beliefs]\nrounds = 0", "beliefs.rounds", "0", "a whole number >= 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "got", "allowed"), BAD, ids=[text for text, *_ in BAD])
def test_a_bad_scenario_is_refused_with_key_and_value_and_what_is_allowed(
    text: str, key: str, got: str, allowed: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_scenario(text)
    message = str(refused.value)
    assert message.startswith(f"{key}: got ")
    assert got in message
    assert allowed in message.partition("allowed: ")[2]


def test_text_that_is_not_toml_is_refused_with_the_place() -> None:
    with pytest.raises(ConfigurationError, match=r"not valid TOML.*line 2"):
        parse_scenario("clients = 3\nbudget = = 2")


def test_a_budget_above_the_clients_is_a_budget_error() -> None:
    with pytest.raises(BudgetError, match=r"^budget: got 6"):
        ScenarioConfig(clients=5, budget=6)


def test_a_scenario_made_in_code_is_checked_like_one_from_text() -> None:
    with pytest.raises(ConfigurationError, match=r"^model\.epochs: got 0; allowed: a whole number >= 1$"):
        ScenarioConfig(model=ModelConfig(epochs=0))
    with pytest.raises(ConfigurationError, match=r"^slots: got '9'"):
        ScenarioConfig(slots="9")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"^slots: got <object"):
        ScenarioConfig(slots=object())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"^slots: got 0"):
        msgspec.structs.replace(ScenarioConfig(), slots=0)
