"""What world: configuration, data, places, links and channels, built once and read only."""

from fedelect.scenario.config import BeliefsConfig as BeliefsConfig
from fedelect.scenario.config import ChannelConfig as ChannelConfig
from fedelect.scenario.config import DataConfig as DataConfig
from fedelect.scenario.config import ModelConfig as ModelConfig
from fedelect.scenario.config import ScenarioConfig as ScenarioConfig
from fedelect.scenario.config import TopologyConfig as TopologyConfig
from fedelect.scenario.dataset import Dataset as Dataset
from fedelect.scenario.presets import PRESETS as PRESETS
from fedelect.scenario.presets import preset as preset
from fedelect.scenario.presets import preset_toml as preset_toml
from fedelect.scenario.scenario import Scenario as Scenario
from fedelect.scenario.scenario import build_scenario as build_scenario
from fedelect.scenario.scenario import draw_arrivals as draw_arrivals
from fedelect.scenario.scenario import simulated_signals as simulated_signals
from fedelect.scenario.system import SystemConfig as SystemConfig
from fedelect.scenario.toml_text import parse_scenario as parse_scenario
from fedelect.scenario.toml_text import scenario_toml as scenario_toml
from fedelect.scenario.topology import Topology as Topology
from fedelect.scenario.topology import draw_topology as draw_topology

__all__ = [
    "PRESETS",
    "BeliefsConfig",
    "ChannelConfig",
    "DataConfig",
    "Dataset",
    "ModelConfig",
    "Scenario",
    "ScenarioConfig",
    "SystemConfig",
    "Topology",
    "TopologyConfig",
    "build_scenario",
    "draw_arrivals",
    "draw_topology",
    "parse_scenario",
    "preset",
    "preset_toml",
    "scenario_toml",
    "simulated_signals",
]
