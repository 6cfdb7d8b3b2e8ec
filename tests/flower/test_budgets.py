"""Cohorts whose size is a function of the slot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg, Krum, Strategy
from tests.flower.fake_grid import federation, initial_arrays

from fedelect import load_run
from fedelect.errors import AvailabilityError, ConfigurationError
from fedelect.flower import GoalDirected
from fedelect.records import SlotRecord, read_run
from fedelect.report import write_report
from fedelect.selectors import AbstractSelector, QuickInitUcb, RandomCohort, ShuffledCycle, SoundCycle

N = 9


def grows(slot: int) -> int:
    return 2 if slot <= 3 else 5


def directed(run: Path, budget: Any = grows, strategy: Strategy | None = None, **options: Any) -> GoalDirected:
    if "selector" not in options:
        options = {"clients": N} | options
    return GoalDirected(strategy or FedAvg(), budget=budget, run=run, wait_s=0.0, **options)


def played(run: Path) -> list[SlotRecord]:
    return sorted(read_run(run).records, key=lambda record: record.slot)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedelect.flower.client_numbers._SETTLED_S", 0.0)


@pytest.mark.parametrize(
    ("strategy", "kind"), [(FedAvg(), SoundCycle), (FedAvg(fraction_evaluate=0.0), ShuffledCycle)], ids=["asked", "not"]
)
def test_the_recommended_selector_elects_as_many_as_the_function_says(
    tmp_path: Path, strategy: Strategy, kind: type[AbstractSelector]
) -> None:
    grid, workers = federation(N)
    directed(tmp_path / "run", strategy=strategy).start(grid, initial_arrays(), num_rounds=6)
    rows = played(tmp_path / "run")
    assert [len(row.cohort) for row in rows] == [2, 2, 2, 5, 5, 5]
    for row in rows:
        who = {worker.client for worker in workers if (row.slot, 0) in worker.trained}
        assert who == set(row.cohort) and row.arrivals == (1,) * len(row.cohort)
    header = read_run(tmp_path / "run").header
    assert header.selectors[0].kind == kind.__name__ and header.budget == 2 and header.resized
    assert header.scenario["budget_function"] == "grows"


def test_a_selector_of_ones_own_gets_the_size_with_every_ask(tmp_path: Path) -> None:
    grid, _ = federation(N)
    selector = RandomCohort(clients=N, budget=2, seed=4)
    directed(tmp_path / "run", selector=selector).start(grid, initial_arrays(), num_rounds=5)
    again = RandomCohort(clients=N, budget=2, seed=4)
    for row in played(tmp_path / "run"):
        selection = again.ask(size=grows(row.slot))
        assert selection.cohort == row.cohort
        again.abandon(selection)


class Killed(BaseException):
    """Stands in for SIGKILL."""


@pytest.mark.parametrize("slots", [1, 3, 4, 7])
def test_killed_it_goes_on_with_the_same_choices(tmp_path: Path, slots: int) -> None:
    directed(tmp_path / "whole").start(federation(N)[0], initial_arrays(), num_rounds=9)
    grid, _ = federation(N)
    done = sum(grows(slot) + N for slot in range(1, slots + 1))

    def kill(message: Message) -> None:
        if len(grid.sent) > done + 1:
            raise Killed

    grid.before = kill
    with pytest.raises(Killed):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=9)
    assert len(played(tmp_path / "run")) == slots
    grid.before = lambda message: None
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=9)
    assert [row.cohort for row in played(tmp_path / "run")] == [row.cohort for row in played(tmp_path / "whole")]


def test_a_slot_that_needs_more_clients_than_are_there_stops_the_run_and_it_goes_on_later(tmp_path: Path) -> None:
    grid, _ = federation(N)
    everybody = list(grid.nodes)
    grid.nodes = everybody[:4]
    with pytest.raises(AvailabilityError, match="4 clients are there after 0 s and 5 are needed"):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=5)
    assert [len(row.cohort) for row in played(tmp_path / "run")] == [2, 2, 2]
    grid.nodes = everybody
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=5)
    assert [len(row.cohort) for row in played(tmp_path / "run")] == [2, 2, 2, 5, 5]


def test_the_run_is_read_and_shown_as_any_other(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=5)
    cohorts = load_run(tmp_path / "run").cohorts("sound-cycle")
    assert cohorts.shape == (1, 5, 5) and (cohorts[0, :3, 2:] == -1).all() and (cohorts[0, 3:] >= 0).all()
    write_report([tmp_path / "run"], tmp_path / "report.html")
    assert "2 (changing) train in each of 5 slots" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (lambda slot: 0, r"budget= returned 0 for slot 1; it must return a whole number of clients from 1"),
        (lambda slot: 3 if slot < 4 else 2.5, r"budget= returned 2\.5 for slot 4; it must return a whole number"),
        (lambda slot: 3 if slot < 4 else None, r"budget= returned None for slot 4; it must return a whole number"),
        (lambda slot: 3 * slot, rf"budget= returned 12 for slot 4, and there are at most {N} clients; return fewer"),
        (lambda slot: (3, 3)[slot], r"budget= raised IndexError: tuple index out of range, for slot 2"),
        ("3", r"budget must be a whole number, got '3'"),
    ],
)
def test_nonsense_is_refused_before_anything_is_sent(tmp_path: Path, budget: Callable[[int], int], says: str) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", budget).start(grid, initial_arrays(), num_rounds=5)
    assert not grid.sent and not (tmp_path / "run").exists()


def test_a_selector_that_cannot_is_refused_with_the_names_of_those_that_can(tmp_path: Path) -> None:
    says = r"{} elects the same number of clients in every slot; .*: random, cycle, sound-cycle"
    with pytest.raises(ConfigurationError, match=says.format("QuickInitUcb")):
        directed(tmp_path / "run", selector=QuickInitUcb(clients=N, budget=2, seed=1))
    with pytest.raises(ConfigurationError, match=says.format("RandomCohort")):
        directed(tmp_path / "run", selector=RandomCohort(clients=N, budget=2, seed=1, cohorts=[[0, 1], [2, 3]]))
    with pytest.raises(ConfigurationError, match=says.format("the selector of a cold start")):
        directed(tmp_path / "run", start="cold", rounds_per_slot=5)
    with pytest.raises(ConfigurationError, match="returned 2 for slot 1, and the selector was made for 4"):
        directed(tmp_path / "run", selector=RandomCohort(clients=N, budget=4, seed=1))


@pytest.mark.parametrize(
    ("strategy", "budget", "options", "says"),
    [
        (Krum(num_malicious_nodes=1), lambda slot: 7 - slot, {}, r"Krum does not fit: .*\(2 f \+ 3\), and 3 come"),
        (
            DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 2),
            grows,
            {},
            r"num_sampled_clients=2, and from 2 to 5 clients train",
        ),
        (FedAvg(), lambda slot: 7 - slot, {"enough_updates": 5}, "enough_updates: got 5; a cohort has 3 members"),
        (FedAvg(), lambda slot: 7 - slot, {"train_quorum": 5}, "train_quorum: got 5; a cohort has 3 members"),
    ],
    ids=["Krum", "privacy", "enough_updates", "train_quorum"],
)
def test_strategy_and_settings_must_fit_the_cohorts_of_all_slots(
    tmp_path: Path, strategy: Strategy, budget: Callable[[int], int], options: dict[str, Any], says: str
) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", budget, strategy, **options).start(grid, initial_arrays(), num_rounds=4)
    assert not grid.sent and not (tmp_path / "run").exists()
