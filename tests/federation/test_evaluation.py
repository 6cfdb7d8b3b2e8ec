"""Engines evaluate those that are asked and no others, and measure many models at once, with the same numbers."""

from typing import Any

import numpy as np
import pytest
from tests.worlds import digits, tiny

from fedelect.equations.scores import linear_scores
from fedelect.federation import Engine, MeasuresAccuracy, MeasuresLosses, PlainEngine, StackedEngine
from fedelect.federation.linear.layout import as_sparse, take_rows
from fedelect.federation.torch.engine import TorchEngine
from fedelect.federation.train import ClientLosses
from fedelect.scenario import Scenario, build_scenario, change_scenario
from fedelect.seeds import stream

LABELS = {"flaws": {"random_labels": {"clients": [1, 4], "clean_test": False}}}
WORLD = build_scenario(change_scenario(tiny(), LABELS), digits())
MODULES = build_scenario(change_scenario(tiny(), LABELS | {"model": {"kind": "mlp"}}), digits())
ASKED = [np.array(clients, dtype=np.int64) for clients in ([0, 3, 4], [5], [], [0, 1, 2, 3, 4, 5], [2, 4])]

ENGINES: dict[str, tuple[Engine, Scenario]] = {
    "plain": (PlainEngine(), WORLD),
    "compiled": (StackedEngine(), WORLD),
    "numpy": (StackedEngine(compiled=False), WORLD),
    "torch": (TorchEngine(), MODULES),
}

each = pytest.mark.parametrize("name", ENGINES)


def models_of(engine: Engine, scenario: Scenario, count: int) -> list[Any]:
    rng, first = stream(2, "models"), engine.initial_model(scenario)
    return [(first + rng.normal(size=first.shape)).astype(first.dtype) for _ in range(count)]


@each
def test_those_asked_score_as_all_do(name: str) -> None:
    engine, scenario = ENGINES[name]
    models = models_of(engine, scenario, len(ASKED))
    everybody = list(engine.scores(scenario, models))
    some = list(engine.scores(scenario, models, clients=ASKED))
    for of_all, of_some, clients in zip(everybody, some, ASKED, strict=True):
        assert len(of_some) == clients.size
        for client, scores in zip(clients, of_some, strict=True):
            assert scores.shape == of_all[client].shape
            if name == "torch":  # a module's layers may sum differently in batches of another size
                assert scores == pytest.approx(of_all[client], abs=1e-4)
            else:
                assert np.array_equal(scores, of_all[client])


@each
def test_losses_of_those_asked_are_as_those_of_all_and_the_others_have_none(name: str) -> None:
    engine, scenario = ENGINES[name]
    assert isinstance(engine, MeasuresLosses)
    (model,) = models_of(engine, scenario, 1)
    of_all = engine.losses(scenario, model)
    for clients in ASKED:
        some, expected = engine.losses(scenario, model, clients=clients), of_all.among(clients)
        assert np.array_equal(some.mean, expected.mean, equal_nan=True)
        assert np.array_equal(some.rms, expected.rms, equal_nan=True)


def test_losses_among_some_clients_are_theirs_alone() -> None:
    losses = ClientLosses(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    assert losses.among(None) is losses
    mean, rms = losses.among(np.array([0, 2]))
    assert np.array_equal(mean, [1.0, np.nan, 3.0], equal_nan=True)
    assert np.array_equal(rms, [4.0, np.nan, 6.0], equal_nan=True)


@pytest.mark.parametrize("name", ["plain", "compiled", "numpy"])
def test_accuracy_is_the_share_of_the_clean_test_set_that_is_right(name: str) -> None:
    engine, scenario = ENGINES[name]
    assert isinstance(engine, MeasuresAccuracy)
    models = models_of(engine, scenario, 70)
    expected = [
        float((linear_scores(model, scenario.global_test_inputs).argmax(axis=1) == scenario.global_test_labels).mean())
        for model in models
    ]
    measured = list(engine.accuracies(scenario, models))
    assert measured == expected
    assert [engine.accuracies(scenario, [model])[0] for model in models] == measured
    own = engine.client_accuracies(scenario, models[0])
    for client in range(6):
        scores = linear_scores(models[0], scenario.clean_test_inputs[client])
        assert own[client] == (scores.argmax(axis=1) == scenario.clean_test_labels[client]).mean()
    assert not np.array_equal(scenario.clean_test_labels[1], scenario.test_labels[1])


def test_the_accuracy_of_a_module_is_that_of_its_scores() -> None:
    engine, scenario = ENGINES["torch"]
    assert isinstance(engine, MeasuresAccuracy)
    models = models_of(engine, scenario, 2)
    for model, measured in zip(models, engine.accuracies(scenario, models), strict=True):
        (scores,) = engine.scores(scenario, [model])  # clients' test inputs, together, are the global ones
        assert np.array_equal(np.concatenate(scenario.test_inputs), scenario.global_test_inputs)
        right = np.concatenate(scores).argmax(axis=1) == scenario.global_test_labels
        assert measured == right.mean()
        own = engine.client_accuracies(scenario, model)
        ends = np.cumsum([len(labels) for labels in scenario.clean_test_labels])[:-1]
        assert own == pytest.approx([part.mean() for part in np.split(right, ends)])


def test_rows_taken_of_a_sparse_matrix_are_those_of_the_dense_one() -> None:
    dense = stream(1, "matrix").integers(0, 2, (9, 4)).astype(np.float32)
    first, last = np.array([1, 4, 4, 8]), np.array([3, 4, 7, 9])
    expected: Any = as_sparse(dense[[1, 2, 4, 5, 6, 8]])
    for taken, part in zip(take_rows(as_sparse(dense), first, last), expected, strict=True):
        assert np.array_equal(taken, part) and taken.dtype == part.dtype
