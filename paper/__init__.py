"""The paper's figures and tables, one declaration each, from runs on file."""

from paper.blocks import Curves
from paper.calibration import calibrate, read_calibration
from paper.catalogue import EXPERIMENTS, PRESETS, Experiment, Preset, experiment
from paper.claims import CLAIMS, assess
from paper.document import committed_results, committed_results_on_atlas, write_page, write_record
from paper.evidence import Evidence
from paper.figures import draw, require_matplotlib
from paper.measurements import MEASUREMENTS, Context, is_measured, measure, measurement_path
from paper.player import BlockTask, play_block
from paper.runner import (
    AbstractResultStore,
    ResultStore,
    ResultStoreOnFile,
    estimate_seconds,
    format_duration,
    order_tasks,
    play,
    seconds_for_a_slot,
)
from paper.series import RunRequest, Series, World

__all__ = [
    "CLAIMS",
    "EXPERIMENTS",
    "MEASUREMENTS",
    "PRESETS",
    "AbstractResultStore",
    "BlockTask",
    "Context",
    "Curves",
    "Evidence",
    "Experiment",
    "Preset",
    "ResultStore",
    "ResultStoreOnFile",
    "RunRequest",
    "Series",
    "World",
    "assess",
    "calibrate",
    "committed_results",
    "committed_results_on_atlas",
    "draw",
    "estimate_seconds",
    "experiment",
    "format_duration",
    "is_measured",
    "measure",
    "measurement_path",
    "order_tasks",
    "play",
    "play_block",
    "read_calibration",
    "require_matplotlib",
    "seconds_for_a_slot",
    "write_page",
    "write_record",
]
