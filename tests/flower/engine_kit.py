"""What tests on Flower's own engines share: the federation on this machine that drives them, and records in order."""

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fedelect.records import SlotRecord, read_run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flower"
APPS = Path(__file__).parent / "apps"

sys.path.append(str(EXAMPLE))
loopback = importlib.import_module("loopback")


def by_slot(folder: Path) -> list[SlotRecord]:
    return sorted(read_run(folder).records, key=lambda record: record.slot)


def wait_until(what: Callable[[], bool], *, deadline_s: float) -> None:
    until = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < until, f"not within {deadline_s:g} s"
        time.sleep(0.2)
