"""The parts of a measurement: computed once, by the plan they belong to."""

from pathlib import Path

import pytest

from fedelect.records import PartStore
from paper.measurements.parts import MeasurementParts


def halve(number: int, stop_at: int) -> float:
    """A function for parts; stopped at one number."""
    if number == stop_at:
        raise KeyboardInterrupt
    return number / 2


def test_parts_that_are_finished_are_not_computed_again(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "some.parts"
    told: list[tuple[int, int]] = []

    def compute(plan: int, stop_at: int, numbers: dict[str, int]) -> dict[str, float]:
        store = PartStore(folder, {"seed": plan}, what="halves", start_over=True)
        try:
            parts = MeasurementParts(store, progress=lambda finished, total: told.append((finished, total)))
            return parts.compute(float, halve, {name: (number, stop_at) for name, number in numbers.items()})
        finally:
            store.close()

    with pytest.raises(KeyboardInterrupt):
        compute(1, 3, {"one": 1, "two": 2, "three": 3})
    assert told == [(0, 3), (1, 3), (2, 3)]
    told.clear()
    # "one" is stored: it is not asked for 100 / 2.
    assert compute(1, 0, {"one": 100, "two": 2, "three": 3}) == {"one": 0.5, "two": 1.0, "three": 1.5}
    assert told == [(2, 3), (3, 3)]
    assert compute(2, 0, {"one": 100}) == {"one": 50.0}  # another plan
    (folder / "one.part").write_bytes(b"torn")
    assert compute(2, 0, {"one": 8}) == {"one": 4.0}
