"""SecAgg+ and the Message API; with the older API it is in test_legacy_engines.py."""

from pathlib import Path

import pytest
from flwr.client.mod import secaggplus_mod
from flwr.serverapp.strategy import FedAvg
from tests.flower.app_kit import app_grid, first_model, make_app
from tests.flower.engine_kit import by_slot

from fedelect.errors import RunError
from fedelect.flower import GoalDirected
from fedelect.selectors import RandomCohort


def test_with_the_mod_no_update_comes_from_an_app_of_the_message_api(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    grid = app_grid(make_app("scikit-learn", train_mods=[secaggplus_mod]), 3)
    selector = RandomCohort(clients=3, budget=2, seed=1)
    strategy = GoalDirected(FedAvg(), selector=selector, run=tmp_path / "run", wait_s=0.0, abandoned_allowed=0)
    with pytest.raises(RunError, match="updates of 0 members arrived"):
        strategy.start(grid, first_model("scikit-learn"), num_rounds=1)
    (record,) = by_slot(tmp_path / "run")
    assert record.failed == record.cohort
