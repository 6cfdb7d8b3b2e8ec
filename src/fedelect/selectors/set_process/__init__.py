"""Our own selectors: they learn the value of the *set*, from every cohort they have seen."""

from fedelect.selectors.set_process.bp_gp import BpGp as BpGp
from fedelect.selectors.set_process.loss_gp import LossGp as LossGp
from fedelect.selectors.set_process.set_gp import SetGp as SetGp

__all__ = ["BpGp", "LossGp", "SetGp"]
