import gc
import hashlib
import itertools
import os
import subprocess
import sys
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedelect.errors import ConfigurationError
from fedelect.federation import Job, PlainEngine, StackedEngine
from fedelect.federation.linear import compiled, kernels
from fedelect.federation.linear import engine as linear_engine
from fedelect.scenario import ChannelConfig, DataConfig, Dataset, ModelConfig, Scenario, ScenarioConfig, build_scenario
from fedelect.seeds import stream

PATHS: tuple[Literal["gram", "primal"], ...] = ("gram", "primal")
ENGINES = [StackedEngine(path, compiled=how) for path, how in itertools.product(PATHS, (True, False))]
COMPILED = ENGINES[0], ENGINES[2]
by_name = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def dataset(features: int = 30, classes: int = 4, samples: int = 400, *, whole: bool = False) -> Dataset:
    """Clusters whose inputs are zero for the most part, as pixels are; small whole numbers if asked."""
    rng = stream(0, "stacked data", features, classes, int(whole))
    centres = rng.normal(size=(classes, features)) * 2

    def draw(count: int) -> tuple[Any, Any]:
        labels = np.arange(count) % classes
        inputs = (rng.normal(size=(count, features)) + centres[labels]) * (rng.random((count, features)) < 0.3)
        return (np.round(inputs) if whole else inputs), labels

    return Dataset(*draw(samples), *draw(120))


def world(source: Dataset | None = None, **keys: Any) -> Scenario:
    config = ScenarioConfig(
        clients=5,
        budget=3,
        rounds_per_slot=3,
        data=DataConfig(iid_clients=5, samples=(50, 90)),
        model=ModelConfig(step=0.05, epochs=3, batch=20, precision="float64"),
    )
    return build_scenario(msgspec.structs.replace(config, **keys), source or dataset())


def difference(engine: StackedEngine, scenario: Scenario, jobs: list[Job]) -> float:
    """Largest difference of a weight from the plain loop's, in parts of the largest weight."""
    pairs = zip(engine.train(scenario, jobs), PlainEngine().train(scenario, jobs), strict=True)
    worst = 0.0
    for ours, plain in pairs:
        assert ours.model.dtype == plain.model.dtype
        assert np.array_equal(ours.arrivals, plain.arrivals)
        assert ours.losses is None
        if not np.array_equal(ours.model, plain.model):
            worst = max(worst, float(np.abs(ours.model - plain.model).max() / np.abs(plain.model).max()))
    return worst


