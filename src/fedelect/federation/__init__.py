"""FL: train a global model from a cohort and a start model."""

from fedelect.federation.engine import (
    DEFAULT_ENGINE,
    Engine,
    MeasuresAccuracy,
    MeasuresLosses,
    PlainEngine,
    engine_names,
    make_engine,
    versions_of,
)
from fedelect.federation.linear.engine import StackedEngine
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.train import ClientLosses, Job, Training, initial_model, linear_losses, train

__all__ = [
    "DEFAULT_ENGINE",
    "ClientLosses",
    "Engine",
    "Job",
    "MeasuresAccuracy",
    "MeasuresLosses",
    "Model",
    "PlainEngine",
    "Scores",
    "StackedEngine",
    "Training",
    "engine_names",
    "initial_model",
    "linear_losses",
    "make_engine",
    "train",
    "versions_of",
]
