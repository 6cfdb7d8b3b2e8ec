"""Measurements by name, each kept in a file of its own once it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from fedelect.errors import RunError
from fedelect.records.run_folder import replace_file
from fedelect.reproduce.measurements.complexity import ComplexityTable, measure_complexity
from fedelect.reproduce.measurements.context import Context
from fedelect.reproduce.measurements.convergence import ConvergenceTable, measure_convergence
from fedelect.reproduce.measurements.losses import Losses, measure_losses
from fedelect.reproduce.measurements.regret import Regret, measure_regret
from fedelect.reproduce.measurements.sensitivity import Sensitivity, measure_sensitivity

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


@dataclass(frozen=True)
class Measurement:
    """How a value is made, and what type it is."""

    kind: type[msgspec.Struct]
    make: Callable[[Context], msgspec.Struct]


MEASUREMENTS: dict[str, Measurement] = {
    "losses": Measurement(Losses, measure_losses),
    "convergence": Measurement(ConvergenceTable, measure_convergence),
    "regret": Measurement(Regret, measure_regret),
    "sensitivity": Measurement(Sensitivity, measure_sensitivity),
    "complexity": Measurement(ComplexityTable, measure_complexity),
}


def measurement_path(folder: Path, name: str) -> Path:
    """Where a measurement is kept, below the folder of all results."""
    return folder / "measurements" / f"{name}.json"


def read_measurement(folder: Path, name: str, kind: type[_Kind]) -> _Kind | None:
    """What is on file, or None if nothing is.

    Raises:
        RunError: It cannot be read.
    """
    path = measurement_path(folder, name)
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"the measurement {path} cannot be read: {error}; delete it to make it anew") from error


def measure(name: str, context: Context) -> None:
    """Make a measurement and keep it, unless it is on file."""
    path = measurement_path(context.library.folder, name)
    measurement = MEASUREMENTS[name]
    if read_measurement(context.library.folder, name, measurement.kind) is not None:
        return
    value = measurement.make(context)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.format(msgspec.json.encode(value), indent=1), b"\n")
