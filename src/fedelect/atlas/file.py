"""An atlas as one self-contained .npz file: no data set, no pickle.

The member `about` is JSON: format, version, configuration, seed, engine, digests, provenance. The others are arrays,
see docs/ATLAS.md. Counts of seed 0 are written as differences from client to client, those of the other seeds as
differences from seed 0, low and high bytes apart: most of these numbers are small, and deflate compresses them well.
"""

import hashlib
import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedelect._npz import read_npz
from fedelect.atlas.facts import FACTS, check, copy_typed, world_of_facts
from fedelect.atlas.table import COUNTS, FLOATS, Atlas
from fedelect.errors import ConfigurationError, DataError
from fedelect.records import Provenance
from fedelect.records.files import replace_file
from fedelect.scenario import ScenarioConfig

FORMAT = "fedelect-atlas"
VERSION = 1

_ARRAYS = (*FACTS, "test_sizes", "untrained", "contenders")
_CODED = ("table", "fresh")


class _Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The member `about`."""

    format: str
    version: int
    opinions: str
    shapes: dict[str, tuple[int, int, int]]
    config: ScenarioConfig
    seed: int
    engine: str
    data_digest: str
    classes: int
    features: int
    groups: dict[str, tuple[int, ...]]
    provenance: Provenance
    digest: str


class _Kind(msgspec.Struct, frozen=True):
    """The part of `about` that must be readable in any version."""

    format: str
    version: int


def save_atlas(atlas: Atlas, path: Path) -> None:
    """Write the atlas atomically. RunError if the file cannot be written."""
    members: dict[str, NDArray[Any]] = {"about": np.frombuffer(msgspec.json.encode(_about(atlas)), dtype=np.uint8)}
    members |= {name: getattr(atlas.world if name in FACTS else atlas, name) for name in _ARRAYS}
    for name in _CODED:
        members |= _encode(name, getattr(atlas, name))
    members |= {name: getattr(atlas, name) for name in _optional(atlas)}
    content = io.BytesIO()
    np.savez_compressed(content, **members)  # type: ignore[arg-type]
    replace_file(path, content.getvalue())


def load_atlas(path: Path) -> Atlas:
    """Read an atlas and check it.

    Raises:
        DataError: There is no such file, or it is not an atlas, of another version, or damaged.
    """
    members = _members(path)
    if "about" not in members:
        raise DataError(f"{path} is not an atlas: it lacks the member `about`; `fedelect atlas build` makes one")
    about = _read_description(path, members["about"].tobytes())
    try:
        atlas = _atlas(about, members)
        check(atlas)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataError(f"the atlas {path} is damaged: {error}; build it again") from error
    if atlas.digest != digest_of(atlas):
        raise DataError(f"the atlas {path} is damaged: its content is not what its digest says; build it again")
    return atlas


def digest_of(atlas: Atlas) -> str:
    """Hash of the atlas' content, all but the provenance: 32 hexadecimal digits."""
    content = hashlib.blake2b(digest_size=16)
    about = msgspec.structs.replace(_about(atlas), provenance=_NOWHERE, digest="")
    content.update(msgspec.json.encode(about))
    for name in (*_ARRAYS, *_CODED, *_optional(atlas)):
        array = np.ascontiguousarray(getattr(atlas.world if name in FACTS else atlas, name))
        content.update(repr((name, array.shape, array.dtype.str)).encode())
        content.update(array.tobytes())
    return content.hexdigest()


def shipped_atlases() -> dict[str, Path]:
    """The atlases that come with fedelect: name -> file, in order of name."""
    folder = Path(__file__).parent / "shipped"
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}


def _optional(atlas: Atlas) -> tuple[str, ...]:
    """The members that only some atlases have."""
    return () if atlas.losses is None else ("losses",)


_NOWHERE = Provenance(created="1970-01-01T00:00:00Z", command="", versions={}, platform="")


