"""Real peers whose links are slow and uneven."""

import time
from pathlib import Path

import pytest
from tests.runtime.faults.relay_kit import Relays, reroute
from tests.runtime.federation_kit import dense_cohorts, hold_all, place
from tests.runtime.process_kit import Real, real

pytestmark = pytest.mark.integration

LATE = ((1, 0), (2, 1), (3, 0), (4, 2))  # (who calls, who is called): what these say to those is late
SLOTS = 4


def test_delay_and_jitter_on_some_links_and_one_way_only_cost_time_and_change_nothing(tmp_path: Path) -> None:
    where = place(clients=5, budget=2)
    with Relays(middle_s=0.05, spread_s=0.03) as relays:

        def prepare(fed: Real) -> None:
            address = {client: member.address for client, member in enumerate(fed.roster.members)}
            reroute(fed.folders, ((i, j, relays.to(address[j], late=("forth",))) for i, j in LATE))

        with real(tmp_path / "fed", where, prepare=prepare, resend_s=0.5, silent_intervals=20, slot_s=60.0) as fed:
            began = time.monotonic()
            cohorts = hold_all(fed.server, where, SLOTS, within_s=90.0)
            took = time.monotonic() - began
        print(f"{SLOTS} slots in {took:.1f} s, {relays.carried} bytes were late")
        rounds = where.config.beliefs.rounds + fed.roster.config().flood_rounds
        assert relays.carried > 0 and took >= SLOTS * rounds * 0.02  # each round waits for the slowest link
    assert cohorts == [cohort for cohort, _ in dense_cohorts(where, SLOTS)]
