"""The paper's figures and tables, one declaration each, from runs that are kept."""

from paper.blocks import Curves
from paper.calibration import calibrate, read_calibration
from paper.catalogue import EXPERIMENTS, PRESETS, Experiment, Preset, experiment
from paper.claims import CLAIMS, assess
from paper.document import committed_library, committed_library_on_atlas, write_document
from paper.figures import draw, require_matplotlib
from paper.measurements import MEASUREMENTS, Context, is_measured, measure, measurement_path
from paper.player import BlockTask, play_block
from paper.readings import Evidence
from paper.runner import (
    AbstractLibrary,
    Library,
    LibraryOnFile,
    estimated_seconds,
    hours,
    in_order,
    play,
    seconds_for_a_slot,
)
from paper.series import Demand, Series, World

__all__ = [
    "CLAIMS",
    "EXPERIMENTS",
    "MEASUREMENTS",
    "PRESETS",
    "AbstractLibrary",
    "BlockTask",
    "Context",
    "Curves",
    "Demand",
    "Evidence",
    "Experiment",
    "Library",
    "LibraryOnFile",
    "Preset",
    "Series",
    "World",
    "assess",
    "calibrate",
    "committed_library",
    "committed_library_on_atlas",
    "draw",
    "estimated_seconds",
    "experiment",
    "hours",
    "in_order",
    "is_measured",
    "measure",
    "measurement_path",
    "play",
    "play_block",
    "read_calibration",
    "require_matplotlib",
    "seconds_for_a_slot",
    "write_document",
]
