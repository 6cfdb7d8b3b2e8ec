"""Randomised fault injection for elections: crashes, loss, partitions and Byzantine peers, all drawn from a seed."""

from fedelect.testing.chaos.run import ChaosResult, ChaosRun, run_chaos
from fedelect.testing.chaos.schedule import ChaosPlan, draw_schedule

__all__ = ["ChaosPlan", "ChaosResult", "ChaosRun", "draw_schedule", "run_chaos"]
