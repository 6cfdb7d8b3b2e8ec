"""FL: a cohort and a start model become a trained global model."""

from fedelect.federation.train import Job as Job
from fedelect.federation.train import Training as Training
from fedelect.federation.train import initial_model as initial_model
from fedelect.federation.train import train as train

__all__ = ["Job", "Training", "initial_model", "train"]
