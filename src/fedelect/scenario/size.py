"""Estimates of how large a world is and how long its training takes: lower bounds, before anything is built."""

from fedelect._machine import as_float
from fedelect.scenario.config import ScenarioConfig
from fedelect.scenario.dataset import Dataset

_CLIENT_BYTES = 2_000
"""A client beside its samples: lists, links, what is measured of it (12.3 KB with 40 samples of 64 features)."""

_CLIENT_S = 2e-4
_OPERATIONS_PER_S = 2e10


def estimate_world_bytes(config: ScenarioConfig, dataset: Dataset) -> float:
    """Estimate the memory of one world: each client holds its samples."""
    return config.clients * (_CLIENT_BYTES + _samples_each(config, dataset) * dataset.features * 4.0)


def estimate_world_s(config: ScenarioConfig) -> float:
    """Estimate the seconds that one world takes to build."""
    return as_float(config.clients) * _CLIENT_S


def estimate_training_s(config: ScenarioConfig, dataset: Dataset) -> float:
    """Estimate the seconds of one core that a cohort's training in one slot takes."""
    rounds, epochs = as_float(config.rounds_per_slot), as_float(config.model.epochs)
    steps = as_float(config.budget) * rounds * epochs * _samples_each(config, dataset)
    return steps * dataset.features * dataset.classes * 4.0 / _OPERATIONS_PER_S


def _samples_each(config: ScenarioConfig, dataset: Dataset) -> float:
    if dataset.owners is not None:
        return len(dataset.labels) / as_float(config.clients)
    return sum(map(as_float, config.data.samples)) / 2.0
