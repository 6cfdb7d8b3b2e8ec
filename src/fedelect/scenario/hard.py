"""[hard]: clients whose honest data is hard. They have no flaw: their labels are right, in training and in test."""

from typing import NamedTuple

import numpy as np

from fedelect.scenario.dataset import Dataset, Inputs
from fedelect.scenario.flaws import Members
from fedelect.vocabulary import Floats, Ints

_ROWS_AT_ONCE = 4096


class HardConfig(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[hard]: of each class that they hold, these clients hold the hardest samples; leave the table out for none."""


class Difficulty(NamedTuple):
    """How hard each sample is; more is harder.

    Attributes:
        train: (n,) of the training samples.
        test: (m,) of the test samples.
    """

    train: Floats
    test: Floats


def measure_difficulty(dataset: Dataset) -> Difficulty:
    """Measure how much each sample looks like another class, without a model.

    It is the squared distance from the mean of its own class less that from the nearest mean of another class; the
    means are those of the training data.
    """
    means = np.stack(
        [dataset.inputs[dataset.labels == label].mean(axis=0, dtype=np.float64) for label in range(dataset.classes)]
    )
    return Difficulty(
        _lean(dataset.inputs, dataset.labels, means), _lean(dataset.test_inputs, dataset.test_labels, means)
    )


def _lean(inputs: Inputs, labels: Ints, means: Floats) -> Floats:
    lean = np.empty(len(labels))
    for at in range(0, len(labels), _ROWS_AT_ONCE):
        rows = slice(at, at + _ROWS_AT_ONCE)
        some, own = inputs[rows].astype(np.float64), labels[rows]
        # The squared length of a sample is the same for all classes.
        distance = (means**2).sum(axis=1) - 2 * some @ means.T
        to_own = distance[np.arange(len(own)), own]
        distance[np.arange(len(own)), own] = np.inf
        lean[rows] = to_own - distance.min(axis=1)
    return lean
