"""Small worlds for tests: a few clients on scikit-learn's digits, a slot in milliseconds."""

import functools

import numpy as np

from fedelect.datasets import load_dataset
from fedelect.federation import DEFAULT_ENGINE
from fedelect.loop import FrameworkName
from fedelect.scenario import Dataset, ScenarioConfig, parse_scenario
from fedelect.simulator import Plan, specify_selectors

TOML = """
name = "tiny"
clients = 6
budget = 2
slots = 8
rounds_per_slot = 2
start = "{start}"
redraw_every = {redraw_every}
[data]
source = "digits"
iid_clients = 2
samples = [10, 20]
[model]
step = 5e-4
epochs = 1
batch = 10
[channel]
upload_probability = {upload_probability}
"""


@functools.cache
def digits() -> Dataset:
    return load_dataset("digits")


def tiny(*, start: str = "cold", redraw_every: int = 0, upload_probability: float = 0.8) -> ScenarioConfig:
    return parse_scenario(TOML.format(start=start, redraw_every=redraw_every, upload_probability=upload_probability))


def plan(
    *selectors: str,
    framework: FrameworkName = "fa",
    slots: int = 8,
    trials: int = 2,
    seed: int = 1,
    config: ScenarioConfig | None = None,
    engine: str = DEFAULT_ENGINE,
) -> Plan:
    return Plan(
        config=config or tiny(),
        framework=framework,
        selectors=specify_selectors(selectors or ("quick-init-ucb", "random")),
        slots=slots,
        trials=trials,
        seed=seed,
        engine=engine,
    )


def half(scores: object, labels: object) -> float:
    """An opinion function for tests: everybody thinks 0.5."""
    return 0.5


def silent(scores: object, labels: object) -> float:
    """An opinion function for tests: nobody has one."""
    return float(np.nan)


not_a_function = 3
