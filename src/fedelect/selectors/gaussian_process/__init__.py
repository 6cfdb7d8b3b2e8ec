"""Selectors by a Gaussian process over sets: every reward informs about all cohorts that share members."""

from fedelect.selectors.gaussian_process.bp_gp import BpGp
from fedelect.selectors.gaussian_process.loss_gp import LossGp
from fedelect.selectors.gaussian_process.set_gp import SetGp

__all__ = ["BpGp", "LossGp", "SetGp"]
