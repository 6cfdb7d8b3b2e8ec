"""Scenarios: configuration, data shares, positions, links and channels; built once, read only."""

from fedelect.scenario.availability import Availability, AvailabilityConfig, Mask, most_available
from fedelect.scenario.config import (
    BeliefsConfig,
    ChannelConfig,
    DataConfig,
    ModelConfig,
    ScenarioConfig,
    TopologyConfig,
)
from fedelect.scenario.dataset import Dataset
from fedelect.scenario.drift import DriftConfig
from fedelect.scenario.flaws import FlawsConfig
from fedelect.scenario.hard import HardConfig
from fedelect.scenario.presets import PRESETS, preset
from fedelect.scenario.scenario import Scenario, build_scenario, draw_arrivals, draw_failures, simulated_signals
from fedelect.scenario.survey import SurveyConfig, SurveySample, draw_survey
from fedelect.scenario.system import SystemConfig
from fedelect.scenario.toml_text import LARGEST_TEXT, change_scenario, parse_scenario, scenario_toml
from fedelect.scenario.topology import Topology, draw_topology
from fedelect.scenario.validation import ValidationConfig

__all__ = [
    "LARGEST_TEXT",
    "PRESETS",
    "Availability",
    "AvailabilityConfig",
    "BeliefsConfig",
    "ChannelConfig",
    "DataConfig",
    "Dataset",
    "DriftConfig",
    "FlawsConfig",
    "HardConfig",
    "Mask",
    "ModelConfig",
    "Scenario",
    "ScenarioConfig",
    "SurveyConfig",
    "SurveySample",
    "SystemConfig",
    "Topology",
    "TopologyConfig",
    "ValidationConfig",
    "build_scenario",
    "change_scenario",
    "draw_arrivals",
    "draw_failures",
    "draw_survey",
    "draw_topology",
    "most_available",
    "parse_scenario",
    "preset",
    "scenario_toml",
    "simulated_signals",
]