def _about(atlas: Atlas) -> _Description:
    return _Description(
        format=FORMAT,
        version=VERSION,
        opinions="counts" if atlas.counted else "float32",
        shapes={name: getattr(atlas, name).shape for name in _CODED},
        config=atlas.config,
        seed=atlas.seed,
        engine=atlas.engine,
        data_digest=atlas.data_digest,
        classes=atlas.world.classes,
        features=atlas.world.features,
        groups=atlas.world.groups,
        provenance=atlas.provenance,
        digest=atlas.digest,
    )


def _members(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_npz(path, lambda found: found)
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}; `fedelect atlas build SCENARIO --out {path}` makes it") from error
    except DataError as error:
        raise DataError(
            f"{path} cannot be read as an atlas: {error}. `fedelect atlas build SCENARIO --out FILE` makes one"
        ) from error


def _read_description(path: Path, text: bytes) -> _Description:
    try:
        kind = msgspec.json.decode(text, type=_Kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not an atlas: {error}") from error
    if kind.format != FORMAT:
        raise DataError(f"{path} is not an atlas but {kind.format!r}")
    if kind.version != VERSION:
        raise DataError(
            f"the atlas {path} is of version {kind.version}, this fedelect reads version {VERSION}; "
            f"use the fedelect that built it, or build it again"
        )
    try:
        return msgspec.json.decode(text, type=_Description)
    except (msgspec.MsgspecError, ConfigurationError) as error:
        raise DataError(f"the atlas {path} is damaged: {error}; build it again") from error


def _atlas(about: _Description, members: dict[str, NDArray[Any]]) -> Atlas:
    if about.opinions not in ("counts", "float32"):
        raise ValueError(f"opinions are kept as {about.opinions!r}")
    dtype = COUNTS if about.opinions == "counts" else FLOATS
    world = world_of_facts(
        about.config,
        classes=about.classes,
        features=about.features,
        groups=about.groups,
        facts={name: members[name] for name in FACTS},
    )
    return Atlas(
        world=world,
        seed=about.seed,
        engine=about.engine,
        data_digest=about.data_digest,
        test_sizes=copy_typed("test_sizes", members["test_sizes"], np.int64),
        untrained=copy_typed("untrained", members["untrained"], np.float64),
        table=_decode("table", members, about.shapes["table"], dtype),
        contenders=copy_typed("contenders", members["contenders"], np.int64),
        fresh=_decode("fresh", members, about.shapes["fresh"], dtype),
        provenance=about.provenance,
        digest=about.digest,
        losses=copy_typed("losses", members["losses"], np.float16) if "losses" in members else None,
    )


def _encode(name: str, entries: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if entries.dtype != COUNTS:
        return {name: entries}
    steps = entries.copy()  # differences are modulo 2**16, so that no count is lost
    steps[1:] -= entries[0]
    steps[0, 1:] -= entries[0, :-1]
    folded = (steps << 1) ^ np.where(steps >> 15, COUNTS.type(0xFFFF), COUNTS.type(0))  # 0, -1, 1, -2, ... in turn
    return {f"{name}_low": (folded & 0xFF).astype(np.uint8), f"{name}_high": (folded >> 8).astype(np.uint8)}


def _decode(
    name: str, members: dict[str, NDArray[Any]], shape: tuple[int, int, int], dtype: np.dtype[Any]
) -> NDArray[Any]:
    if dtype != COUNTS:
        entries = copy_typed(name, members[name], np.float32)
    else:
        planes = [copy_typed(part, members[part], np.uint8).astype(COUNTS) for part in (f"{name}_low", f"{name}_high")]
        folded = planes[0] | (planes[1] << 8)
        entries = (folded >> 1) ^ np.where(folded & 1, COUNTS.type(0xFFFF), COUNTS.type(0))
        entries[0] = np.cumsum(entries[0], axis=0, dtype=COUNTS)
        entries[1:] += entries[0]
    if entries.shape != shape:
        raise ValueError(f"{name} has shape {entries.shape}, expected {shape}")
    entries.flags.writeable = False
    return entries
