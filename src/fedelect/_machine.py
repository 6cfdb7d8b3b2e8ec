"""What this machine can hold and do, and the refusal of work that is out of all proportion to it."""

import os
from pathlib import Path

from fedelect.errors import ConfigurationError

_UNKNOWN_MEMORY = 16 * 2**30
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

LARGEST_SHARE = 0.5
"""Share of the memory that a simulation may be expected to take."""

LONGEST_S = 30 * 86_400.0
"""Seconds of one core that a simulation may be expected to take: 30 days."""


def memory_bytes() -> int:
    """Memory of this machine or, if that is less, of the container; 16 GiB where nobody says."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        found = _UNKNOWN_MEMORY
    for path in _CGROUP_LIMITS:
        try:
            found = min(found, int(path.read_text()))
        except (OSError, ValueError):
            continue
    return found


def as_float(number: float) -> float:
    """Convert a number, also a whole number too large for a float."""
    return float(min(number, 10**100))


def format_bytes(count: float) -> str:
    """Bytes in words, such as "1.5 GiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.3g} {unit}"


def refuse_too_large(what: str, *, memory: float, seconds: float) -> None:
    """Refuse work that would take too much memory or time; both are lower bounds.

    Args:
        what: The work and what makes it large, for the message.
        memory: Bytes, all processes together.
        seconds: Of one core.

    Raises:
        ConfigurationError: More than `LARGEST_SHARE` of the memory, or `LONGEST_S`.
    """
    most = LARGEST_SHARE * memory_bytes()
    too_much = []
    if memory > most:
        too_much.append(f"{format_bytes(memory)} of memory (half of this machine's is {format_bytes(most)})")
    if seconds > LONGEST_S:
        too_much.append(f"{seconds / 86_400.0:.3g} days of one core (30 are the limit)")
    if too_much:
        raise ConfigurationError(
            f"{what} would take at least {' and '.join(too_much)}; nothing was started. Take smaller numbers, or "
            f"insist with allow_large=True (--allow-large)"
        )
