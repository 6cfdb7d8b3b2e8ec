"""FL: a cohort and a start model become a trained global model."""

from fedelect.federation.engine import Engine as Engine
from fedelect.federation.engine import PlainEngine as PlainEngine
from fedelect.federation.engines import DEFAULT_ENGINE as DEFAULT_ENGINE
from fedelect.federation.engines import engine_names as engine_names
from fedelect.federation.engines import make_engine as make_engine
from fedelect.federation.engines import versions_of as versions_of
from fedelect.federation.linear import Model as Model
from fedelect.federation.linear import Scores as Scores
from fedelect.federation.losses import ClientLosses as ClientLosses
from fedelect.federation.losses import MeasuresLosses as MeasuresLosses
from fedelect.federation.stacked import StackedEngine as StackedEngine
from fedelect.federation.train import Job as Job
from fedelect.federation.train import Training as Training
from fedelect.federation.train import initial_model as initial_model
from fedelect.federation.train import train as train

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
