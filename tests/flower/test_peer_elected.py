"""FL&DA on Flower in one process: certified cohorts train, opinions stay, and hostile answers change nothing."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.flower.elected_kit import BUDGET, CLIENTS, TRAINING, WHERE, L, elective
from tests.flower.fake_grid import initial_arrays
from tests.flower.server_view import complaints, stored_leaks
from tests.flower.test_goal_directed import records
from tests.leaks import peer_secrets

from fedelect.analytics import democratized_feedback
from fedelect.records import read_run
from fedelect.runtime.host_messages import SLOTS_NAME, decode_logs
from fedelect.seeds import derive
from fedelect.selectors import BpUcb
from fedelect.vocabulary import Cohort, Feedback

SLOTS = 6


def dense(folders: dict[int, Path], slots: int) -> list[Cohort]:
    """What BP-UCB elects at the server, told the opinions that the peers noted."""
    opinions = np.full((slots + 1, CLIENTS), math.nan)
    for client, folder in folders.items():
        for log in decode_logs((folder / SLOTS_NAME).read_bytes()):
            if log.judged > 0 and log.opinion is not None:
                opinions[log.judged, client] = log.opinion
    selector = BpUcb(clients=CLIENTS, budget=BUDGET, seed=derive(1, "selection", 0))
    elected = []
    for slot in range(1, slots + 1):
        selection = selector.ask()
        elected.append(selection.cohort)
        beliefs = democratized_feedback(WHERE, opinions[slot])[0].beliefs
        selector.tell(selection, Feedback(opinions=opinions[slot], beliefs=beliefs))
    return elected


def test_certified_cohorts_train_and_they_are_those_of_the_dense_form_and_nothing_else_reaches_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with elective(tmp_path) as fed:
        strategy = fed.strategy()
        strategy.start(fed.grid, initial_arrays(), num_rounds=SLOTS * L, timeout=60)
        folders = fed.peers.folders
    rows = records(tmp_path / "run")
    assert [row.status for row in rows] == ["done"] * SLOTS
    assert [row.cohort for row in rows] == dense(folders, SLOTS)
    assert [one.cohort for one in strategy.certificates[:SLOTS]] == [row.cohort for row in rows]
    assert [one.slot for one in strategy.certificates] == list(range(1, SLOTS + 2))  # in the last one they judge
    for row in rows:
        assert {worker.client for worker in fed.workers if (row.slot, 0) in worker.trained} == set(row.cohort)
        assert row.opinions is None and row.reward is None and row.beliefs is None and row.indices == ()
    header = read_run(tmp_path / "run").header
    assert (header.framework, header.labels) == ("da", ("peers",))
    assert header.client_names == tuple(f"peer{n:02d}" for n in range(CLIENTS))
    secrets = peer_secrets(folders.values())
    assert all(len(values) >= 3 for values in secrets.values())
    assert len(fed.grid.received) == (SLOTS + 1) * CLIENTS + SLOTS * L * BUDGET
    assert complaints(fed.grid.received, secrets, fed.peers.config, TRAINING) == []
    assert "election: of 4 clients asked" in caplog.text
    assert stored_leaks(tmp_path / "run", caplog.text, secrets) == []
    for told in (f"{next(iter(secrets['opinion'])):.6f}", repr(next(iter(secrets["belief"])))):
        (tmp_path / "run" / "notes.txt").write_text(told)
        assert len(stored_leaks(tmp_path / "run", told, secrets)) >= 2  # and it would have been found
