"""Experiment -> files: which function draws what."""

from collections.abc import Callable
from pathlib import Path

from paper.catalogue import Experiment, Preset
from paper.evidence import Evidence
from paper.figures.clients import draw_beliefs, draw_elections, draw_network
from paper.figures.curves import draw_central, draw_democratized, draw_sets_and_sizes
from paper.figures.sensitivity import draw_sensitivity
from paper.figures.sweeps import draw_by_clients, draw_by_many_clients, draw_by_theta
from paper.figures.table import draw_table
from paper.figures.theory import draw_complexity, draw_convergence, draw_regret
from paper.runner import AbstractResultStore

Drawing = Callable[[Experiment, Evidence, Path], list[Path]]
"""Draws an experiment from what is on file into a folder; returns the files it wrote."""

DRAWINGS: dict[str, Drawing] = {
    "network": draw_network,
    "1_2": draw_sets_and_sizes,
    "cen_selected_time": draw_elections,
    "cen_performance": draw_central,
    "BP_value": draw_beliefs,
    "decen_performance": draw_democratized,
    "comparison_table": draw_table,
    "PreTheta": draw_by_theta,
    "PreNum": draw_by_clients,
    "Pre2Slot": draw_by_many_clients,
    "regret": draw_regret,
    "sensitivity": draw_sensitivity,
    "convergence": draw_convergence,
    "complexity": draw_complexity,
}
"""By the name of the experiment."""


def draw(experiment: Experiment, store: AbstractResultStore, preset: Preset, folder: Path) -> list[Path]:
    """Draw an experiment from the results on file; what is not there yet is named on the figure.

    Args:
        experiment: The experiment.
        store: The results.
        preset: How much of them is asked for.
        folder: Where the files go.

    Returns:
        The files written: SVG, or Markdown and CSV for a table.
    """
    return draw_from(experiment, Evidence(store=store, preset=preset), folder)


def draw_from(experiment: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """The same from evidence, which reads each series once for many drawings."""
    return DRAWINGS[experiment.name](experiment, evidence, folder)
