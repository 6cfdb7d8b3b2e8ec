"""What flawed clients upload: a literal reference, and the same in every engine."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.reference.federation import hinge_gradient
from tests.reference.flaws import upload
from tests.worlds import digits

from fedelect.equations.sketch import UpdateSketch
from fedelect.errors import ConfigurationError
from fedelect.federation import Engine, Job, PlainEngine, StackedEngine
from fedelect.federation.uploads import make_upload, trains_locally
from fedelect.scenario import Scenario, ScenarioConfig, build_scenario, change_scenario, draw_arrivals, draw_failures
from fedelect.seeds import stream

ALL_KINDS = {
    "free_riders": {"clients": [0, 1], "noise": 0.3},
    "flipped_updates": {"clients": [1, 2], "scale": 0.5},
    "scaled_updates": {"clients": [1, 3], "scale": 1.75},
    "failing": {"clients": [4, 0], "rate": 0.5},
}
COHORTS = ((0, 1, 2), (1, 3, 5), (0, 4), (4,), (0, 1, 2, 3, 4, 5))


def world(flaws: dict[str, Any] | None = None, *, kind: str = "svm", **model: Any) -> Scenario:
    config = change_scenario(
        ScenarioConfig(),
        {
            "clients": 6,
            "budget": 3,
            "rounds_per_slot": 3,
            "data": {"source": "digits", "iid_clients": 2, "samples": [12, 30]},
            "model": {"kind": kind, "step": 0.0017, "epochs": 2, "batch": 8, "precision": "float64", **model},
            "channel": {"upload_probability": 0.8},
            "flaws": ALL_KINDS if flaws is None else flaws,
        },
    )
    return build_scenario(config, digits())


def jobs(scenario: Scenario, engine: Engine) -> list[Job]:
    first = engine.initial_model(scenario)
    start = first + stream(1, "start").normal(size=first.shape) / 20
    return [
        Job(cohort=cohort, start=start if slot > 1 else None, seed=3, slot=slot)
        for cohort in COHORTS
        for slot in (1, 2, 3)
    ]


@pytest.mark.parametrize("client", range(6))
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_an_upload_is_what_the_reference_says(client: int, precision: str) -> None:
    scenario = world(precision=precision)
    rng = stream(2, "models")
    start, trained = rng.normal(size=(2, 65, 10)).astype(precision)
    where = {"seed": 7, "trial": 1, "slot": 4, "round_": 2}
    made = make_upload(scenario, client, start, trained, **where)
    assert made.dtype == np.dtype(precision)
    expected = upload(scenario, client, start, trained, **where)
    assert np.allclose(made, expected, rtol=0, atol=1e-12 if precision == "float64" else 1e-5)
    assert np.abs(made - trained).max() > 0.01 or client in (4, 5)
    assert trains_locally(scenario, client) == (client > 1)


def test_a_client_without_flaw_uploads_what_it_trained() -> None:
    start, trained = np.zeros(3), np.ones(3)
    assert make_upload(world(), 5, start, trained, seed=1, trial=0, slot=1, round_=0) is trained
    assert make_upload(world(flaws={}), 0, start, trained, seed=1, trial=0, slot=1, round_=0) is trained


def test_the_noise_of_a_free_rider_is_its_own_in_each_round() -> None:
    scenario, start = world(), np.ones(50)
    made = [
        make_upload(scenario, client, start, start, seed=1, trial=0, slot=1, round_=round_)
        for client, round_ in ((0, 0), (0, 1), (0, 0))
    ]
    assert np.array_equal(made[0], made[2]) and not np.array_equal(made[0], made[1])


def test_free_riders_without_noise_leave_a_cold_model_as_it_was() -> None:
    scenario = world({"free_riders": {"share": 1.0}})
    (training,) = PlainEngine().train(scenario, [Job(cohort=(0, 1, 2), seed=1)])
    assert not training.model.any() and training.arrivals.any()


def test_the_plain_engine_averages_uploads_by_the_reference() -> None:
    scenario = world(epochs=1, batch=100)  # one step for each client and round
    for job in (Job(cohort=(0, 1, 2, 3, 4, 5), seed=5, slot=slot) for slot in (1, 2, 3)):
        arrivals = draw_arrivals(scenario, job.cohort, seed=5, trial=0, slot=job.slot)
        model = np.zeros((65, 10))
        for round_ in range(3):
            sent, sizes = [], []
            for client in np.flatnonzero(arrivals[round_]).tolist():
                labels = scenario.train_labels[client].tolist()
                trained = model - 0.0017 * hinge_gradient(model, scenario.train_inputs[client], labels)
                where = {"seed": 5, "trial": 0, "slot": job.slot, "round_": round_}
                sent.append(upload(scenario, client, model, trained, **where))
                sizes.append(len(labels))
            model = sum(size * one for size, one in zip(sizes, sent, strict=True)) / sum(sizes) if sizes else model
        assert np.allclose(PlainEngine().train(scenario, [job])[0].model, model, rtol=0, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("path", ["gram", "primal"])
@pytest.mark.parametrize("kind", ["svm", "softmax"])
def test_the_stacked_engine_agrees_with_the_plain_one(path: Any, compiled: bool, kind: str) -> None:
    engine, scenario = StackedEngine(path, compiled=compiled), world(kind=kind)
    work = jobs(scenario, engine)
    together, plain = engine.train(scenario, work), PlainEngine().train(scenario, work)
    for job, ours, reference in zip(work, together, plain, strict=True):
        assert np.array_equal(ours.arrivals, reference.arrivals)
        assert np.abs(ours.model - reference.model).max() <= 1e-9 * max(1.0, float(np.abs(reference.model).max()))
        assert np.array_equal(engine.train(scenario, [job])[0].model, ours.model)  # alone or together, bit for bit


@pytest.mark.parametrize("path", ["loop", "layers"])
def test_the_torch_engine_agrees_with_the_plain_one(path: Any) -> None:
    pytest.importorskip("torch")
    from fedelect.federation.torch.engine import TorchEngine

    # Without noise: the weights are in another order there, and so the noise is on others.
    flaws = ALL_KINDS | {"free_riders": {"clients": [0, 1]}}
    linear, module = world(flaws, kind="softmax"), world(flaws, kind="tests.torch_models:zero_linear")
    work = jobs(linear, PlainEngine())
    flat_work = [
        Job(cohort=job.cohort, start=None if job.start is None else flatten(job.start), seed=job.seed, slot=job.slot)
        for job in work
    ]
    ours, plain = TorchEngine(path).train(module, flat_work), PlainEngine().train(linear, work)
    for one, reference in zip(ours, plain, strict=True):
        assert np.array_equal(one.arrivals, reference.arrivals)
        assert np.abs(one.model - flatten(reference.model)).max() < 1e-9


def test_both_paths_of_the_torch_engine_agree_on_noise() -> None:
    pytest.importorskip("torch")
    from fedelect.federation.torch.engine import TorchEngine

    scenario = world(kind="mlp", step=0.02)
    loop, stacked = TorchEngine("loop"), TorchEngine("layers")
    work = jobs(scenario, loop)
    for one, other in zip(loop.train(scenario, work), stacked.train(scenario, work), strict=True):
        assert np.abs(one.model - other.model).max() < 1e-9


def flatten(model: Any) -> Any:
    """The weights (F+1, C) in the order in which torch keeps them."""
    return np.concatenate([model[:-1].T.ravel(), model[-1]])


def test_a_failing_client_sends_nothing_in_the_whole_slot_and_fails_at_its_rate() -> None:
    scenario = world({"failing": {"clients": [1], "rate": 0.3}})
    failures = [draw_failures(scenario, (0, 1, 2), seed=1, trial=0, slot=slot) for slot in range(1, 2001)]
    assert not np.stack(failures)[:, [0, 2]].any()
    assert abs(np.mean([failed[1] for failed in failures]) - 0.3) < 0.04
    for slot, failed in enumerate(failures[:30], start=1):
        arrivals = draw_arrivals(scenario, (0, 1, 2), seed=1, trial=0, slot=slot)
        assert not (failed[1] and arrivals[:, 1].any())
        assert draw_failures(scenario, (1,), seed=1, trial=0, slot=slot).tolist() == [failed[1]]


def test_updates_that_leave_the_range_of_floats_are_named() -> None:
    scenario = world({"scaled_updates": {"share": 1.0, "scale": 1e300}}, precision="float32")
    with pytest.raises(ConfigurationError, match=r"a smaller step, or weaker flaws of updates \(scaled_updates\)"):
        PlainEngine().train(scenario, [Job(cohort=(0, 1), seed=1)])


def projected(scenario: Scenario, change: Any) -> Any:
    return UpdateSketch(change.size, scenario.config.seed).project(change)


ENGINES = [PlainEngine(), StackedEngine("gram", compiled=False), StackedEngine("primal", compiled=False)]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_updates_are_the_projected_changes_that_members_upload(engine: Engine) -> None:
    scenario = world({"flipped_updates": {"clients": [2], "scale": 0.5}, "failing": {"clients": [4], "rate": 1.0}})
    first = engine.initial_model(scenario)
    start = first + stream(1, "start").normal(size=first.shape) / 20
    for client in (1, 2):  # of a cohort of one, what arrives is the new model, so the changes of all rounds add up
        (alone,) = engine.train(scenario, [Job(cohort=(client,), start=start, seed=3, slot=2, updates=True)])
        assert alone.updates is not None and alone.arrivals.any()
        np.testing.assert_allclose(alone.updates[0], projected(scenario, alone.model - start), atol=1e-12)
    (training,) = engine.train(scenario, [Job(cohort=(1, 2, 4), start=start, seed=3, slot=2, updates=True)])
    assert training.updates is not None and np.isnan(training.updates[2]).all()  # nothing of it arrives
    assert np.isfinite(training.updates[:2]).all()
    (plain,) = engine.train(scenario, [Job(cohort=(1, 2, 4), start=start, seed=3, slot=2)])
    assert plain.updates is None and (plain.model == training.model).all()


@pytest.mark.parametrize("engine", ENGINES[1:], ids=lambda engine: engine.name)
def test_updates_of_the_fast_engines_are_those_of_the_plain_loop(engine: Engine) -> None:
    scenario = world()
    asked = [dataclasses.replace(job, updates=True) for job in jobs(scenario, engine)]
    for fast, plain in zip(engine.train(scenario, asked), PlainEngine().train(scenario, asked), strict=True):
        assert fast.updates is not None and plain.updates is not None
        np.testing.assert_allclose(fast.updates, plain.updates, atol=1e-9)
