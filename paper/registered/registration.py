"""The registration: a TOML file that was committed before anything of the run was trained, and that the run, the
verdict code and the pages read. Nothing in it is changed afterwards.
"""

import functools
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fedelect.errors import ConfigurationError
from fedelect.loop import FrameworkName
from paper.published import Baselines
from paper.registered.settings import Setting

PATH = Path(__file__).with_name("registration.toml")

Role = Literal["fixed", "random", "reading", "as printed"]
Measured = Literal["slots to target", "accuracy at target", "average accuracy", "elections"]

_Count = Annotated[int, msgspec.Meta(ge=1)]


class RegisteredSeries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One selector in one world.

    Attributes:
        role: Baseline, the reading under test, or the algorithm as printed.
        selector: Its text, as `fedelect run --selector` takes it.
        framework: "fa" or "da".
        trials: Trials in each drawing.
        slots: T.
    """

    role: Role
    selector: str
    framework: FrameworkName
    trials: _Count
    slots: _Count


class RegisteredNumber(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number of the paper, with a tolerance.

    Attributes:
        measured: What is measured.
        target: The accuracy to reach, where one is.
        slots: T at which it is read off.
        paper: The paper's number.
        tolerance: How far a mean may be from it; absolute.
    """

    measured: Measured
    target: float | None = None
    slots: _Count
    paper: float
    tolerance: Annotated[float, msgspec.Meta(gt=0.0)]

    @property
    def name(self) -> str:
        """In words."""
        match self.measured:
            case "slots to target":
                return f"slots to {self.target:.2f}"
            case "accuracy at target":
                return f"accuracy where {self.target:.2f} is reached"
            case "average accuracy":
                return f"average accuracy, T = {self.slots}"
            case "elections":
                return f"elections of an i.i.d. client, T = {self.slots}"


class RegisteredWorld(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A world, the reading that is tested in it, and the numbers it is tested by.

    Attributes:
        name: Short name, also of its folder.
        reading: The reading in words.
        fixed: What the cohort that the paper calls optimal reaches in a slot, in the paper.
        random: What random selection reaches in a slot, in the paper.
        setting: Chosen by the calibration.
        series: What is run.
        numbers: What is compared.
    """

    name: str
    reading: str
    fixed: float
    random: float
    setting: Setting
    series: tuple[RegisteredSeries, ...]
    numbers: tuple[RegisteredNumber, ...]

    @property
    def aim(self) -> Baselines:
        """The baselines in the paper."""
        return Baselines(self.fixed, self.random)

    def play(self, role: Role) -> RegisteredSeries:
        """The series with this role."""
        return next(series for series in self.series if series.role == role)


class GradientCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first world once more with the other gradient; it decides nothing.

    Attributes:
        setting: The nearest setting whose gradient is a sum over the batch.
        drawings: In which drawings it is run.
        slots: T at most.
    """

    setting: Setting
    drawings: tuple[int, ...]
    slots: _Count


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is fixed.

    Attributes:
        drawings: Seeds of the drawings of data and places, in the order in which they are played. The seed of a
            drawing is also the seed of its runs.
        first_term: The term before the first slot in every running mean.
        largest_spread: Largest standard deviation between trainings of the fixed cohort that a setting may have.
        most_samples: Largest share of a client that can be afforded.
        confidence: Of the intervals over drawings and trials.
        most_differing: A reading may have this many numbers that differ and be supported.
        contradicted_by: With this many numbers that differ, or are nearer as printed, it is contradicted.
        decisive: Index of the number, from 0, that alone contradicts a reading if it differs.
        worlds: The two worlds.
        gradient: The check of the gradient.
    """

    drawings: tuple[int, ...]
    first_term: float
    largest_spread: float
    most_samples: int
    confidence: float
    most_differing: int
    contradicted_by: int
    decisive: int
    worlds: tuple[RegisteredWorld, ...]
    gradient: GradientCheck

    @property
    def replica_slots(self) -> int:
        """Slots over all trials, drawings and worlds, without the check of the gradient."""
        return len(self.drawings) * sum(one.trials * one.slots for world in self.worlds for one in world.series)


@functools.cache
def read_registration(path: Path = PATH) -> Registration:
    """Read the file.

    Raises:
        ConfigurationError: It cannot be read, or says something that it may not.
    """
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Registration)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(
            f"the registration {path} cannot be read: {error}; restore the committed file"
        ) from error
