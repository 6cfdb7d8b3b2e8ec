"""on_slot on Flower: each record once, in order, also over a resume."""

from pathlib import Path

import pytest
from flwr.serverapp.strategy import FedAvg
from tests.flower.elected_kit import elective
from tests.flower.engine_kit import by_slot
from tests.flower.fake_grid import federation, initial_arrays

from fedelect.errors import RunError
from fedelect.flower import GoalDirected
from fedelect.records import SlotRecord
from fedelect.selectors import RandomCohort


def directed(run: Path, on_slot: object) -> GoalDirected:
    selector = RandomCohort(clients=6, budget=2, seed=1)
    return GoalDirected(FedAvg(), selector=selector, run=run, wait_s=0.0, on_slot=on_slot)  # type: ignore[arg-type]


def test_slots_are_told_in_order_and_not_again_after_a_resume(tmp_path: Path) -> None:
    told: list[SlotRecord] = []
    for rounds in (2, 5):
        grid, _ = federation(6)
        directed(tmp_path / "run", told.append).start(grid, initial_arrays(), num_rounds=rounds)
    assert told == by_slot(tmp_path / "run") and [record.slot for record in told] == [1, 2, 3, 4, 5]


def test_a_function_that_fails_stops_the_run_which_goes_on_after_that_slot(tmp_path: Path) -> None:
    told: list[int] = []

    def fail(record: SlotRecord) -> None:
        told.append(record.slot)
        if record.slot == 2:
            raise ValueError("no such tracker")

    for _ in range(2):
        grid, _ = federation(6)
        if not told:
            with pytest.raises(RunError, match=r"on_slot failed .*ValueError: no such tracker"):
                directed(tmp_path / "run", fail).start(grid, initial_arrays(), num_rounds=4)
        else:
            directed(tmp_path / "run", fail).start(grid, initial_arrays(), num_rounds=4)
    assert told == [1, 2, 3, 4] == [record.slot for record in by_slot(tmp_path / "run")]


def test_elections_among_the_clients_tell_their_slots_too(tmp_path: Path) -> None:
    told: list[SlotRecord] = []
    with elective(tmp_path) as fed:
        fed.strategy(on_slot=told.append, rounds_per_slot=1).start(fed.grid, initial_arrays(), num_rounds=2, timeout=60)
    assert told == by_slot(tmp_path / "run") and all(record.opinions is None for record in told)
