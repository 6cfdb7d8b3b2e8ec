"""Our own selectors: they learn the value of the *set*, from every cohort they have seen."""

from fedelect.selectors.gaussian_process.bp_gp import BpGp
from fedelect.selectors.gaussian_process.loss_gp import LossGp
from fedelect.selectors.gaussian_process.set_gp import SetGp

__all__ = ["BpGp", "LossGp", "SetGp"]
