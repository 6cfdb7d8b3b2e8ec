"""Peers on a machine so busy that each takes longer to stop than one whose input has ended is given."""

import functools
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.federation_kit import hold_all, listening_federation, place
from tests.runtime.process_kit import START_S
from tests.worlds import digits, tiny

from fedelect.errors import RunError
from fedelect.records import read_run, sorted_records
from fedelect.runtime.demo import Demo, play_demo
from fedelect.runtime.host_messages import SLOTS_NAME, decode_logs
from fedelect.runtime.launch import LOG_NAME, PeerProcesses
from fedelect.runtime.process import END_S
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier

pytestmark = pytest.mark.integration

SLOW = """
import sys, time
from pathlib import Path
sys.path[:] = sys.argv[6:]
del sys.argv[1:4]
from fedelect.runtime import process
from fedelect.runtime.host_messages import Stop
from fedelect.runtime.transport import Inbox
get, folder, longest_s = Inbox.get, Path(sys.argv[1]), LONGEST_S
def slowly(self, *wait_s):
    event = get(self, *wait_s)
    if isinstance(event, Stop):
        until = time.monotonic() + longest_s
        while time.monotonic() < until and not (folder / "go").exists():
            time.sleep(0.05)
    return event
Inbox.get = slowly
process.main()
"""
"""A peer that is told to stop, and does so when there is a file `go` in its folder, or after some time."""


def slow_peers(
    folders: Mapping[int, Path], slow: frozenset[int] | None = None, longest_s: float = END_S + 1.5, **options: Any
) -> PeerProcesses:
    wrap = (sys.executable, "-c", SLOW.replace("LONGEST_S", f"float('{longest_s}')"))
    return PeerProcesses(folders, {client: wrap for client in folders if slow is None or client in slow}, **options)


def test_peers_that_are_told_to_stop_are_waited_for_and_note_their_last_slot(tmp_path: Path) -> None:
    where = place(clients=3, steps=(1,))
    with (
        listening_federation(tmp_path / "fed", where) as (roster, folders),
        slow_peers(folders, frozenset({1}), longest_s=math.inf) as peers,
    ):
        peers.start_all(START_S)
        hold_all(DirectElections(peers, ElectionServer(roster.config(), Ed25519Verifier())), where, 1)
        assert 1 in peers.stop_all(0.1)
        (folders[1] / "go").touch()
        assert peers.stop_all(START_S) == frozenset()
    for folder in folders.values():
        assert [log.slot for log in decode_logs((folder / SLOTS_NAME).read_bytes())] == [1]
        assert (folder / LOG_NAME).read_text() == ""  # nor did the interpreter complain of its input's end


def test_the_demo_has_what_slow_peers_noted_of_the_last_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedelect.runtime.demo.PeerProcesses", slow_peers)
    run = play_demo(Demo(config=tiny(), slots=1), digits(), tmp_path / "demo")
    (record,) = sorted_records(read_run(run))
    assert record.opinions is not None and None not in record.opinions
    assert record.beliefs is not None and None not in record.beliefs


def test_the_demo_says_who_did_not_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fedelect.runtime.demo.PeerProcesses",
        functools.partial(slow_peers, slow=frozenset({2}), longest_s=math.inf),
    )
    monkeypatch.setattr("fedelect.runtime.demo.STOP_S", 3.0)
    with pytest.raises(RunError, match=r"did not stop within 3 s and were killed: .*2.*; .* may lack what they noted"):
        play_demo(Demo(config=tiny(), slots=1), digits(), tmp_path / "demo")
    assert len(read_run(tmp_path / "demo" / "run").records) == 1
