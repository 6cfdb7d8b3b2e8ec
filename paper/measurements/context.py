"""Inputs of a measurement."""

from dataclasses import dataclass
from pathlib import Path

from fedelect.atlas import load_atlas
from fedelect.errors import ConfigurationError
from fedelect.scenario import Dataset
from fedelect.vocabulary import Progress, ignore_progress
from paper.catalogue import Preset
from paper.runner import ResultStore


@dataclass(frozen=True, kw_only=True)
class Context:
    """The scenario with its data, how much to do, and where an atlas of the main world is.

    Attributes:
        store: Scenario, data, seed and results.
        preset: How much to do.
        workers: Processes.
        atlas: The atlas of the main world, or None if there is none.
        progress: Called with (parts finished, parts in all).
    """

    store: ResultStore
    preset: Preset
    workers: int = 1
    atlas: Path | None = None
    progress: Progress = ignore_progress

    @property
    def dataset(self) -> Dataset:
        """The data of the base scenario.

        Raises:
            ConfigurationError: There is an atlas in their place.
        """
        if not isinstance(self.store.source, Dataset):
            raise ConfigurationError("this is measured by training, which an atlas cannot; leave --on-atlas out")
        return self.store.source

    def atlas_path(self) -> Path:
        """The atlas of the main world.

        Raises:
            ConfigurationError: There is none, or it is of another scenario.
        """
        if self.atlas is None:
            raise ConfigurationError("this is measured on the atlas of the main world, and there is none; give --atlas")
        if load_atlas(self.atlas).config != self.store.base:
            raise ConfigurationError(
                f"{self.atlas} is an atlas of another scenario than the one reproduced; "
                f"`fedelect atlas build paper` makes the right one"
            )
        return self.atlas
