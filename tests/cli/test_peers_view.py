"""The live table of `fedelect peers demo`, fed by hand."""

import io

import pytest
from rich.console import Console

from fedelect.cli.peers.view import PeersView
from fedelect.protocol import Certificate
from fedelect.protocol.statements import Statement
from fedelect.runtime.host_messages import Agreed, Link, Phase, Skipped
from fedelect.runtime.launch import ProcessEnded
from fedelect.runtime.server import ElectionResult


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def view(clock: Clock) -> PeersView:
    return PeersView(3, 4, clock)


def shown(view: PeersView) -> list[list[str]]:
    """The words of each line."""
    out = io.StringIO()
    Console(file=out, width=120).print(view)
    return [line.split() for line in out.getvalue().splitlines()]


def held(slot: int, cohort: tuple[int, ...] | None = (0, 2)) -> ElectionResult:
    if cohort is None:
        return ElectionResult(slot, None, "nobody came", 1.0, frozenset())
    certificate = Certificate(Statement(bytes(32), slot, bytes(32), cohort, bytes(32)), ((0, b""), (1, b"")))
    return ElectionResult(slot, certificate, "", 0.25, frozenset())


def phase(slot: int, name: str, sent: int) -> Phase:
    return Phase(slot=slot, phase=name, sent=sent, sent_bytes=1000 * sent)


def test_every_peer_has_a_line_from_the_beginning_and_the_server_one_too(view: PeersView) -> None:
    lines = shown(view)
    assert lines[0] == ["peer", "phase", "links", "elected", "decided", "skipped", "messages", "kB"]
    assert lines[1:4] == [[str(n), "starting", "0", "0", "0", "0", "0", "0.0"] for n in range(3)]
    assert lines[4][:4] == ["server", "starts", "the", "peers;"]
    view.show_notice(1, Link(neighbour=0, up=True))
    assert shown(view)[2][1:3] == ["ready", "1"]


def test_a_line_follows_what_its_peer_says_and_messages_add_up_over_slots(view: PeersView) -> None:
    view.show_notice(1, Link(neighbour=0, up=True))
    view.show_notice(1, Link(neighbour=2, up=True))
    view.show_notice(1, Link(neighbour=0, up=False))
    view.show_notice(1, phase(1, "exchanging", 2))
    view.show_notice(1, phase(1, "decided", 10))
    view.show_notice(1, Agreed(slot=1, cohort=(0, 2), certificate="00"))
    view.show_notice(1, phase(2, "exchanging", 3))
    assert shown(view)[2] == ["1", "exchanging", "1", "0", "1", "0", "13", "13.0"]
    view.show_notice(1, Skipped(slot=2, reason="alone"))
    view.show_notice(1, ProcessEnded(-9))
    assert shown(view)[2] == ["1", "gone", "0", "0", "1", "1", "13", "13.0"]


def test_the_server_counts_certificates_and_says_what_it_waits_for(view: PeersView) -> None:
    view.show_notice(0, phase(1, "exchanging", 2))
    assert "waits for slot 1;" in " ".join(shown(view)[4])
    view.show_notice(0, Agreed(slot=1, cohort=(0, 2), certificate="00"))
    assert "trains in slot 1" in " ".join(shown(view)[4])
    view.show_result(held(1))
    view.show_result(held(2, None))
    line = " ".join(shown(view)[4])
    assert "server waits for slot 3; 1 certificates, 1 skipped; slot 2: nobody came" in line
    view.show_result(held(3, (1, 2)))
    assert "slot 3: 1 2, 2 signatures, 0.25 s" in " ".join(shown(view)[4])
    assert [line[3] for line in shown(view)[1:4]] == ["1", "1", "2"]


def test_time_left_follows_from_the_slots_so_far_and_the_end_keeps_what_was(view: PeersView, clock: Clock) -> None:
    view.show_notice(0, phase(1, "exchanging", 2))
    clock.now_s += 30.0
    view.show_result(held(1))
    line = shown(view)[5]
    assert (line[:4], line[-3:]) == (["slot", "1", "of", "4"], ["0:30", "1:30", "left"])
    for slot in (2, 3, 4):
        view.show_result(held(slot))
    view.show_result(held(5))  # the last model is only judged
    clock.now_s += 500.0
    view.show_notice(0, ProcessEnded(0))
    lines = shown(view)
    assert lines[1][:2] == ["0", "exchanging"] and lines[1][3] == "4"
    assert lines[4][:3] == ["server", "is", "done;"] and lines[5][-3:] == ["0:30", "0:00", "left"]
