"""Measured regret under the bounds of Theorems 1 and 3: in the paper's world, and in one where they say something."""

from paper.measurements.regret.curves import Regret, RegretCurve, RegretWorld
from paper.measurements.regret.measure import SETTINGS, measure_regret

__all__ = ["SETTINGS", "Regret", "RegretCurve", "RegretWorld", "measure_regret"]
