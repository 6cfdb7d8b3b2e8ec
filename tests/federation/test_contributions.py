"""What members contributed: the model of a set of members is what they alone would have trained."""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from tests.equations.test_shapley import exact_shapley, subsets
from tests.worlds import digits

from fedelect.errors import ConfigurationError
from fedelect.federation import Engine, Job, Model, PlainEngine, StackedEngine, make_engine
from fedelect.federation.train import score_linear
from fedelect.scenario import Scenario, ScenarioConfig, build_scenario, change_scenario

LINEAR = [PlainEngine(), StackedEngine("gram", compiled=False), StackedEngine("primal", compiled=False)]


@functools.cache
def world(*, rounds: int = 1, kind: str = "softmax", score: str = "loss", failing: bool = False) -> Scenario:
    changes: dict[str, Any] = {
        "clients": 6,
        "budget": 3,
        "rounds_per_slot": rounds,
        "data": {"source": "digits", "iid_clients": 2, "samples": [12, 30]},
        "model": {"kind": kind, "step": 0.003, "epochs": 2, "batch": 8, "precision": "float64"},
        "flaws": {"flipped_updates": {"clients": [2], "scale": 0.5}},
        "validation": {"share": 0.1, "score": score},
    }
    if failing:
        changes["flaws"] |= {"failing": {"clients": [4], "rate": 1.0}}
    return build_scenario(change_scenario(ScenarioConfig(), changes), digits())


def job(cohort: tuple[int, ...], **options: Any) -> Job:
    return Job(cohort=cohort, seed=3, slot=2, contributions=True, **options)


def scores_of_sets(engine: Engine, scenario: Scenario, cohort: tuple[int, ...], score: Any) -> dict[Any, float]:
    """Score of what each set of members trains in one round, by training it."""
    game: dict[Any, float] = {(): score(engine.initial_model(scenario))}
    for chosen in subsets(range(len(cohort)))[1:]:
        alone = Job(cohort=tuple(cohort[place] for place in chosen), seed=3, slot=2)
        (training,) = engine.train(scenario, [alone])
        game[chosen] = score(training.model)
    return game


def literal_score(scenario: Scenario, model: Model) -> float:
    """Minus the mean cross-entropy of a linear model on the server's samples."""
    logits = scenario.validation_inputs @ model[:-1] + model[-1]
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    labels = scenario.validation_labels
    return float(np.log(chances[np.arange(len(labels)), labels]).mean())


@pytest.mark.parametrize("engine", LINEAR, ids=lambda engine: engine.name)
def test_contributions_of_two_members_are_their_shapley_values(engine: Engine) -> None:
    scenario = world()
    for cohort in itertools.combinations(range(4), 2):
        game = scores_of_sets(engine, scenario, cohort, lambda model: literal_score(scenario, model))
        (training,) = engine.train(scenario, [job(cohort)])
        assert training.contributions is not None
        assert training.contributions == pytest.approx(exact_shapley(game, 2), abs=1e-3)


@pytest.mark.parametrize("engine", LINEAR, ids=lambda engine: engine.name)
def test_contributions_sum_to_what_the_slot_gained_over_all_rounds(engine: Engine) -> None:
    scenario, cohort = world(rounds=4), (0, 1, 2, 3, 5)
    (training,) = engine.train(scenario, [job(cohort)])
    first = engine.initial_model(scenario)
    gained = literal_score(scenario, training.model) - literal_score(scenario, first)
    assert training.contributions is not None
    assert training.contributions.sum() == pytest.approx(gained, abs=4e-3)  # a truncation in each round
    assert training.contributions[2] < 0.0 < training.contributions[:2].min()  # it sends flipped updates


