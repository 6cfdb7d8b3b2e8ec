"""A store of the whole catalogue in seconds: 20 clients on digits, two trials of a few slots."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tests.worlds import digits

from fedelect.atlas import load_atlas, save_atlas, shipped_atlases
from fedelect.atlas.file import digest_of
from fedelect.scenario import ScenarioConfig, parse_scenario
from paper import EXPERIMENTS, Context, Experiment, Preset, ResultStore, measure, play_block

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


def small_store(folder: Path) -> ResultStore:
    return ResultStore(folder=folder, base=small(), source=digits(), seed=3, block=TINY.block)


def small_atlas(folder: Path) -> Path:
    """The table that comes with fedelect, passed off as one of the small scenario: to train all cohorts takes long."""
    atlas = load_atlas(shipped_atlases()["paper"])
    renamed = dataclasses.replace(atlas, world=dataclasses.replace(atlas.world, config=small()))
    folder.mkdir(parents=True, exist_ok=True)
    save_atlas(dataclasses.replace(renamed, digest=digest_of(renamed)), folder / "atlas.npz")
    return folder / "atlas.npz"


def fill(store: ResultStore, experiments: Sequence[Experiment] = EXPERIMENTS) -> None:
    """Play and measure all that the experiments ask for at the tiny size."""
    requests = [request for one in experiments for request in one.at(TINY)]
    for task in store.missing(requests):
        play_block(task, store.source)
    context = Context(store=store, preset=TINY, atlas=small_atlas(store.folder))
    for one in experiments:
        for name in one.measurements:
            measure(name, context)
