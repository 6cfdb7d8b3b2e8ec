"""Presets: scenarios by name."""

from fedelect.errors import ConfigurationError
from fedelect.scenario.config import DataConfig, ModelConfig, ScenarioConfig

PRESETS = ("digits", "paper")
"""Names of the presets: "digits" is small enough for a laptop and a demo, "paper" is the paper's main scenario,
calibrated where the paper leaves it open."""


def preset(name: str) -> ScenarioConfig:
    """Return a preset by its name.

    >>> preset("paper").rounds_per_slot
    15

    Raises:
        ConfigurationError: There is no such preset.
    """
    if name == "paper":
        # The paper leaves sizes and skew open: chosen by its two baselines, see docs/REPRODUCTION.md. Batch orders
        # stay for a slot, which the paper leaves open too, for speed.
        return ScenarioConfig(
            data=DataConfig(skew="dirichlet", alpha=0.2, samples=(400, 1200)),
            model=ModelConfig(shuffle="slot"),
        )
    if name == "digits":
        # Chosen so that a slot takes some hundredths of a second and cohorts differ clearly from a cold start.
        return ScenarioConfig(
            name="digits",
            slots=40,
            rounds_per_slot=5,
            data=DataConfig(source="digits", samples=(20, 60)),
            model=ModelConfig(step=5e-4, epochs=5, batch=10),
        )
    raise ConfigurationError(f"preset: got {name!r}; allowed: {', '.join(PRESETS)}")
