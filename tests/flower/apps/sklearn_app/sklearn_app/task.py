"""Model and data."""

import functools

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

LABELS, PIXELS = list(range(10)), 64
CENTRAL = 297  # examples that no client holds


def create_model(local_epochs):
    """Return a logistic regression with all weights 0; one epoch is one step of its solver."""
    model = LogisticRegression(max_iter=local_epochs, warm_start=True)
    model.classes_ = np.array(LABELS)
    set_model_params(model, [np.zeros((len(LABELS), PIXELS)), np.zeros(len(LABELS))])
    return model


def get_model_params(model):
    """Return weights (10, 64) and intercepts (10,)."""
    return [model.coef_, model.intercept_]


def set_model_params(model, params):
    """The reverse of `get_model_params`."""
    model.coef_, model.intercept_ = params


@functools.cache
def split_dataset():
    """Return inputs and labels of the clients' examples, and of the central ones, the same in every process."""
    inputs, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    inputs, labels = inputs[order] / 16.0, labels[order]
    return inputs[CENTRAL:], labels[CENTRAL:], inputs[:CENTRAL], labels[:CENTRAL]


@functools.cache
def load_data(partition_id, num_partitions):
    """Return one client's inputs and labels: to train on, and to evaluate on."""
    inputs, labels, _, _ = split_dataset()
    inputs, labels = inputs[partition_id::num_partitions], labels[partition_id::num_partitions]
    evaluated = len(labels) // 5
    return inputs[evaluated:], labels[evaluated:], inputs[:evaluated], labels[:evaluated]
