"""Measurements by name, each stored in its own file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fedelect.atlas import load_atlas
from fedelect.errors import RunError, RunMismatchError
from fedelect.federation import DEFAULT_ENGINE, versions_of
from fedelect.records import PartStore
from fedelect.records.files import make_folder, replace_file
from paper.catalogue import Preset
from paper.measurements import complexity, convergence, losses, regret, sensitivity
from paper.measurements.complexity import ComplexityTable, measure_complexity
from paper.measurements.context import Context
from paper.measurements.convergence import ConvergenceTable, measure_convergence
from paper.measurements.losses import Losses, measure_losses
from paper.measurements.optimum import Optimum, measure_optimum
from paper.measurements.parts import MeasurementParts
from paper.measurements.regret import Regret, measure_regret
from paper.measurements.sensitivity import Sensitivity, measure_sensitivity
from paper.runner import AbstractResultStore

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


@dataclass(frozen=True)
class Measurement:
    """How a value is made.

    Attributes:
        kind: Its type.
        make: Makes it.
        settings: What it depends on besides scenario, data, seed and preset, plain values: one that was made with
            others is refused until it is deleted.
        on_atlas: Whether it is read off the atlas of the main world.
    """

    kind: type[msgspec.Struct]
    make: Callable[[Context, MeasurementParts], msgspec.Struct]
    settings: Mapping[str, object]
    on_atlas: bool = False


MEASUREMENTS: dict[str, Measurement] = {
    "losses": Measurement(Losses, measure_losses, losses.SETTINGS),
    "optimum": Measurement(Optimum, measure_optimum, {}, on_atlas=True),
    "convergence": Measurement(ConvergenceTable, measure_convergence, convergence.SETTINGS),
    "regret": Measurement(Regret, measure_regret, regret.SETTINGS, on_atlas=True),
    "sensitivity": Measurement(Sensitivity, measure_sensitivity, sensitivity.SETTINGS, on_atlas=True),
    "complexity": Measurement(ComplexityTable, measure_complexity, complexity.SETTINGS),
}


class MeasurementKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a measurement was made with.

    Attributes:
        scenario: The base scenario, plain values.
        data_digest: Hash of its data.
        seed: Seed of the runs.
        trials: Most trials; None for all.
        slots: Most slots; None for all.
        settings: Of the measurement itself, plain values.
        atlas: Hash of the atlas that it was computed from, or None. It is not compared where no atlas is at hand.
        versions: Of all that the last bit depends on. They are not compared.
    """

    scenario: dict[str, Any]
    data_digest: str
    seed: int
    trials: int | None
    slots: int | None
    settings: dict[str, Any]
    atlas: str | None
    versions: dict[str, str]


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A measurement as it is written."""

    about: MeasurementKey
    value: msgspec.Raw


def measurement_path(folder: Path, name: str) -> Path:
    """Where a measurement is kept, below the folder of all results."""
    return folder / "measurements" / f"{name}.json"


def read_measurement(
    store: AbstractResultStore, preset: Preset, name: str, kind: type[_Kind], *, atlas: str | None = None
) -> _Kind | None:
    """Read a measurement from file; None if it is not there.

    Args:
        store: The results.
        preset: How much is asked for.
        name: Which measurement.
        kind: Its type.
        atlas: Hash of the atlas that it must have been read off; any will do if None.

    Raises:
        RunError: It cannot be read.
        RunMismatchError: It was made with another scenario, other data, another seed, other settings, another atlas or
            at another size.
    """
    path = measurement_path(store.folder, name)
    if not path.exists():
        return None
    try:
        kept = _read(path)
        value = msgspec.json.decode(kept.value, type=kind)
    except msgspec.MsgspecError as error:
        raise _unreadable(path, error) from error
    expected = _key(store, preset, name, atlas if atlas is not None else kept.about.atlas)
    for field in MeasurementKey.__struct_fields__:
        if field != "versions" and getattr(kept.about, field) != getattr(expected, field):
            raise RunMismatchError(
                f"the measurement {path} was made with {_other(field, kept.about, expected)}; take another folder, or "
                f"delete it to make it anew"
            )
    return value


def _other(field: str, found: MeasurementKey, expected: MeasurementKey) -> str:
    """Describe what differs from what was expected."""
    if field != "settings":
        return f"another {field}"
    one, other = found.settings, expected.settings
    changed = [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
    return f"other settings ({', '.join(changed)})"


def made_with(folder: Path, name: str) -> str | None:
    """Versions that a measurement was made with, in a line; None if it is not on file.

    Raises:
        RunError: It cannot be read.
    """
    path = measurement_path(folder, name)
    if not path.exists():
        return None
    return ", ".join(f"{name} {number}" for name, number in _read(path).about.versions.items())


def _read(path: Path) -> _Kept:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> RunError:
    return RunError(f"the measurement {path} cannot be read: {error}; delete it to make it anew")


def keep_measurement(
    store: AbstractResultStore, preset: Preset, name: str, value: msgspec.Struct, *, atlas: str | None = None
) -> None:
    """Write a measurement atomically, with its key."""
    path = measurement_path(store.folder, name)
    make_folder(path.parent)
    kept = _Kept(about=_key(store, preset, name, atlas), value=msgspec.Raw(msgspec.json.encode(value)))
    replace_file(path, msgspec.json.format(msgspec.json.encode(kept), indent=1), b"\n")


def is_measured(name: str, context: Context) -> bool:
    """Whether a measurement is on file.

    Raises:
        ConfigurationError: The atlas that it is read off cannot be used.
        DataError: The atlas cannot be read.
        RunError: What is on file cannot be read, or was made with something else.
    """
    kind = MEASUREMENTS[name].kind
    return read_measurement(context.store, context.preset, name, kind, atlas=_atlas(name, context)) is not None


def measure(name: str, context: Context) -> None:
    """Make a measurement and store it, unless it is on file; resume an unfinished one from its parts."""
    if is_measured(name, context):
        return
    store, preset, atlas = context.store, context.preset, _atlas(name, context)
    folder = measurement_path(store.folder, name).with_suffix(".parts")
    key = msgspec.to_builtins(_key(store, preset, name, atlas))
    part_store = PartStore(folder, key, what=f"the measurement {name}", start_over=True)
    try:
        parts = MeasurementParts(part_store, context.workers, context.progress)
        keep_measurement(store, preset, name, MEASUREMENTS[name].make(context, parts), atlas=atlas)
    except BaseException:
        part_store.close()
        raise
    part_store.discard()


def _atlas(name: str, context: Context) -> str | None:
    """Hash of the atlas that a measurement is read off, if it is."""
    return load_atlas(context.atlas_path()).digest if MEASUREMENTS[name].on_atlas else None


def _key(store: AbstractResultStore, preset: Preset, name: str, atlas: str | None) -> MeasurementKey:
    return MeasurementKey(
        scenario=_as_read(store.base),
        data_digest=store.data_digest,
        seed=store.seed,
        trials=preset.trials,
        slots=preset.slots,
        settings=_as_read(MEASUREMENTS[name].settings),
        atlas=atlas,
        versions=versions_of(DEFAULT_ENGINE),
    )


def _as_read(value: object) -> dict[str, Any]:
    """Plain values as they will be read again."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return plain
