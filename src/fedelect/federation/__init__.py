"""FL: a cohort and a start model become a trained global model."""

from fedelect.federation.engine import Engine as Engine
from fedelect.federation.engine import PlainEngine as PlainEngine
from fedelect.federation.linear import Model as Model
from fedelect.federation.linear import Scores as Scores
from fedelect.federation.train import Job as Job
from fedelect.federation.train import Training as Training
from fedelect.federation.train import initial_model as initial_model
from fedelect.federation.train import train as train

__all__ = ["Engine", "Job", "Model", "PlainEngine", "Scores", "Training", "initial_model", "train"]
