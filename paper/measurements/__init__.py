"""Measurements that are no runs: each a function of a `Context` that returns one value, stored as JSON."""

from paper.measurements.context import Context
from paper.measurements.registry import (
    MEASUREMENTS,
    is_measured,
    keep_measurement,
    made_with,
    measure,
    measurement_path,
    read_measurement,
)

__all__ = [
    "MEASUREMENTS",
    "Context",
    "is_measured",
    "keep_measurement",
    "made_with",
    "measure",
    "measurement_path",
    "read_measurement",
]
