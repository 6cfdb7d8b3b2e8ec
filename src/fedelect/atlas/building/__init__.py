"""The work behind an atlas: trainings, and the finished parts of a build under way."""

from fedelect.atlas.building.parts import Parts as Parts
from fedelect.atlas.building.parts import remove_leftovers as remove_leftovers
from fedelect.atlas.building.trainer import Trained as Trained
from fedelect.atlas.building.trainer import Trainer as Trainer

__all__ = ["Parts", "Trained", "Trainer", "remove_leftovers"]