def test_the_score_is_accuracy_or_minus_the_loss() -> None:
    for kind, score in itertools.product(("softmax", "svm"), ("accuracy", "loss")):
        scenario = world(kind=kind, score=score)
        (training,) = PlainEngine().train(scenario, [Job(cohort=(0, 1), seed=3)])
        logits = scenario.validation_inputs @ training.model[:-1] + training.model[-1]
        if score == "accuracy":
            expected = float(np.mean(logits.argmax(axis=1) == scenario.validation_labels))
        elif kind == "softmax":
            expected = literal_score(scenario, training.model)
        else:
            signs = np.where(scenario.validation_labels[:, None] == np.arange(10), 1.0, -1.0)
            expected = -float(np.maximum(0.0, 1.0 - signs * logits).sum(axis=1).mean())
        assert score_linear(scenario, training.model) == pytest.approx(expected)


def test_a_member_of_whom_nothing_arrives_has_no_contribution() -> None:
    scenario = world(failing=True)
    (training,) = PlainEngine().train(scenario, [job((0, 1, 4))])
    (without,) = PlainEngine().train(scenario, [job((0, 1))])
    assert training.contributions is not None and without.contributions is not None
    assert np.isnan(training.contributions[2])
    assert training.contributions[:2] == pytest.approx(without.contributions)


@pytest.mark.parametrize("engine", LINEAR[1:], ids=lambda engine: engine.name)
def test_a_jobs_contributions_do_not_depend_on_other_jobs_and_agree_with_the_plain_loop(engine: Engine) -> None:
    scenario = world(rounds=2)
    asked = [job((0, 1, 2)), job((1, 3, 5)), dataclasses.replace(job((0, 1, 2)), contributions=False)]
    together, plain = engine.train(scenario, asked), PlainEngine().train(scenario, asked)
    (alone,) = engine.train(scenario, asked[:1])
    assert together[0].contributions is not None and alone.contributions is not None
    assert (together[0].contributions == alone.contributions).all()
    for fast, slow in zip(together[:2], plain[:2], strict=True):
        assert fast.contributions is not None and slow.contributions is not None
        np.testing.assert_allclose(fast.contributions, slow.contributions, atol=1e-6)
    assert together[2].contributions is None and (together[2].model == together[0].model).all()


@pytest.mark.parametrize("name", ["torch-loop", "torch-layers"])
@pytest.mark.parametrize("score", ["accuracy", "loss"])
def test_modules_of_pytorch_have_contributions_too(name: str, score: str) -> None:
    pytest.importorskip("torch")
    scenario = world(kind="mlp", score=score)
    engine = make_engine(name, scenario.config)

    def scored(model: Model) -> float:
        stand_in = dataclasses.replace(
            scenario,
            global_test_inputs=scenario.validation_inputs,
            global_test_labels=scenario.validation_labels,
            train_inputs=(scenario.validation_inputs, *scenario.train_inputs[1:]),
            train_labels=(scenario.validation_labels, *scenario.train_labels[1:]),
        )
        if score == "accuracy":
            return float(engine.accuracies(stand_in, [model])[0])  # type: ignore[attr-defined]
        return -float(engine.losses(stand_in, model, clients=np.array([0])).mean[0])  # type: ignore[attr-defined]

    game = scores_of_sets(engine, scenario, (0, 1), scored)
    (training,) = engine.train(scenario, [job((0, 1))])
    assert training.contributions == pytest.approx(exact_shapley(game, 2), abs=2e-3)


def test_a_model_beyond_the_range_of_floats_counts_as_the_worst() -> None:
    changes = {"flaws": {"scaled_updates": {"clients": [1], "scale": 1e12}}}
    scenario = build_scenario(change_scenario(world().config, changes), digits())
    (training,) = PlainEngine().train(scenario, [job((0, 1))])
    assert training.contributions is not None and np.isfinite(training.contributions).all()
    assert training.contributions[1] < -1e5 and np.abs(training.contributions).max() <= 1e6


def test_without_samples_at_the_server_there_are_no_contributions() -> None:
    config = change_scenario(ScenarioConfig(), {"clients": 6, "budget": 2, "data": {"samples": [10, 20]}})
    with pytest.raises(ConfigurationError, match=r"validation: got none.*\[validation\] in the scenario"):
        PlainEngine().train(build_scenario(config, digits()), [job((0, 1))])
