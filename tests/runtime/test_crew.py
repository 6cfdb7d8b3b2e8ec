"""Peers on a machine so busy that each takes longer to stop than one whose input has ended is given."""

import functools
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.runtime.federation_kit import hold_all, make_federation, place
from tests.runtime.real_kit import START_S
from tests.worlds import digits, tiny

from fedelect.errors import RunError
from fedelect.records import read_run, sorted_records
from fedelect.runtime.demo import Demo, ElectionServer, play_demo
from fedelect.runtime.host_messages import SLOTS_NAME, decode_logs
from fedelect.runtime.launch import LOG_NAME, PeerProcesses
from fedelect.runtime.process import END_S
from fedelect.runtime.signing import Ed25519Verifier

pytestmark = pytest.mark.integration

SLOW = f"""
import sys, time
sys.path[:] = sys.argv[6:]
del sys.argv[1:4]
from fedelect.runtime import process
from fedelect.runtime.host_messages import Stop
from fedelect.runtime.transport import Inbox
get = Inbox.get
def slowly(self, *wait_s):
    event = get(self, *wait_s)
    if isinstance(event, Stop):
        time.sleep({END_S + 1.5})
    return event
Inbox.get = slowly
process.main()
"""
WRAP = (sys.executable, "-c", SLOW)


def slow_crew(folders: Mapping[int, Path], slow: frozenset[int] | None = None, **options: object) -> PeerProcesses:
    return PeerProcesses(folders, {client: WRAP for client in folders if slow is None or client in slow}, **options)  # type: ignore[arg-type]


def test_peers_that_are_told_to_stop_are_waited_for_and_note_their_last_slot(tmp_path: Path) -> None:
    where = place(clients=3, steps=(1,))
    roster, folders = make_federation(tmp_path / "fed", where)
    with slow_crew(folders, frozenset({1})) as crew:
        crew.start_all(START_S)
        hold_all(ElectionServer(crew, roster.config(), Ed25519Verifier()), where, 1)
        assert 1 in crew.stop_all(0.1)
        assert crew.stop_all(START_S) == frozenset()
    for folder in folders.values():
        assert [log.slot for log in decode_logs((folder / SLOTS_NAME).read_bytes())] == [1]
        assert (folder / LOG_NAME).read_text() == ""  # nor did the interpreter complain of its input's end


def test_the_demo_has_what_slow_peers_noted_of_the_last_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedelect.runtime.demo.play.Crew", slow_crew)
    run = play_demo(Demo(config=tiny(), slots=1), digits(), tmp_path / "demo")
    (record,) = sorted_records(read_run(run))
    assert record.opinions is not None and None not in record.opinions
    assert record.beliefs is not None and None not in record.beliefs


def test_the_demo_says_who_did_not_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedelect.runtime.demo.play.Crew", functools.partial(slow_crew, slow=frozenset({2})))
    monkeypatch.setattr("fedelect.runtime.demo.play.STOP_S", 3.0)
    with pytest.raises(RunError, match=r"did not stop within 3 s and were killed: .*2.*; .* may lack what they noted"):
        play_demo(Demo(config=tiny(), slots=1), digits(), tmp_path / "demo")
    assert len(read_run(tmp_path / "demo" / "run").records) == 1
