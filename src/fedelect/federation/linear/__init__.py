"""The fast engine for linear models on the CPU."""

from fedelect.federation.linear.engine import PATHS, StackedEngine

__all__ = ["PATHS", "StackedEngine"]
