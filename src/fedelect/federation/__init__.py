"""FL: a cohort and a start model become a trained global model."""

from fedelect.federation.engine import Engine, PlainEngine
from fedelect.federation.engines import DEFAULT_ENGINE, engine_names, make_engine, versions_of
from fedelect.federation.linear import StackedEngine
from fedelect.federation.linear.model import Model, Scores
from fedelect.federation.losses import ClientLosses, MeasuresLosses
from fedelect.federation.train import Job, Training, initial_model, train

__all__ = [
    "DEFAULT_ENGINE",
    "ClientLosses",
    "Engine",
    "Job",
    "MeasuresLosses",
    "Model",
    "PlainEngine",
    "Scores",
    "StackedEngine",
    "Training",
    "engine_names",
    "initial_model",
    "make_engine",
    "train",
    "versions_of",
]
