"""Measurements by name, each kept in a file of its own once it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fedelect.errors import RunError, RunMismatchError
from fedelect.federation import DEFAULT_ENGINE, versions_of
from fedelect.records.run_folder import replace_file
from fedelect.reproduce.catalogue import Preset
from fedelect.reproduce.measurements.complexity import ComplexityTable, measure_complexity
from fedelect.reproduce.measurements.context import Context
from fedelect.reproduce.measurements.convergence import ConvergenceTable, measure_convergence
from fedelect.reproduce.measurements.losses import Losses, measure_losses
from fedelect.reproduce.measurements.optimum import Optimum, measure_optimum
from fedelect.reproduce.measurements.parts import Parts
from fedelect.reproduce.measurements.regret import Regret, measure_regret
from fedelect.reproduce.measurements.sensitivity import Sensitivity, measure_sensitivity
from fedelect.reproduce.runner import AbstractLibrary

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


@dataclass(frozen=True)
class Measurement:
    """How a value is made, and what type it is."""

    kind: type[msgspec.Struct]
    make: Callable[[Context, Parts], msgspec.Struct]


MEASUREMENTS: dict[str, Measurement] = {
    "losses": Measurement(Losses, measure_losses),
    "optimum": Measurement(Optimum, measure_optimum),
    "convergence": Measurement(ConvergenceTable, measure_convergence),
    "regret": Measurement(Regret, measure_regret),
    "sensitivity": Measurement(Sensitivity, measure_sensitivity),
    "complexity": Measurement(ComplexityTable, measure_complexity),
}


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a measurement was made with.

    Attributes:
        scenario: The base scenario, plain values.
        data_digest: Hash of its data.
        seed: Seed of the runs.
        trials: At most so many trials; None for all.
        slots: At most so many slots; None for all.
        versions: Of all that decides over the last bit; empty where they were not noted. They are not compared.
    """

    scenario: dict[str, Any]
    data_digest: str
    seed: int
    trials: int | None
    slots: int | None
    versions: dict[str, str] = {}


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A measurement as it is written."""

    about: About
    value: msgspec.Raw


def measurement_path(folder: Path, name: str) -> Path:
    """Where a measurement is kept, below the folder of all results."""
    return folder / "measurements" / f"{name}.json"


def read_measurement(library: AbstractLibrary, preset: Preset, name: str, kind: type[_Kind]) -> _Kind | None:
    """What is on file, or None if nothing is.

    Raises:
        RunError: It cannot be read.
        RunMismatchError: It was made with another scenario, other data, another seed or at another size.
    """
    path = measurement_path(library.folder, name)
    if not path.exists():
        return None
    try:
        kept = _read(path)
        value = msgspec.json.decode(kept.value, type=kind)
    except msgspec.MsgspecError as error:
        raise _unreadable(path, error) from error
    expected = _about(library, preset)
    for field in About.__struct_fields__:
        if field != "versions" and getattr(kept.about, field) != getattr(expected, field):
            raise RunMismatchError(
                f"the measurement {path} was made with another {field}; take another folder, or delete it to make it "
                f"anew"
            )
    return value


def made_with(folder: Path, name: str) -> str | None:
    """Versions that a measurement was made with, in a line; None if it is not on file.

    Raises:
        RunError: It cannot be read.
    """
    path = measurement_path(folder, name)
    if not path.exists():
        return None
    versions = _read(path).about.versions
    return ", ".join(f"{library} {number}" for library, number in versions.items()) or "versions not noted"


def _read(path: Path) -> _Kept:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> RunError:
    return RunError(f"the measurement {path} cannot be read: {error}; delete it to make it anew")


def keep_measurement(library: AbstractLibrary, preset: Preset, name: str, value: msgspec.Struct) -> None:
    """Write a measurement, all or nothing, with what it was made with."""
    path = measurement_path(library.folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = _Kept(about=_about(library, preset), value=msgspec.Raw(msgspec.json.encode(value)))
    replace_file(path, msgspec.json.format(msgspec.json.encode(kept), indent=1), b"\n")


def measure(name: str, context: Context) -> None:
    """Make a measurement and keep it, unless it is on file; one that was stopped goes on from its parts."""
    library, preset, measurement = context.library, context.preset, MEASUREMENTS[name]
    if read_measurement(library, preset, name, measurement.kind) is None:
        path = measurement_path(library.folder, name).with_suffix(".part")
        parts = Parts(path, _about(library, preset), workers=context.workers, progress=context.progress)
        keep_measurement(library, preset, name, measurement.make(context, parts))
        parts.discard()


def _about(library: AbstractLibrary, preset: Preset) -> About:
    return About(
        scenario=msgspec.json.decode(msgspec.json.encode(library.base)),  # as it will be read again
        data_digest=library.data_digest,
        seed=library.seed,
        trials=preset.trials,
        slots=preset.slots,
        versions=versions_of(DEFAULT_ENGINE),
    )
