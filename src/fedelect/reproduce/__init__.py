"""The paper's figures and tables, one declaration each, from runs that are kept."""

from fedelect.reproduce.blocks import Curves
from fedelect.reproduce.calibration import calibrate, read_calibration
from fedelect.reproduce.catalogue import EXPERIMENTS, PRESETS, Experiment, Preset, experiment
from fedelect.reproduce.claims import CLAIMS, assess
from fedelect.reproduce.document import committed_library, committed_library_on_atlas, write_document
from fedelect.reproduce.figures import draw, require_matplotlib
from fedelect.reproduce.measurements import MEASUREMENTS, Context, is_measured, measure, measurement_path
from fedelect.reproduce.player import BlockTask, play_block
from fedelect.reproduce.readings import Evidence
from fedelect.reproduce.runner import (
    AbstractLibrary,
    Library,
    LibraryOnFile,
    estimated_seconds,
    hours,
    in_order,
    play,
    seconds_for_a_slot,
)
from fedelect.reproduce.series import Demand, Series, World

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
