from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from tests.reference.federation import hinge_gradient, svm_slot

from fedelect.errors import ConfigurationError
from fedelect.federation import Job, initial_model, train
from fedelect.federation.linear.model import LOSSES, mean_loss
from fedelect.federation.train import batch_orders, train_locally
from fedelect.scenario import ChannelConfig, DataConfig, Dataset, ModelConfig, Scenario, ScenarioConfig, build_scenario
from fedelect.seeds import stream

KEY: dict[str, Any] = {"seed": 1, "trial": 2, "slot": 3, "round_": 4, "client": 5}


def world(**keys: Any) -> Scenario:
    rng = stream(0, "training data")
    centres = rng.normal(size=(4, 5)) * 3
    labels, test_labels = np.arange(200) % 4, np.arange(40) % 4
    inputs, test_inputs = rng.normal(size=(200, 5)) + centres[labels], rng.normal(size=(40, 5)) + centres[test_labels]
    data = Dataset(inputs, labels, test_inputs, test_labels)
    config = ScenarioConfig(
        clients=6,
        budget=3,
        rounds_per_slot=4,
        data=DataConfig(iid_clients=2, samples=(7, 25)),
        model=ModelConfig(step=0.05, epochs=2, batch=6, precision="float64"),
    )
    return build_scenario(msgspec.structs.replace(config, **keys), data)


def test_a_slot_is_the_one_written_out_with_loops() -> None:
    scenario = world()
    (result,) = train(scenario, [Job(cohort=(0, 2, 5), seed=3, trial=1, slot=7)])
    assert result.model == pytest.approx(svm_slot(scenario, (0, 2, 5), seed=3, trial=1, slot=7), rel=1e-9, abs=1e-12)
    assert result.arrivals.shape == (4, 3)
    assert result.arrivals.all()
    assert result.losses is None


@pytest.mark.parametrize("shuffle", ["round", "slot"])
def test_the_samples_keep_one_order_for_a_round_or_a_slot_if_told_so(shuffle: Literal["round", "slot"]) -> None:
    scenario = world(model=ModelConfig(step=0.05, epochs=2, batch=6, precision="float64", shuffle=shuffle))
    (result,) = train(scenario, [Job(cohort=(2,), seed=3, trial=1, slot=7)])
    inputs, labels = scenario.train_inputs[2], scenario.train_labels[2]
    model = initial_model(scenario)
    for round_ in range(4):
        name = (1, 7, round_, 2) if shuffle == "round" else (1, 7, 2)
        order = stream(3, "training", *name).permutation(len(labels))
        model = train_locally(LOSSES["svm"], model, inputs, labels, np.stack([order, order]), step=0.05, batch=6)
    assert np.array_equal(result.model, model)


def test_a_result_is_the_same_to_the_bit_whatever_other_jobs_are_in_the_call() -> None:
    scenario = world(channel=ChannelConfig(upload_probability=0.6), model=ModelConfig(step=0.05, epochs=2, batch=6))
    jobs = [Job(cohort=cohort, seed=1, slot=slot) for cohort in ((0, 1, 2), (1, 3, 4), (2, 5)) for slot in (1, 2)]
    together = train(scenario, jobs)
    for job, shared in zip(jobs, together, strict=True):
        (alone,) = train(scenario, [job])
        assert alone.model.tobytes() == shared.model.tobytes()
        assert np.array_equal(alone.arrivals, shared.arrivals)


def test_equal_jobs_are_trained_once_and_different_ones_are_not_confused() -> None:
    scenario = world()
    start = np.full((6, 4), 0.25)
    same = [Job(cohort=(0, 1), seed=1), Job(cohort=(1, 0), seed=1), Job(cohort=(0, 1), seed=1, start=np.zeros((6, 4)))]
    other = [
        Job(cohort=(0, 2), seed=1),
        Job(cohort=(0, 1), seed=2),
        Job(cohort=(0, 1), seed=1, trial=1),
        Job(cohort=(0, 1), seed=1, slot=2),
        Job(cohort=(0, 1), seed=1, start=start),
    ]
    results = train(scenario, [*same, *other])
    assert results[0] is results[1] is results[2]
    assert len({result.model.tobytes() for result in results}) == 1 + len(other)


def test_a_clients_batches_and_upload_luck_do_not_depend_on_the_rest_of_the_cohort() -> None:
    # When nobody but client 0 ever arrives, the global model is client 0's, no matter who else is elected.
    scenario = world(channel=ChannelConfig(upload_probability=(0.7, 0.0, 0.0, 0.0, 0.0, 0.0)))
    results = train(scenario, [Job(cohort=cohort, seed=4) for cohort in ((0,), (0, 1), (0, 3, 5))])
    assert len({result.model.tobytes() for result in results}) == 1
    assert len({result.arrivals[:, 0].tobytes() for result in results}) == 1


def test_when_nothing_arrives_the_start_model_stays() -> None:
    scenario = world(channel=ChannelConfig(upload_probability=0.0))
    start = stream(1, "start").normal(size=(6, 4))
    (result,) = train(scenario, [Job(cohort=(1, 2), seed=1, start=start)], losses=True)
    assert np.array_equal(result.model, start)
    assert result.losses is not None
    assert (result.losses == result.losses[0]).all()
    with pytest.raises(ValueError, match="read-only"):
        result.model[0] = 0.0
    start[0] = 1.0


