"""PyTorch modules through the engine's seam: the same numbers as references, alone or together, on both paths."""

import gc
import pickle
import subprocess
import sys
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.torch_slot import torch_slot
from tests.worlds import digits, plan
from threadpoolctl import threadpool_limits
from torch import nn

from fedelect.analytics import judge
from fedelect.errors import ConfigurationError
from fedelect.federation import Job, PlainEngine, make_engine
from fedelect.federation.torch.dense import DenseStack, batches
from fedelect.federation.torch.engine import TorchEngine, TrainingPath
from fedelect.federation.torch.linear import ways_for
from fedelect.federation.torch.local_training import LocalTraining
from fedelect.federation.torch.network import Network, load_factory
from fedelect.federation.torch.shares import DataTensors, make_products, pad, padded_width
from fedelect.records import RunRecords, read_run, sorted_records
from fedelect.scenario import (
    ChannelConfig,
    DataConfig,
    ModelConfig,
    Scenario,
    ScenarioConfig,
    build_scenario,
    parse_scenario,
)
from fedelect.seeds import derive
from fedelect.simulator import simulate

EXAMPLES = Path(__file__).parents[2] / "examples"
PATHS: tuple[TrainingPath, ...] = ("loop", "layers")
OWN = "tests.torch_models:"
COHORTS = ((0, 2, 5), (1, 3, 4), (0, 1))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """References run beside other tests: more threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(limits=1, user_api="blas"):
        yield
    torch.set_num_threads(threads)


def config(*, seed: int = 1, upload_probability: float = 0.8, start: str = "cold", **model: Any) -> ScenarioConfig:
    settings: dict[str, Any] = {"kind": "mlp", "step": 0.05, "epochs": 2, "batch": 6, "precision": "float64"} | model
    return ScenarioConfig(
        name="torch",
        seed=seed,
        clients=6,
        budget=3,
        slots=4,
        rounds_per_slot=3,
        start="warm" if start == "warm" else "cold",
        data=DataConfig(source="digits", iid_clients=2, samples=(7, 25)),
        model=ModelConfig(**settings),
        channel=ChannelConfig(upload_probability=upload_probability),
    )


def world(**keys: Any) -> Scenario:
    return build_scenario(config(**keys), digits())


def jobs(slots: tuple[int, ...] = (1, 2)) -> list[Job]:
    return [Job(cohort=cohort, seed=3, slot=slot) for cohort in COHORTS for slot in slots]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-9), ("float32", 2e-6)])
def test_softmax_regression_is_that_of_the_plain_engine(path: TrainingPath, precision: str, tolerance: float) -> None:
    keys = {"step": 0.005, "precision": precision}
    linear, module = world(kind="softmax", **keys), world(kind=OWN + "zero_linear", **keys)
    plain, engine = PlainEngine(), TorchEngine(path)
    trained = engine.train(module, jobs())
    for one, other in zip(plain.train(linear, jobs()), trained, strict=True):
        weights, bias = one.model[:-1], one.model[-1]
        expected = np.concatenate([weights.T.ravel(), bias])
        assert other.model.dtype == expected.dtype
        assert np.abs(other.model - expected).max() < tolerance
        assert np.array_equal(one.arrivals, other.arrivals)
        (ours,) = engine.scores(module, [other.model])
        (theirs,) = plain.scores(linear, [one.model])
        assert np.abs(np.concatenate(ours) - np.concatenate(theirs)).max() < 1e3 * tolerance


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("settings", "make"),
    [
        ({}, lambda m: torch.optim.SGD(m.parameters(), lr=0.05)),
        (
            {"momentum": 0.9, "weight_decay": 0.01},
            lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01),
        ),
        (
            {"optimiser": "adam", "step": 0.01, "weight_decay": 0.1},
            lambda m: torch.optim.Adam(m.parameters(), lr=0.01, weight_decay=0.1),
        ),
    ],
    ids=["sgd", "momentum", "adam"],
)
@pytest.mark.parametrize("kind", ["mlp", OWN + "normalised"])
def test_a_slot_is_the_one_written_out_with_torch_optim(
    path: TrainingPath, settings: dict[str, Any], make: Any, kind: str
) -> None:
    scenario = world(kind=kind, batch=9, **settings)
    assert all(size % 9 != 1 for size in scenario.sizes)  # BatchNorm takes no batch of one
    engine = TorchEngine(path)
    (result,) = engine.train(scenario, [Job(cohort=(0, 2, 5), seed=3)])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(scenario.config.seed, "initial model"))
        module = load_factory(kind)(scenario.features, scenario.classes).double()
    parameters = [name for name, _ in module.named_parameters()]
    expected = torch_slot(scenario, module, (0, 2, 5), make, seed=3)
    order = parameters + [name for name in expected if name not in parameters]
    flat = torch.cat([expected[name].reshape(-1) for name in order]).numpy()
    assert result.model.shape == flat.shape
    assert np.abs(result.model - flat).max() < 1e-9
    module.eval()
    with torch.no_grad():
        scores = [module(torch.tensor(inputs)).numpy() for inputs in scenario.test_inputs]
    (ours,) = engine.scores(scenario, [result.model])
    assert np.abs(np.concatenate(ours) - np.concatenate(scores)).max() < 1e-8


@pytest.mark.parametrize("kind", ["mlp", "cnn", OWN + "grouped"])
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_known_layers_agree_with_the_loop(kind: str, optimiser: str) -> None:
    scenario = world(kind=kind, optimiser=optimiser, step=0.01)
    work = jobs(slots=(1,))
    expected = TorchEngine("loop").train(scenario, work)
    for one, other in zip(expected, TorchEngine("layers").train(scenario, work), strict=True):
        assert np.abs(other.model - one.model).max() < 1e-9
        assert np.array_equal(one.arrivals, other.arrivals)


@pytest.mark.parametrize("kind", ["mlp", OWN + "zero_linear"])
@pytest.mark.parametrize(("epochs", "by_samples"), [(1, False), (3, True)])
def test_dense_layers_agree_with_the_loop_both_ways(kind: str, epochs: int, by_samples: bool) -> None:
    scenario = world(kind=kind, epochs=epochs, step=0.01)
    inputs = torch.zeros(1, scenario.features, dtype=torch.float64)
    assert (make_products(inputs, scenario.sizes.tolist(), epochs) is not None) == by_samples
    expected = TorchEngine("loop").train(scenario, jobs())
    for one, other in zip(expected, TorchEngine("layers").train(scenario, jobs()), strict=True):
        assert np.abs(other.model - one.model).max() < 1e-9


@pytest.mark.parametrize(
    ("sizes", "features", "epochs", "room"),
    [
        ([100] * 9, 784, 1, None),
        ([100] * 9, 784, 2, (9, 112, 112)),
        ([5, 700], 784, 2, (2, 704, 704)),
        ([5, 800], 784, 2, None),  # by weights it is less arithmetic
        ([1000] * 130, 3072, 5, (130, 1008, 1008)),
        ([1000] * 140, 3072, 5, None),  # more than the limit of memory
    ],
)
def test_samples_are_followed_where_that_is_less_work_and_fits(
    sizes: list[int], features: int, epochs: int, room: tuple[int, int, int] | None
) -> None:
    made = make_products(torch.zeros(1, features), sizes, epochs)
    assert (None if made is None else made.shape) == room


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_scores_are_the_same_to_the_bit_whatever_other_models_are_scored(kind: str) -> None:
    scenario = world(kind=kind, precision="float32")
    engine = TorchEngine("layers")
    first = engine.initial_model(scenario)
    models = [first * np.float32(factor) for factor in np.linspace(0.5, 1.5, 11)]
    together = list(engine.scores(scenario, models))
    everybody = np.arange(scenario.clients)
    for model, own, plain in zip(models, together, TorchEngine("loop").scores(scenario, models), strict=True):
        (alone,) = engine.scores(scenario, [model])
        assert [each.tobytes() for each in own] == [each.tobytes() for each in alone]
        (asked,) = engine.scores(scenario, [model], clients=[everybody])
        for each, other, third in zip(own, plain, asked, strict=True):
            assert each.shape == other.shape
            assert np.allclose(each, other, atol=1e-5)
            assert np.allclose(each, third, atol=1e-5)


@pytest.mark.parametrize("kind", ["normalised", "dropping", "Branching", "HalfFrozen"])
def test_a_module_of_unknown_layers_is_looped(kind: str) -> None:
    scenario = world(kind=OWN + kind, batch=9)
    layers = TorchEngine("layers").train(scenario, jobs())
    for one, other in zip(TorchEngine("loop").train(scenario, jobs()), layers, strict=True):
        assert one.model.tobytes() == other.model.tobytes()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["mlp", "cnn", OWN + "dropping", OWN + "normalised"])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_result_is_the_same_to_the_bit_whatever_other_jobs_are_in_the_call(
    path: TrainingPath, kind: str, momentum: float
) -> None:
    scenario = world(kind=kind, precision="float32", batch=9, momentum=momentum)
    together = TorchEngine(path).train(scenario, jobs())
    for job, shared in list(zip(jobs(), together, strict=True))[::2]:
        (alone,) = TorchEngine(path).train(scenario, [job])
        assert alone.model.tobytes() == shared.model.tobytes()


@given(
    st.tuples(st.integers(1, 70), st.lists(st.integers(1, 40), max_size=2), st.integers(2, 12)),
    st.lists(st.integers(1, 24), min_size=2, max_size=20),
    st.integers(1, 11),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.data(),
)
@settings(deadline=None)
def test_a_row_of_a_stack_has_the_same_bits_at_any_place_among_any_others(
    widths: tuple[int, list[int], int],
    sizes: list[int],
    batch: int,
    dtype: torch.dtype,
    bias: bool,
    by_samples: bool,
    fastest: bool,
    data: Any,
) -> None:
    features, hidden, classes = widths
    ends = [features, *hidden, classes]
    layers: list[nn.Module] = []
    for taken, made in pairwise(ends):
        layers += [nn.Linear(taken, made, bias=bias), nn.ReLU()]
    network = Network(nn.Sequential(*layers[:-1]).to(dtype), nn.functional.cross_entropy)
    stack = DenseStack(layers[:-1], classes, ways_for(network.flat)[0 if fastest else -1])
    model = config(kind="mlp", batch=batch, epochs=2, step=0.1).model
    rng = np.random.default_rng(len(sizes))
    span = padded_width(max(sizes), dtype)
    shares: Any = SimpleNamespace(
        padded_inputs=pad(torch.tensor(rng.normal(size=(sum(sizes), features)), dtype=dtype)),
        labels=torch.tensor(rng.integers(0, classes, sum(sizes))),
        starts=np.cumsum([0, *sizes]).tolist(),
        products=torch.zeros((len(sizes), span, span), dtype=dtype) if by_samples else None,
    )
    trainings = [
        LocalTraining(
            client=client,
            model=rng.normal(size=network.flat.shape).astype(network.read().dtype),
            orders=np.stack([rng.permutation(size) for _ in range(2)]),
            seed=0,
        )
        for client, size in enumerate(sizes)
    ]
    alone = [stack.train(model, shares, [training])[0] for training in trainings]
    others = data.draw(st.lists(st.sampled_from(range(len(sizes))), min_size=2, max_size=20))
    together = stack.train(model, shares, [trainings[index] for index in others])
    assert [own.tobytes() for own in together] == [alone[index].tobytes() for index in others]


def test_where_rows_depend_on_their_place_the_module_is_looped(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.bmm

    def uneven(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        made = real(one, other)
        made[1::2] += made.abs().max() * torch.finfo(made.dtype).eps  # rounding that differs from row to row
        return made

    scenario = world(batch=9)
    looped = TorchEngine("loop").train(scenario, jobs())
    stacked = TorchEngine("layers").train(scenario, jobs())
    assert any(one.model.tobytes() != other.model.tobytes() for one, other in zip(looped, stacked, strict=True))
    monkeypatch.setattr(torch, "bmm", uneven)
    for one, other in zip(looped, TorchEngine("layers").train(scenario, jobs()), strict=True):
        assert one.model.tobytes() == other.model.tobytes()


def test_equal_jobs_are_trained_once_and_different_ones_are_not_confused() -> None:
    scenario = world()
    engine = TorchEngine()
    first = engine.initial_model(scenario)
    same = [Job(cohort=(0, 1), seed=1), Job(cohort=(1, 0), seed=1), Job(cohort=(0, 1), seed=1, start=first)]
    other = [Job(cohort=(0, 2), seed=1), Job(cohort=(0, 1), seed=2), Job(cohort=(0, 1), seed=1, start=first + 0.1)]
    results = engine.train(scenario, [*same, *other])
    assert results[0] is results[1] is results[2]
    assert len({result.model.tobytes() for result in results}) == 4
    assert not results[0].model.flags.writeable


def test_worlds_that_take_turns_are_prepared_once_and_forgotten_with_their_scenario(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[weakref.ref[Scenario]] = []

    class Counted(DataTensors):
        def __init__(self, scenario: Scenario, network: Network) -> None:
            built.append(weakref.ref(scenario))
            super().__init__(scenario, network)

    monkeypatch.setattr("fedelect.federation.torch.engine.DataTensors", Counted)
    engine, scenarios = TorchEngine(), [world(seed=seed) for seed in (1, 2)]
    for slot in (1, 2, 3):
        for scenario in scenarios:
            trained = engine.train(scenario, jobs((slot,)))
            list(engine.scores(scenario, [result.model for result in trained]))
    assert [one() for one in built] == scenarios
    scenarios.clear()
    del scenario, trained
    gc.collect()
    assert [one() for one in built] == [None, None]


def test_products_beyond_the_limit_are_computed_again_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [world(seed=seed) for seed in (1, 2)]
    engine, small = TorchEngine(), TorchEngine()
    kept = [engine.train(scenario, jobs((slot,))) for slot in (1, 2) for scenario in scenarios]
    assert sum(one.products_bytes for one in engine._data.values()) > 0
    monkeypatch.setattr("fedelect.federation.torch.engine.PRODUCTS_LIMIT", 0)
    again = [small.train(scenario, jobs((slot,))) for slot in (1, 2) for scenario in scenarios]
    assert [one.products_bytes > 0 for one in small._data.values()] == [False, True]
    for ours, theirs in zip(kept, again, strict=True):
        assert [one.model.tobytes() for one in ours] == [one.model.tobytes() for one in theirs]


def test_when_nothing_arrives_the_start_model_stays() -> None:
    scenario = world(upload_probability=0.0)
    engine = TorchEngine()
    start = engine.initial_model(scenario) + 0.25
    (result,) = engine.train(scenario, [Job(cohort=(1, 2), seed=1, start=start)])
    assert np.array_equal(result.model, start)


def test_dropout_draws_from_a_stream_of_the_visit() -> None:
    scenario = world(kind=OWN + "dropping", upload_probability=1.0)
    engine = TorchEngine()

    def trained(trial: int) -> bytes:
        torch.rand(3)  # the global generator moves on and must not matter
        (result,) = engine.train(scenario, [Job(cohort=(0,), seed=1, trial=trial)])
        return result.model.tobytes()

    assert trained(0) == trained(0) != trained(1)


@pytest.mark.parametrize("path", PATHS)
def test_torchs_own_generator_and_threads_are_left_as_they_were(path: TrainingPath) -> None:
    scenario = world(kind=OWN + "dropping")
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    engine = TorchEngine(path)
    (result,) = engine.train(scenario, [Job(cohort=(0, 1), seed=1)])
    list(engine.scores(scenario, [result.model]))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == 2


def test_the_initial_model_follows_from_the_scenarios_seed_alone() -> None:
    first = TorchEngine().initial_model(world())
    torch.rand(5)
    assert np.array_equal(TorchEngine("layers").initial_model(world(upload_probability=0.5)), first)
    assert not np.array_equal(TorchEngine().initial_model(world(seed=2)), first)
    assert TorchEngine().initial_model(world(precision="float32")).dtype == np.float32


def test_frozen_parameters_stay_and_buffers_are_told_apart() -> None:
    scenario = world(kind=OWN + "HalfFrozen", weight_decay=0.1, momentum=0.5, upload_probability=1.0)
    engine = TorchEngine()
    first = engine.initial_model(scenario)
    # inner 42, last 70, unread 3 | frozen 390 | constant 2, seen 1; not the twin, the integers, what is not saved
    assert first.shape == (42 + 70 + 3 + 390 + 2 + 1,)
    (result,) = engine.train(scenario, [Job(cohort=(0, 1), seed=1)])
    assert np.all(result.model[:115] != first[:115])
    assert result.model[115:-1] == pytest.approx(first[115:-1], rel=1e-12)
    visits = [-(-int(size) // 6) * 2 for size in scenario.sizes[:2]]  # steps of a round: E = 2, B = 6
    assert result.model[-1] == pytest.approx(3 * np.average(visits, weights=scenario.sizes[:2]))
    (again,) = engine.train(scenario, [Job(cohort=(0, 1), seed=1)])
    assert again.model.tobytes() == result.model.tobytes()


def test_a_slot_goes_on_from_a_model_that_was_saved_as_bytes() -> None:
    scenario = world(kind=OWN + "normalised", batch=9)
    engine = TorchEngine()
    (first,) = engine.train(scenario, [Job(cohort=(0, 2), seed=1, slot=1)])
    like = engine.initial_model(scenario)
    saved = np.frombuffer(first.model.tobytes(), dtype=like.dtype).reshape(like.shape)
    (one,) = engine.train(scenario, [Job(cohort=(0, 2), seed=1, slot=2, start=first.model)])
    (other,) = TorchEngine().train(scenario, [Job(cohort=(0, 2), seed=1, slot=2, start=saved)])
    assert one.model.tobytes() == other.model.tobytes()
    assert not np.array_equal(one.model, first.model)


def test_the_engine_survives_pickling_without_what_it_has_built() -> None:
    engine = TorchEngine("layers", "cpu")
    engine.train(world(), jobs()[:1])
    copied = pickle.loads(pickle.dumps(engine))
    assert isinstance(copied, TorchEngine)
    assert copied.name == engine.name == "torch-layers"
    assert len(pickle.dumps(engine)) < 200


@pytest.mark.parametrize("path", PATHS)
def test_ones_own_loss_is_minimised(path: TrainingPath) -> None:
    scenario = world(kind="mlp", loss=OWN + "mean_square", epochs=20, upload_probability=1.0)
    engine = TorchEngine(path)
    (result,) = engine.train(scenario, [Job(cohort=(0, 1), seed=1)])

    def square(model: Any) -> float:
        (scores,) = engine.scores(scenario, [model])
        inputs = np.concatenate(scores) - np.eye(scenario.classes)[np.concatenate(scenario.test_labels)]
        return float((inputs**2).sum(axis=1).mean())

    assert square(result.model) < 0.6 * square(engine.initial_model(scenario))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 12))
def test_every_row_of_a_stack_takes_its_own_batches_in_its_own_order(sizes: list[int], batch: int) -> None:
    sizes = sorted(sizes, reverse=True)
    taken: list[list[int]] = [[] for _ in sizes]
    for rows, samples in batches(sizes, batch):
        for row in range(*rows.indices(len(sizes))):
            taken[row] += [*range(samples.start, samples.stop), -1]
    for size, row_taken in zip(sizes, taken, strict=True):
        cuts = [[*range(start, min(start + batch, size)), -1] for start in range(0, size, batch)]
        assert row_taken == [sample for cut in cuts for sample in cut]


def records(work: Any, folder: Path, **options: Any) -> RunRecords:
    simulate(work, digits(), folder, **options)
    return read_run(folder)


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", ["mlp", OWN + "normalised"])
def test_an_interrupted_run_ends_with_the_same_records(tmp_path: Path, kind: str) -> None:
    work = plan("quick-init-ucb", "random", slots=4, config=config(kind=kind, start="warm", batch=9))
    undisturbed = records(work, tmp_path / "undisturbed", engine=TorchEngine())

    def progress(finished: int, total: int) -> None:
        if finished >= 2 * 4:
            raise Stop

    with pytest.raises(Stop):
        simulate(work, digits(), tmp_path / "run", engine=TorchEngine(), progress=progress, checkpoint_every_s=0.0)
    resumed = records(work, tmp_path / "run", engine=TorchEngine())
    assert sorted_records(resumed) == sorted_records(undisturbed)
    assert resumed.header.engine == "torch-layers"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"kind": "no_such_module:factory"}, "model.kind 'no_such_module:factory' cannot be imported"),
        ({"kind": OWN + "absent"}, "model.kind .*cannot be imported"),
        ({"kind": OWN + "not_a_function"}, "model.kind .*cannot be called"),
        ({"kind": OWN + "of_the_wrong_shape"}, r"makes \(2, 11\) of two inputs; allowed: scores of shape \(2, 10\)"),
        ({"kind": OWN + "for_other_inputs"}, r"fails on inputs of shape \(2, 64\)"),
        ({"kind": OWN + "without_parameters"}, "nothing to train"),
        ({"kind": OWN + "no_module"}, r"makes int; allowed: a factory \(features, classes\) -> torch.nn.Module"),
        ({"loss": OWN + "absent"}, "model.loss .*cannot be imported"),
        ({"loss": OWN + "of_each"}, "training fails on a batch of 6 inputs: .*a loss that gives one number"),
        ({"kind": OWN + "normalised", "batch": 1}, "training fails on a batch of 1 inputs"),
        ({"step": 1e200}, r"model.step: got 1e\+200, under which training leaves the range of float64"),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TorchEngine().train(world(**keys, upload_probability=1.0), [Job(cohort=(0, 1), seed=1)])


def test_the_cnn_refuses_inputs_that_are_no_square_image() -> None:
    with pytest.raises(ConfigurationError, match=r'model\.kind: got "cnn" for inputs of 63 numbers; it needs a square'):
        load_factory("cnn")(63, 10)
    with pytest.raises(ConfigurationError, match="at least 4 x 4"):
        load_factory("cnn")(9, 10)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (Job(cohort=(), seed=1), "cohort: got no clients"),
        (Job(cohort=(0, 6), seed=1), "outside 0..5"),
        (Job(cohort=(1,), seed=1, start=np.zeros(5)), r"start: got a model of shape \(5,\).*\(4810,\)"),
        (Job(cohort=(1,), seed=1, start=np.full(4810, np.nan)), "finite numbers"),
    ],
)
def test_a_job_that_does_not_fit_the_scenario_is_refused(job: Job, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TorchEngine().train(world(), [job])


@pytest.mark.parametrize(
    ("name", "made"),
    [("auto", "torch-layers"), ("torch", "torch-layers"), ("torch-loop", "torch-loop")],
)
def test_modules_have_engines_of_their_own(name: str, made: str) -> None:
    assert make_engine(name, config()).name == made
    with pytest.raises(ConfigurationError, match=r'engine: got .*allowed with model\.kind = "mlp": auto, torch'):
        make_engine("plain", config())
    if name != "auto":
        with pytest.raises(ConfigurationError, match=r'allowed with model\.kind = "softmax": auto, plain'):
            make_engine(name, config(kind="softmax"))


def test_an_engine_of_no_known_sort_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r'path: got .*allowed: "loop" or "layers"'):
        TorchEngine("fast")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="device: got 'abacus', which cannot be used"):
        TorchEngine("loop", "abacus")


@pytest.mark.parametrize(("name", "least"), [("cnn_digits", 0.85), ("my_model", 0.85)])
def test_the_examples_reach_what_they_say(name: str, least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = parse_scenario((EXAMPLES / f"{name}.toml").read_text())
    scenario = build_scenario(example, digits())
    engine = make_engine("auto", example)
    (result,) = engine.train(scenario, [Job(cohort=(0, 1, 2, 3, 4), seed=1)])
    (scores,) = engine.scores(scenario, [result.model])
    assert judge(scenario, scores).mean() > least


def test_importing_the_federation_loads_no_torch() -> None:
    code = "import sys, fedelect, fedelect.federation, fedelect.simulator; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_torch_the_install_line_is_named() -> None:
    code = "import sys; sys.modules['torch'] = None; import fedelect.federation.torch.engine"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError: models by PyTorch needs an extra" in done.stderr
    assert "pip install 'fedelect[torch]'" in done.stderr
