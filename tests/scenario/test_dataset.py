from typing import Any

import numpy as np
import pytest

from fedelect.errors import DataError
from fedelect.scenario import Dataset


def parts(**changes: Any) -> dict[str, Any]:
    good = {"inputs": np.zeros((4, 3)), "labels": [0, 1, 2, 1], "test_inputs": np.ones((2, 3)), "test_labels": [2, 0]}
    return {**good, **changes}


def test_a_data_set_knows_its_classes_and_features_and_cannot_be_changed() -> None:
    mine = np.zeros((4, 3))
    data = Dataset(**parts(inputs=mine))
    mine[0, 0] = 7.0
    assert (data.classes, data.features, data.inputs[0, 0]) == (3, 3, 0.0)
    for array in (data.inputs, data.labels, data.test_inputs, data.test_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_raw_bytes_stay_bytes() -> None:
    assert Dataset(**parts(inputs=np.zeros((4, 3), dtype=np.uint8))).inputs.dtype == np.uint8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": np.zeros(4)}, r"inputs must have shape \(samples, features\).*\(4,\)"),
        ({"inputs": np.zeros((4, 0))}, "inputs must have shape"),
        ({"inputs": np.array([["a"] * 3] * 4)}, "inputs must be real numbers"),
        ({"inputs": [[1.0, 2.0, 3.0], [1.0]]}, "inputs must be an array"),
        ({"inputs": np.full((4, 3), np.nan)}, "inputs must be finite; row 0"),
        ({"labels": [0, 1]}, "4 inputs but 2 labels"),
        ({"labels": [0.0, 1.0, 2.0, 1.0]}, "labels must be whole numbers"),
        ({"labels": [[0], [1], [2], [1]]}, r"labels must have shape \(samples,\)"),
        ({"labels": [-1, 0, 1, 2]}, "classes 0..C-1, got -1"),
        ({"labels": [0, 1, 3, 3]}, r"each occurring, C >= 2; got \[0, 1, 3\]"),
        ({"labels": [0, 0, 0, 0], "test_labels": [0, 0]}, "C >= 2"),
        ({"test_inputs": np.zeros((0, 3)), "test_labels": []}, "test_inputs must have shape"),
        ({"test_inputs": np.zeros((2, 5))}, "inputs have 3 features, test_inputs 5"),
        ({"test_labels": [0, 3]}, "test label 3 does not occur"),
    ],
)
def test_arrays_that_do_not_make_a_data_set_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset(**parts(**changes))