@by_name
@settings(max_examples=25)
@given(
    shape=st.sampled_from([(1, 2), (7, 3), (30, 4), (12, 17)]),
    samples=st.tuples(st.integers(17, 130), st.integers(0, 20)),
    kind=st.sampled_from(["svm", "softmax"]),
    # Not round: a bias that is a multiple of the step must not meet a margin up to rounding.
    step=st.sampled_from([0.0213, 0.1937]),
    epochs=st.integers(1, 4),
    batch=st.sampled_from([1, 7, 16, 64, 1000]),
    shuffle=st.sampled_from(["epoch", "round", "slot"]),
    arriving=st.sampled_from([1.0, 0.6]),
    trials=st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
def test_every_path_agrees_with_the_plain_loop_in_64_bits(
    engine: StackedEngine,
    shape: tuple[int, int],
    samples: tuple[int, int],
    kind: str,
    step: float,
    epochs: int,
    batch: int,
    shuffle: Any,
    arriving: float,
    trials: tuple[int, int],
) -> None:
    features, classes = shape
    scenario = world(
        dataset(features, classes, samples=1000),
        rounds_per_slot=2,
        data=DataConfig(iid_clients=5, samples=(samples[0], sum(samples))),
        model=ModelConfig(kind=kind, step=step, epochs=epochs, batch=batch, shuffle=shuffle, precision="float64"),
        channel=ChannelConfig(upload_probability=arriving),
    )
    warm = stream(1, "start").normal(size=(features + 1, classes)) / 5
    jobs = [
        Job(cohort=(0, 2, 4), seed=3, trial=trials[0]),
        Job(cohort=(0, 1), start=warm, seed=3, trial=trials[1]),
        Job(cohort=(4,), start=warm, seed=3, trial=trials[0], slot=2),
    ]
    assert difference(engine, scenario, jobs) < 1e-9


@by_name
@pytest.mark.parametrize("shuffle", ["epoch", "round", "slot"])
@pytest.mark.parametrize("kind", ["svm", "softmax"])
def test_every_path_agrees_with_the_plain_loop_in_32_bits_to_rounding(
    engine: StackedEngine, kind: str, shuffle: Any
) -> None:
    # Rounding may push a sample to the other side of its margin for a step: that is what the bound leaves room for.
    scenario = world(model=ModelConfig(kind=kind, step=0.05, epochs=3, batch=20, shuffle=shuffle))
    assert difference(engine, scenario, jobs_of(6)) < (1e-3 if kind == "svm" else 1e-5)


@by_name
@pytest.mark.parametrize("shuffle", ["epoch", "round"])
def test_a_sample_that_just_meets_its_margin_is_not_learnt_from(engine: StackedEngine, shuffle: Any) -> None:
    # Whole inputs, steps that are powers of two: all sums are exact, so margins of exactly 1 occur, and any order of
    # addition gives the same model to the bit.
    scenario = world(
        dataset(whole=True),
        rounds_per_slot=2,
        data=DataConfig(iid_clients=5, samples=(64, 64)),
        model=ModelConfig(step=0.25, epochs=3, batch=16, shuffle=shuffle, precision="float64"),
    )
    job = Job(cohort=(1,), seed=1)
    (ours,), (plain,) = engine.train(scenario, [job]), PlainEngine().train(scenario, [job])
    assert np.array_equal(ours.model, plain.model)


def jobs_of(count: int) -> list[Job]:
    """Several jobs of each trial, some of them warm."""
    cohorts = list(itertools.combinations(range(5), 3))
    start = stream(2, "warm").normal(size=(31, 4)) / 10
    return [
        Job(
            cohort=cohorts[place % len(cohorts)],
            seed=1,
            trial=place // 4,
            slot=1 + place % 2,
            start=(None, start)[place % 3 == 0],
        )
        for place in range(count)
    ]


@by_name
@pytest.mark.parametrize("shuffle", ["epoch", "round"])
@pytest.mark.parametrize("kind", ["svm", "softmax"])
def test_a_result_is_the_same_to_the_bit_alone_and_in_batches_of_any_size_and_order(
    engine: StackedEngine, kind: str, shuffle: Any
) -> None:
    # 40 jobs of 4 classes at 3 of 5 clients: about 100 columns at a client, in wide and narrow packs and two blocks.
    scenario = world(
        channel=ChannelConfig(upload_probability=0.9),
        rounds_per_slot=2,
        model=ModelConfig(kind=kind, step=0.05, epochs=2, batch=20, shuffle=shuffle),
    )
    jobs = jobs_of(40)
    together = [result.model.tobytes() for result in engine.train(scenario, jobs)]
    assert len(set(together)) == 40
    for size in (1, 2, 5, 9, 17):
        picked = list(range(size, 40, 11 if size == 1 else 1))[: 3 * size]
        for first in range(0, len(picked), size):
            part = picked[first : first + size][::-1]
            apart = engine.train(scenario, [jobs[place] for place in part])
            assert [result.model.tobytes() for result in apart] == [together[place] for place in part]


@pytest.mark.parametrize("engine", COMPILED, ids=lambda engine: engine.name)
def test_groups_of_jobs_that_fit_into_memory_change_nothing(
    engine: StackedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = world(model=ModelConfig(step=0.05, epochs=2, batch=20))
    together = [result.model.tobytes() for result in engine.train(scenario, jobs_of(12))]
    monkeypatch.setattr(compiled, "_BYTES_AT_ONCE", 20_000)
    assert [result.model.tobytes() for result in engine.train(scenario, jobs_of(12))] == together


DIGEST = """
import hashlib
from tests.federation.test_linear_engine import COMPILED, jobs_of, world
from fedelect.scenario import ModelConfig
for engine in COMPILED:
    scenario = world(model=ModelConfig(step=0.05, epochs=2, batch=20))
    models = [result.model for result in engine.train(scenario, jobs_of(12))]
    scores = [part.tobytes() for own in engine.scores(scenario, models) for part in own]
    print(hashlib.sha256(b"".join([model.tobytes() for model in models] + scores)).hexdigest())
"""


def test_results_and_scores_are_the_same_to_the_bit_in_another_process_with_another_number_of_threads() -> None:
    here = []
    for engine in COMPILED:
        scenario = world(model=ModelConfig(step=0.05, epochs=2, batch=20))
        models = [result.model for result in engine.train(scenario, jobs_of(12))]
        scores = [part.tobytes() for own in engine.scores(scenario, models) for part in own]
        here.append(hashlib.sha256(b"".join([model.tobytes() for model in models] + scores)).hexdigest())
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        there = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        assert there.stdout.split() == here


@by_name
def test_equal_jobs_are_trained_once_and_nothing_arriving_keeps_the_start(engine: StackedEngine) -> None:
    scenario = world(channel=ChannelConfig(upload_probability=0.0))
    start = stream(1, "start").normal(size=(31, 4))
    same = [Job(cohort=(0, 1), seed=1, start=start), Job(cohort=(1, 0), seed=1, start=start.copy())]
    one, other = engine.train(scenario, same)
    assert one is other
    assert np.array_equal(one.model, start)
    assert not one.model.flags.writeable
    assert engine.train(scenario, []) == []


@by_name
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_scores_are_those_of_the_plain_engine_and_do_not_depend_on_the_other_models(
    engine: StackedEngine, precision: Any
) -> None:
    scenario = world(model=ModelConfig(precision=precision))
    rng = stream(5, "models")
    models = [rng.normal(size=(31, 4)).astype(precision) for _ in range(70)]
    together = [[part.tobytes() for part in own] for own in engine.scores(scenario, models)]
    for first, size in ((0, 1), (3, 5), (40, 30)):
        apart = list(engine.scores(scenario, models[first : first + size]))
        assert [[part.tobytes() for part in own] for own in apart] == together[first : first + size]
    ours, plain = list(engine.scores(scenario, models)), list(PlainEngine().scores(scenario, models))
    assert len(ours) == 70
    for own, reference in zip(ours, plain, strict=True):
        assert [part.shape for part in own] == [part.shape for part in reference]
        for part, expected in zip(own, reference, strict=True):
            assert part.dtype == precision
            assert part == pytest.approx(expected, abs=1e-4 if precision == "float32" else 1e-12)


def test_batches_too_many_to_keep_their_sums_are_summed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = world(model=ModelConfig(step=0.05, epochs=3, batch=4, shuffle="round", precision="float64"))
    kept = ENGINES[0].train(scenario, jobs_of(2))
    monkeypatch.setattr(compiled, "_KEPT_BYTES", 0)
    assert difference(ENGINES[0], scenario, jobs_of(2)) < 1e-9
    anew = ENGINES[0].train(scenario, jobs_of(2))
    assert any(one.model.tobytes() != other.model.tobytes() for one, other in zip(kept, anew, strict=True))


def test_a_job_that_does_not_fit_and_training_that_diverges_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="cohort: got no clients"):
        ENGINES[0].train(world(), [Job(cohort=(), seed=1)])
    diverging = world(model=ModelConfig(step=1e38, epochs=5, batch=3))
    for engine in ENGINES:
        with pytest.raises(ConfigurationError, match=r"^model\.step: got 1e\+38, under which training leaves"):
            engine.train(diverging, [Job(cohort=(0, 1), seed=1)])
    with pytest.raises(ConfigurationError, match="path: got 'dual'; allowed: auto, gram, primal"):
        StackedEngine("dual")  # type: ignore[arg-type]


def test_without_numba_numpy_does_the_work_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    for module in ("compiled", "hinge_kernel", "kernels", "vectors"):
        monkeypatch.delitem(sys.modules, f"fedelect.federation.linear.{module}")
    engine = StackedEngine()
    assert engine.name == "stacked-auto-numpy"
    assert difference(engine, world(), jobs_of(2)) < 1e-9
    with pytest.raises(ImportError):
        StackedEngine(compiled=True)


def test_kernels_that_cannot_be_kept_on_disk_are_compiled_all_the_same() -> None:
    space: dict[str, Any] = {}
    exec("def double(x): return 2 * x", space)  # has no file, and so no place to keep it
    assert kernels.compile_function(space["double"])(21) == 42


def test_the_names_of_engines_whose_last_bits_may_differ_differ() -> None:
    names = [engine.name for engine in ENGINES]
    assert names == ["stacked-gram", "stacked-gram-numpy", "stacked-primal", "stacked-primal-numpy"]
    assert StackedEngine(compiled=True).name == "stacked-auto"


def test_auto_goes_by_the_scenario_few_samples_for_many_features_are_gram(monkeypatch: pytest.MonkeyPatch) -> None:
    auto = StackedEngine()
    few, many = world(dataset(features=200)), world(dataset(features=2), model=ModelConfig(kind="softmax"))
    assert (auto.path(few), auto.path(many)) == ("gram", "primal")
    assert StackedEngine("primal").path(few) == "primal"
    for scenario, other in ((few, ENGINES[0]), (many, ENGINES[2])):
        job = Job(cohort=(0, 3), seed=1)
        (ours,), (same,) = auto.train(scenario, [job]), other.train(scenario, [job])
        assert ours.model.tobytes() == same.model.tobytes()
    monkeypatch.setattr(linear_engine, "GRAM_BYTES", 1000)
    assert StackedEngine().path(few) == "primal"


def test_memory_is_freed_with_the_scenario_and_bounded_over_scenarios() -> None:
    engine = StackedEngine("gram", memory_bytes=1)
    job = Job(cohort=(0, 1), seed=1)
    first, second = world(), world(seed=2)
    results = [engine.train(scenario, [job])[0].model.tobytes() for scenario in (first, second, first)]
    assert results[0] == results[2] != results[1]
    assert len(engine._cache) == 1
    assert engine.memory_bytes > 2 * 64 * 64 * 8
    roomy = StackedEngine("gram")
    for scenario in (first, second):
        roomy.train(scenario, [job])
    assert len(roomy._cache) == 2
    del first, second, scenario
    gc.collect()
    assert roomy.memory_bytes == engine.memory_bytes == 0
