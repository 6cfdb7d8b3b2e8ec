"""Scenarios and their data, from presets and files."""

from pathlib import Path

from fedelect.atlas import load_atlas
from fedelect.datasets import load_dataset
from fedelect.errors import ConfigurationError
from fedelect.scenario import PRESETS, Dataset, ScenarioConfig, parse_scenario, preset
from fedelect.simulator import TrainingSource


def load_config(name: str) -> ScenarioConfig:
    """The scenario of a preset's name or of a TOML file's path."""
    if name in PRESETS:
        return preset(name)
    path = Path(name)
    if not path.exists():
        raise ConfigurationError(
            f"{name!r} is neither a preset ({', '.join(PRESETS)}) nor a file; "
            f"`fedelect scenario show digits > my_scenario.toml` writes one to start from"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the scenario {name!r} cannot be read: {error}; give a TOML file") from error
    try:
        return parse_scenario(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from error


def load_ground(name: str) -> tuple[ScenarioConfig, TrainingSource]:
    """A scenario and what its worlds are made from: an atlas (.npz), or a preset or TOML file with its data."""
    if name.endswith(".npz"):
        atlas = load_atlas(Path(name))
        return atlas.config, atlas
    config = load_config(name)
    return config, load_data(config, name)


def load_data(config: ScenarioConfig, name: str) -> Dataset:
    """The data of the scenario that was loaded by `name`; a relative .npz path starts at the scenario's file."""
    source = config.data.source
    if source.endswith(".npz") and name not in PRESETS:
        source = str(Path(name).parent / source)
    return load_dataset(source)
