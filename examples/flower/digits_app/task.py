"""Softmax regression on scikit-learn's digits, in NumPy; the first quarter of the clients hold all digits."""

from functools import lru_cache

import numpy as np


def initial_model():
    """Weights (64, 10) and bias (10,), all zero."""
    return [np.zeros((64, 10)), np.zeros(10)]


@lru_cache(maxsize=64)
def load_share(client, clients):
    """One client's (inputs, labels) to train on, and everybody's kind of data to evaluate on."""
    from sklearn.datasets import load_digits  # slow to import: only where it is needed

    inputs, labels = load_digits(return_X_y=True)
    inputs = inputs / 16.0
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = order[:600], order[600:]
    rng = np.random.default_rng([1, client])
    if client >= max(1, clients // 4):  # the others hold two digits each
        train = train[np.isin(labels[train], [client % 10, (client + 3) % 10])]
    held = rng.permutation(train)[:50]
    judged = test[client::clients]
    return inputs[held], labels[held], inputs[judged], labels[judged]


def train(model, inputs, labels, *, epochs, step):
    """Full-batch gradient descent on the cross-entropy."""
    weights, bias = (array.copy() for array in model)
    targets = np.eye(10)[labels]
    for _ in range(epochs):
        error = probabilities([weights, bias], inputs) - targets
        weights -= step * inputs.T @ error / len(labels)
        bias -= step * error.mean(axis=0)
    return [weights, bias]


def probabilities(model, inputs):
    """The model's probability of each digit, (samples, 10)."""
    scores = inputs @ model[0] + model[1]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def accuracy(model, inputs, labels):
    """Share of the samples whose digit is recognised."""
    return float((probabilities(model, inputs).argmax(axis=1) == labels).mean())
