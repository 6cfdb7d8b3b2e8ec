"""The drawings of the pre-registered run that are complete, world by world."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paper.blocks import Curves
from paper.published import Baselines
from paper.registered.calibration import read_registered_calibration
from paper.registered.registration import RegisteredWorld, Registration, read_registration
from paper.registered.run import CALIBRATION, Part, parts_of


@dataclass(frozen=True, kw_only=True)
class CompleteDrawing:
    """One drawing of one world, all of whose series are on file.

    Attributes:
        drawing: Its seed.
        fixed: The cohort that the paper calls optimal.
        random: Random selection.
        reading: The reading under test.
        as_printed: The algorithm as printed.
    """

    drawing: int
    fixed: Curves
    random: Curves
    reading: Curves
    as_printed: Curves

    @property
    def baselines(self) -> Baselines:
        """Mean opinion of a slot of its fixed cohort and of its random selection."""
        return Baselines(float(np.nanmean(self.fixed.opinions)), float(np.nanmean(self.random.opinions)))


@dataclass(frozen=True, kw_only=True)
class DrawnWorld:
    """A world of the run with its complete drawings.

    Attributes:
        aim: Baselines of the paper, to which each drawing is mapped.
        drawings: The complete drawings, in order.
    """

    aim: Baselines
    drawings: tuple[CompleteDrawing, ...]


Drawings = Mapping[str, DrawnWorld]
"""By the name of the world, "fa" or "da"; empty where the run is not on file."""


def read_drawings(root: Path) -> Drawings:
    """The complete drawings on file below `root`, by world."""
    registration = read_registration()
    return {
        world.name: DrawnWorld(aim=world.aim, drawings=complete_drawings(world, registration, root))
        for world in registration.worlds
    }


def complete_drawings(world: RegisteredWorld, registration: Registration, root: Path) -> tuple[CompleteDrawing, ...]:
    """The drawings of one world of which every trial is on file below `root`."""
    digest = data_digest(root)
    found = [complete_drawing(parts_of(world, drawing), drawing, root, digest) for drawing in registration.drawings]
    return tuple(one for one in found if one is not None)


def complete_drawing(parts: Iterable[Part], drawing: int, root: Path, digest: str) -> CompleteDrawing | None:
    """One drawing from its parts; None while any trial is missing."""
    curves: dict[str, Curves] = {}
    for part in parts:
        found = part.curves(root, digest)
        if found is None:
            return None
        curves[part.series.role] = found
    return CompleteDrawing(
        drawing=drawing,
        fixed=curves["fixed"],
        random=curves["random"],
        reading=curves["reading"],
        as_printed=curves["as printed"],
    )


def data_digest(root: Path) -> str:
    """Hash of the data that the run was trained on; empty where nothing is on file."""
    calibration = root / CALIBRATION.name
    return read_registered_calibration(calibration).data_digest if calibration.exists() else ""
