"""The blocks of the pre-registered run: drawing by drawing, all series of a drawing before the next one.

Blocks are those of `paper.player`: a killed run loses at most a minute of the blocks under way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fedelect.scenario import Dataset, ScenarioConfig
from paper.blocks import Curves
from paper.player import BlockTask
from paper.registered.registration import RegisteredSeries, RegisteredWorld, Registration
from paper.registered.settings import Setting
from paper.runner import AbstractResultStore, ResultStore, ResultStoreOnFile
from paper.series import RunRequest, Series

FOLDER = Path("paper/results/registered")
"""Where its results are kept, below the root of the repository."""

CALIBRATION = FOLDER / "calibration.json"

GRADIENT = "gradient"
"""Folder, in that of a drawing, of the check of the gradient."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One series in one drawing.

    Attributes:
        drawing: Seed of the drawing.
        place: Folder of its world below that of the drawing.
        setting: Setting of the world.
        series: The series.
        slots: T.
    """

    drawing: int
    place: str
    setting: Setting
    series: RegisteredSeries
    slots: int

    @property
    def config(self) -> ScenarioConfig:
        """The scenario."""
        return self.setting.config(self.drawing)

    @property
    def request(self) -> RunRequest:
        """What is asked of a store."""
        series = Series(selector=self.series.selector, framework=self.series.framework)
        return RunRequest(series=series, trials=self.series.trials, slots=self.slots)

    def folder(self, root: Path) -> Path:
        """Where its blocks are, below the folder of the run."""
        return root / str(self.drawing) / self.place

    def curves(self, root: Path, data_digest: str) -> Curves | None:
        """Its results; None while any trial is missing."""
        store: AbstractResultStore = ResultStoreOnFile(
            folder=self.folder(root),
            base=self.config,
            seed=self.drawing,
            block=self.series.trials,
            known_digest=data_digest,
        )
        return store.curves(self.request)


def list_parts(registration: Registration) -> Iterator[Part]:
    """All parts in the order in which they are played; those of the check of the gradient are the last."""
    for drawing in registration.drawings:
        for world in registration.worlds:
            yield from parts_of(world, drawing)
    for drawing in registration.gradient.drawings:
        yield from parts_of_check(registration, drawing)


def parts_of(world: RegisteredWorld, drawing: int) -> Iterator[Part]:
    """The parts of one world in one drawing."""
    for series in world.series:
        yield Part(drawing=drawing, place=world.name, setting=world.setting, series=series, slots=series.slots)


def parts_of_check(registration: Registration, drawing: int) -> Iterator[Part]:
    """The parts of the check of the gradient in one drawing."""
    check = registration.gradient
    for series in registration.worlds[0].series:
        slots = min(series.slots, check.slots)
        yield Part(drawing=drawing, place=GRADIENT, setting=check.setting, series=series, slots=slots)


def list_missing_tasks(registration: Registration, dataset: Dataset, root: Path) -> list[BlockTask]:
    """The blocks that are not on file, in order."""
    tasks = []
    for part in list_parts(registration):
        store = ResultStore(
            folder=part.folder(root), base=part.config, seed=part.drawing, block=part.series.trials, source=dataset
        )
        tasks += store.missing([part.request])
    return tasks
