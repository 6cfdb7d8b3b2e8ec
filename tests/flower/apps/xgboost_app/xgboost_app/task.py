"""Parameters, data, and boosters as arrays of bytes."""

import functools

import numpy as np
import xgboost as xgb
from flwr.app import ArrayRecord
from sklearn.datasets import load_digits

PARAMETERS = {"objective": "binary:logistic", "eta": 0.3, "max_depth": 3, "eval_metric": "auc", "nthread": 1}
CENTRAL = 297  # examples that no client holds


@functools.cache
def split_dataset():
    """Return inputs and labels (is the digit 5 or more?) of the clients, and of nobody, the same in every process."""
    inputs, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    inputs, labels = inputs[order] / 16.0, (digits[order] >= 5).astype(float)
    return inputs[CENTRAL:], labels[CENTRAL:], inputs[:CENTRAL], labels[:CENTRAL]


@functools.cache
def load_data(partition_id, num_partitions):
    """Return one client's data: to train on, and to evaluate on."""
    inputs, labels, _, _ = split_dataset()
    inputs, labels = inputs[partition_id::num_partitions], labels[partition_id::num_partitions]
    evaluated = len(labels) // 5
    return (
        xgb.DMatrix(inputs[evaluated:], label=labels[evaluated:]),
        xgb.DMatrix(inputs[:evaluated], label=labels[:evaluated]),
    )


def pack(booster):
    """Return a booster as Flower's strategies for XGBoost want it: one array of bytes."""
    return ArrayRecord([np.frombuffer(booster.save_raw("json"), dtype=np.uint8)])


def unpack(arrays):
    """The reverse of `pack`."""
    booster = xgb.Booster(params=PARAMETERS)
    booster.load_model(bytearray(arrays["0"].numpy().tobytes()))
    return booster


def measure_auc(booster, data):
    """Return the area under the curve."""
    return float(booster.eval(data).split(":")[-1])
