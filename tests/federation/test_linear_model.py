import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.reference.federation import hinge_gradient

from fedelect.equations.scores import linear_scores
from fedelect.federation.linear.model import LOSSES, gradient, mean_loss
from fedelect.federation.train import train_locally
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints


def problem(samples: int = 12, features: int = 4, classes: int = 3) -> tuple[Floats, Floats, Ints]:
    rng = stream(7, "linear problem")
    model = rng.normal(size=(features + 1, classes))
    return model, rng.normal(size=(samples, features)), rng.integers(0, classes, samples)


@pytest.mark.parametrize("kind", ["svm", "softmax"])
def test_the_gradient_is_what_finite_differences_of_the_loss_say(kind: str) -> None:
    model, inputs, labels = problem()
    loss = LOSSES[kind]
    exact = gradient(loss, model, inputs, loss.targets(labels, 3, model.dtype))
    for place in np.ndindex(model.shape):
        shift = np.zeros_like(model)
        shift[place] = 1e-6
        slope = (mean_loss(loss, model + shift, inputs, labels) - mean_loss(loss, model - shift, inputs, labels)) / 2e-6
        assert exact[place] == pytest.approx(slope, abs=1e-7)


def test_the_hinge_gradient_is_the_one_written_out_sample_by_sample() -> None:
    model, inputs, labels = problem()
    loss = LOSSES["svm"]
    ours = gradient(loss, model, inputs, loss.targets(labels, 3, model.dtype))
    assert ours == pytest.approx(hinge_gradient(model, inputs, labels.tolist()))


def test_the_hinge_loss_sums_over_classes_and_averages_over_samples() -> None:
    model = np.array([[1.0, 0.0], [0.0, 0.5]])
    # Scores (2, 0.5) and (-1, 0.5); class 0, then class 1.
    inputs, labels = np.array([[2.0], [-1.0]]), np.array([0, 1])
    assert mean_loss(LOSSES["svm"], model, inputs, labels) == pytest.approx(((0 + 1.5) + (0 + 0.5)) / 2)


def test_the_untrained_model_loses_one_for_each_class_or_ln_of_their_number() -> None:
    _, inputs, labels = problem()
    assert mean_loss(LOSSES["svm"], np.zeros((5, 3)), inputs, labels) == 3.0
    assert mean_loss(LOSSES["softmax"], np.zeros((5, 3)), inputs, labels) == pytest.approx(math.log(3))


def test_softmax_does_not_overflow_on_large_scores() -> None:
    model = np.array([[1e4, -1e4], [0.0, 0.0]])
    loss = LOSSES["softmax"]
    assert mean_loss(loss, model, np.array([[1.0]]), np.array([1])) == pytest.approx(2e4)
    assert gradient(loss, model, np.array([[1.0]]), np.array([[0.0, 1.0]]))[0].tolist() == [1.0, -1.0]


def test_full_batch_softmax_converges_to_unpenalised_logistic_regression() -> None:
    rng = stream(11, "overlapping classes")
    labels = rng.integers(0, 3, 150)
    inputs = rng.normal(size=(150, 2)) + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[labels]
    orders = np.tile(np.arange(150), (4000, 1))
    model = train_locally(LOSSES["softmax"], np.zeros((3, 3)), inputs, labels, orders, step=1.0, batch=150)
    oracle: Any = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(inputs, labels)
    scores = linear_scores(model, inputs)
    ours = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert ours == pytest.approx(oracle.predict_proba(inputs), abs=1e-4)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["svm", "softmax"])
def test_training_keeps_the_models_precision(kind: str, precision: str) -> None:
    model, inputs, labels = problem()
    trained = train_locally(
        LOSSES[kind],
        model.astype(precision),
        inputs.astype(precision),
        labels,
        np.arange(12)[None],
        step=0.1,
        batch=5,
    )
    assert trained.dtype == precision
