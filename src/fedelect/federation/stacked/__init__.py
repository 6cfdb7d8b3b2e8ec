"""The fast engine for linear models on the CPU."""

from fedelect.federation.stacked.engine import PATHS as PATHS
from fedelect.federation.stacked.engine import StackedEngine as StackedEngine

__all__ = ["PATHS", "StackedEngine"]