def test_the_training_loss_is_told_for_every_client_after_each_round() -> None:
    scenario = world()
    (result,) = train(scenario, [Job(cohort=(1, 4), seed=1)], losses=True)
    assert result.losses is not None
    assert result.losses.shape == (4, 6)
    for client, (inputs, labels) in enumerate(zip(scenario.train_inputs, scenario.train_labels, strict=True)):
        assert result.losses[-1, client] == pytest.approx(mean_loss(LOSSES["svm"], result.model, inputs, labels))
    own = result.losses[:, [1, 4]].mean(axis=1)
    assert own[-1] < own[0] < 4.0


def test_slots_chained_by_start_model_go_on_learning() -> None:
    scenario = world()
    (first,) = train(scenario, [Job(cohort=(0, 1), seed=1, slot=1)], losses=True)
    (second,) = train(scenario, [Job(cohort=(0, 1), seed=1, slot=2, start=first.model)], losses=True)
    assert first.losses is not None
    assert second.losses is not None
    assert second.losses[-1, :2].mean() < first.losses[-1, :2].mean()


def test_softmax_regression_trains_through_the_same_seam() -> None:
    scenario = world(model=ModelConfig(kind="softmax", step=0.1, epochs=3, batch=5))
    (result,) = train(scenario, [Job(cohort=(0, 1), seed=1)], losses=True)
    assert result.model.dtype == np.float32
    assert result.losses is not None
    assert result.losses[-1, :2].mean() < 0.5 * np.log(4)


def test_the_initial_model_is_zeros_of_the_scenarios_precision() -> None:
    assert initial_model(world()).dtype == np.float64
    assert not initial_model(world()).any()
    assert initial_model(world()).shape == (6, 4)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (Job(cohort=(), seed=1), "cohort: got no clients"),
        (Job(cohort=(0, 6), seed=1), "outside 0..5"),
        (Job(cohort=(1, 1), seed=1), "a client twice"),
        (Job(cohort=(1,), seed=1, start=np.zeros((5, 4))), r"start: got a model of shape \(5, 4\).*\(6, 4\)"),
        (Job(cohort=(1,), seed=1, start=np.full((6, 4), np.nan)), "finite numbers"),
    ],
)
def test_a_job_that_does_not_fit_the_scenario_is_refused(job: Job, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        train(world(), [job])


def test_training_that_diverges_is_told_as_such() -> None:
    scenario = world(model=ModelConfig(step=1e38, epochs=5, batch=3))
    with pytest.raises(ConfigurationError, match=r"^model\.step: got 1e\+38, under which training leaves"):
        train(scenario, [Job(cohort=(0, 1), seed=1)])


def test_every_epoch_visits_every_sample_once_in_an_order_of_its_own() -> None:
    orders = batch_orders(30, 4, **KEY)
    assert np.sort(orders, axis=1).tolist() == [list(range(30))] * 4
    assert len({tuple(order) for order in orders.tolist()}) == 4


def test_the_order_depends_on_each_of_seed_trial_slot_round_and_client() -> None:
    seen = {batch_orders(30, 1, **{**KEY, **{name: value + 1}}).tobytes() for name, value in KEY.items()}
    assert len(seen | {batch_orders(30, 1, **KEY).tobytes()}) == 6


def test_reshuffling_every_epoch_draws_one_permutation_after_the_other_from_the_rounds_stream() -> None:
    rng = stream(1, "training", 2, 3, 4, 5)
    assert batch_orders(30, 3, **KEY).tolist() == [rng.permutation(30).tolist() for _ in range(3)]


@pytest.mark.parametrize("shuffle", ["round", "slot"])
def test_one_order_may_serve_all_epochs_of_a_round_or_all_rounds_of_a_slot(shuffle: Literal["round", "slot"]) -> None:
    orders = batch_orders(30, 3, **KEY, shuffle=shuffle)
    assert orders.shape == (3, 30)
    assert len({tuple(order) for order in orders.tolist()}) == 1
    assert sorted(orders[0].tolist()) == list(range(30))
    changes = {name: batch_orders(30, 3, **{**KEY, name: value + 1}, shuffle=shuffle) for name, value in KEY.items()}
    same = {name for name, other in changes.items() if np.array_equal(other, orders)}
    assert same == ({"round_"} if shuffle == "slot" else set())


def test_sgd_goes_batch_by_batch_and_the_short_last_batch_averages_over_itself() -> None:
    rng = stream(5, "sgd")
    inputs, labels = rng.normal(size=(7, 2)), rng.integers(0, 3, 7)
    start = rng.normal(size=(3, 3))
    order = rng.permutation(7)
    expected = start
    for batch in (order[:3], order[3:6], order[6:]):
        expected = expected - 0.5 * hinge_gradient(expected, inputs[batch], labels[batch].tolist())
    before = start.copy()
    trained = train_locally(LOSSES["svm"], start, inputs, labels, order[None], step=0.5, batch=3)
    assert trained == pytest.approx(expected)
    assert np.array_equal(start, before)
