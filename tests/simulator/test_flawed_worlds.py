"""Runs in worlds with flaws, hard clients and drift: on record, and alike on any number of workers."""

from pathlib import Path
from typing import Any

from tests.worlds import digits, plan, tiny

from fedelect.records import SlotRecord, read_run, sorted_records
from fedelect.scenario import ScenarioConfig, build_scenario, change_scenario
from fedelect.simulator import simulate

WORLD: dict[str, Any] = {
    "flaws": {
        "random_labels": {"clients": [1], "clean_test": False},
        "free_riders": {"clients": [2], "noise": 0.5},
        "flipped_updates": {"share": 0.17},
        "failing": {"share": 0.17, "rate": 0.7},
    },
    "hard": {"share": 0.17},
    "drift": {"slot": 4, "share": 1.0},
}


def configure(*tables: str) -> ScenarioConfig:
    return change_scenario(tiny(start="warm"), {table: WORLD[table] for table in tables})


def records(out: Path, config: ScenarioConfig, *, workers: int = 1) -> list[SlotRecord]:
    simulate(plan("random", config=config, slots=6), digits(), out, workers=workers)
    return sorted_records(read_run(out))


def test_flaws_and_hard_clients_are_on_record(tmp_path: Path) -> None:
    config = configure("flaws", "hard")
    records(tmp_path, config)
    header, world = read_run(tmp_path).header, build_scenario(config, digits())
    assert header.flaws == world.flaws and set(header.flaws) == set(WORLD["flaws"])
    assert header.groups["hard"] == world.groups["hard"] and header.client_names is None
    assert header.scenario["flaws"]["free_riders"] == {"clients": [2], "noise": 0.5}


def test_the_data_changes_in_the_slot_of_the_drift_and_not_before(tmp_path: Path) -> None:
    still, drifting = records(tmp_path / "one", configure()), records(tmp_path / "two", configure("drift"))
    for one, other in zip(still, drifting, strict=True):
        assert one.cohort == other.cohort
        assert (one.opinions == other.opinions) == (one.slot < 4)


def test_records_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    config = configure(*WORLD)
    one, two = records(tmp_path / "one", config), records(tmp_path / "two", config, workers=2)
    assert one == two
