"""The header of every result: when, by which command, with which versions, on what machine it was computed.

Run folders, atlases and exported tables hold one. Every driver creates it the same way:

    RunHeader(..., provenance=create_provenance(command, versions_of(engine.name)))
"""

import contextlib
import datetime
import importlib.metadata
import platform

import msgspec
import numpy as np

from fedelect._version import __version__
from fedelect.errors import ConfigurationError


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a result comes from; no part of its identity.

    Attributes:
        created: When it was first started, ISO 8601 in UTC.
        command: The command line that repeats it.
        versions: Version of each program and library that computed it.
        platform: The machine's operating system and processor.
    """

    created: str
    command: str
    versions: dict[str, str]
    platform: str

    def __post_init__(self) -> None:
        try:
            offset = datetime.datetime.fromisoformat(self.created).utcoffset()
        except ValueError:
            offset = None
        if offset != datetime.timedelta(0):
            raise ConfigurationError(
                f"provenance.created must be an ISO 8601 time in UTC, "
                f"such as 2025-01-31T12:00:00Z; got {self.created!r}"
            )


def create_provenance(command: str, versions: dict[str, str]) -> Provenance:
    """Create the header of a result whose computation starts now, on this machine.

    Args:
        command: The command line that repeats it; empty if there is none.
        versions: `fedelect.federation.versions_of(engine)` where something is trained, else `library_versions()`.
    """
    return Provenance(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=command,
        versions=versions,
        platform=f"{platform.system()} {platform.machine()}",
    )


def library_versions(*libraries: str) -> dict[str, str]:
    """Versions of fedelect, Python, numpy and those of `libraries` that are installed."""
    versions = {"fedelect": __version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in libraries:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
