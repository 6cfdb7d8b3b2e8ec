"""Elections in which all goes wrong: crashes, loss, partitions and lies, drawn from a seed and watched from outside."""

from fedelect.testing.chaos.run import ChaosOutcome, ChaosRun, run_chaos
from fedelect.testing.chaos.schedule import ChaosPlan, draw

__all__ = ["ChaosOutcome", "ChaosPlan", "ChaosRun", "draw", "run_chaos"]
