"""Elections in which all goes wrong: crashes, loss, partitions and lies, drawn from a seed and watched from outside."""

from fedelect.simulator.chaos.run import ChaosOutcome as ChaosOutcome
from fedelect.simulator.chaos.run import ChaosRun as ChaosRun
from fedelect.simulator.chaos.run import run_chaos as run_chaos
from fedelect.simulator.chaos.schedule import ChaosPlan as ChaosPlan
from fedelect.simulator.chaos.schedule import draw as draw

__all__ = ["ChaosOutcome", "ChaosPlan", "ChaosRun", "draw", "run_chaos"]
