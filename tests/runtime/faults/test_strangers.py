"""Strangers at the ports of real peers: nobody is held up. `benchmarks/strangers.py` measures it."""

from pathlib import Path

import pytest
from benchmarks.strangers import KINDS, Strangers
from tests.runtime.federation_kit import place
from tests.runtime.process_kit import QUICK, real

from fedelect.runtime.host_messages import Ready

pytestmark = pytest.mark.integration


def test_under_a_hundred_strangers_a_second_elections_go_on_and_a_restarted_peer_is_soon_ready(tmp_path: Path) -> None:
    with real(tmp_path / "fed", place(), **QUICK) as fed:
        addresses = [fed.roster.members[client].address for client in (0, 2)]
        with Strangers(addresses, KINDS, rate=100.0, count=300) as strangers:
            fed.elect(1, [0, 1, 2, 3, 4])
            fed.peers.kill(2)
            fed.peers.start(2)
            fed.wait(Ready, 2)  # with 0.1 s for each stranger it never was, however long it was waited for
            last = fed.elect_until_voted(2, [2])
            strangers.wait()
            fed.elect(last + 1, [0, 1, 2, 3, 4])  # those that only wait are still there
        assert strangers.opened == 2 * 300
