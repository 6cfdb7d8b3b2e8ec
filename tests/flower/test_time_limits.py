"""A time limit for a round, and rounds that go on with enough updates instead of all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays, quality

from fedelect.errors import ConfigurationError
from fedelect.flower import GoalDirected
from fedelect.records import read_run
from fedelect.selectors import FixedCohort, RandomCohort

N = 6


def silence(grid: FakeGrid, name: str) -> None:
    """Let a node answer no message to train."""
    node = next(node for node in grid.nodes if node.name == name)
    usual = node.answer
    node.answer = lambda message: None if message.metadata.message_type == "train" else usual(message)


def directed(run: Path, **options: Any) -> GoalDirected:
    cohort = FixedCohort(clients=N, cohort=[0, 1, 2, 3])
    return GoalDirected(FedAvg(), selector=cohort, run=run, wait_s=0.0, **options)


def test_a_client_that_is_late_counts_as_failed_and_is_left_out_of_the_next_slot(tmp_path: Path) -> None:
    grid, _ = federation(N)
    silence(grid, "site-2")
    result = directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=2, timeout=0.1)
    first, second = read_run(tmp_path / "run").records
    assert first.failed == (2,) and first.arrivals == (1, 1, 0, 1) and first.status == "done"
    assert second.left_out == (2,) and 2 not in second.cohort
    assert {message.metadata.ttl for message in grid.sent} == {0.1}  # nobody trains for a round that is over
    moved = [np.mean([quality(client) for client in clients]) for clients in ((0, 1, 3), second.cohort)]
    assert result.arrays["a"].numpy() == pytest.approx(sum(moved))


def test_a_round_goes_on_with_enough_updates_and_blames_nobody(tmp_path: Path) -> None:
    grid, _ = federation(N)
    silence(grid, "site-2")
    result = directed(tmp_path / "run", enough_updates=3).start(grid, initial_arrays(), num_rounds=2)
    for row in read_run(tmp_path / "run").records:  # without it, each round would last an hour
        assert (row.status, row.cohort, row.arrivals) == ("done", (0, 1, 2, 3), (1, 1, 0, 1))
        assert row.failed == () and row.left_out == ()
    assert result.arrays["a"].numpy() == pytest.approx(2 * np.mean([quality(client) for client in (0, 1, 3)]))


def test_with_too_few_updates_in_time_those_missing_have_failed(tmp_path: Path) -> None:
    grid, _ = federation(N)
    for name in ("site-2", "site-3"):
        silence(grid, name)
    directed(tmp_path / "run", enough_updates=3).start(grid, initial_arrays(), num_rounds=1, timeout=0.1)
    (row,) = read_run(tmp_path / "run").records
    assert row.failed == (2, 3) and row.status == "done"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"enough_updates": 5}, "enough_updates: got 5; a cohort has 4 members"),
        ({"enough_updates": 1, "train_quorum": 2}, r"enough_updates: got 1; .*from train_quorum \(2\)"),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        directed(tmp_path / "run", **options)


def test_noise_for_all_members_is_not_put_on_the_average_of_fewer(tmp_path: Path) -> None:
    private = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 4)
    selector = RandomCohort(clients=N, budget=4, seed=1)
    with pytest.raises(ConfigurationError, match="its noise is for all members of a cohort"):
        GoalDirected(private, selector=selector, run=tmp_path / "run", enough_updates=3)
