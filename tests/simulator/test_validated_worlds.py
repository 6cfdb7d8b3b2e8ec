"""Runs in which the server holds samples: selectors by contribution, on any engine and number of workers."""

from pathlib import Path

import pytest
from tests.worlds import digits, plan, tiny

from fedelect.errors import ConfigurationError
from fedelect.records import SlotRecord, read_run, sorted_records
from fedelect.scenario import ScenarioConfig, change_scenario
from fedelect.simulator import simulate

SELECTORS = ("s-fedavg", "greedyfed", "random")


def validated(**changes: object) -> ScenarioConfig:
    return change_scenario(tiny(start="warm", redraw_every=1), {"validation": {"share": 0.1}, **changes})


def records(out: Path, config: ScenarioConfig, **options: int | str) -> list[SlotRecord]:
    workers = int(options.get("workers", 1))
    engine = str(options.get("engine", "auto"))
    simulate(plan(*SELECTORS, config=config, slots=6, engine=engine), digits(), out, workers=workers)
    return sorted_records(read_run(out))


def test_selectors_by_contribution_learn_the_same_on_any_number_of_workers(tmp_path: Path) -> None:
    one = records(tmp_path / "one", validated())
    assert one == records(tmp_path / "two", validated(), workers=2)
    assert {record.status for record in one} == {"done"}
    for record in one:
        if record.selector == "random":
            assert record.signals is None
            continue
        assert record.signals is not None and record.signals.contributions is not None
        told = {client for client, value in enumerate(record.signals.contributions) if value is not None}
        arrived = {client for client, count in zip(record.cohort, record.arrivals, strict=True) if count}
        assert told == arrived
    gains = [value for record in one if record.signals for value in record.signals.contributions or () if value]
    assert len(gains) > 10


def test_pytorch_modules_have_contributions_in_a_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    config = validated(model={"kind": "mlp", "step": 0.05})
    played = records(tmp_path, config, engine="torch-loop")
    assert all(record.signals is not None for record in played if record.selector != "random")


def test_a_scenario_without_samples_at_the_server_refuses_them_before_anything_is_played(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'s-fedavg' needs 'contributions'.*\[validation\]"):
        records(tmp_path / "run", tiny())
