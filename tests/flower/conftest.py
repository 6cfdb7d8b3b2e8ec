"""Fixtures for tests on Flower's own engines; the apps they run are not tests."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flower.engine_kit import loopback

collect_ignore = ["apps"]


@pytest.fixture
def no_process_left_behind(tmp_path: Path) -> Iterator[None]:
    """After the test, wait until every process with a FLWR_HOME below its folder is gone."""
    yield
    homes = [tmp_path / "home", tmp_path / "flower" / "home"]
    until = time.monotonic() + 240
    while left := [loopback.command_of(pid) for home in homes for pid in loopback.family(home)]:
        assert time.monotonic() < until, f"left behind: {left}"
        time.sleep(0.5)
