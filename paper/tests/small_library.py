"""A library of the whole catalogue in seconds: 20 clients on digits, two trials of a few slots."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tests.worlds import digits

from fedelect.atlas import load_atlas, save_atlas, shipped_atlases
from fedelect.atlas.file import digest_of
from fedelect.scenario import ScenarioConfig, parse_scenario
from paper import EXPERIMENTS, Context, Experiment, Library, Preset, measure, play_block

TOML = """
name = "small"
rounds_per_slot = 2
[data]
source = "digits"
samples = [3, 6]
[model]
step = 5e-4
epochs = 1
batch = 10
"""

TINY = Preset(name="tiny", trials=2, slots=6, block=2, folder="nowhere")


def small() -> ScenarioConfig:
    return parse_scenario(TOML)


def small_library(folder: Path) -> Library:
    return Library(folder=folder, base=small(), ground=digits(), seed=3, block=TINY.block)


def small_atlas(folder: Path) -> Path:
    """The table that comes with fedelect, passed off as one of the small scenario: to train all cohorts takes long."""
    atlas = load_atlas(shipped_atlases()["paper"])
    renamed = dataclasses.replace(atlas, world=dataclasses.replace(atlas.world, config=small()))
    folder.mkdir(parents=True, exist_ok=True)
    save_atlas(dataclasses.replace(renamed, digest=digest_of(renamed)), folder / "atlas.npz")
    return folder / "atlas.npz"


def fill(library: Library, experiments: Sequence[Experiment] = EXPERIMENTS) -> None:
    """Play and measure all that the experiments ask for at the tiny size."""
    demands = [demand for one in experiments for demand in one.at(TINY)]
    for task in library.missing(demands):
        play_block(task, library.ground)
    context = Context(library=library, preset=TINY, atlas=small_atlas(library.folder))
    for one in experiments:
        for name in one.measurements:
            measure(name, context)
