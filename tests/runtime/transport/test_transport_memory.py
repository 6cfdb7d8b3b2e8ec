"""The queue between links and host."""

from fedelect.protocol import FRAME_LIMIT
from fedelect.runtime.transport import Frame, Inbox, LinkDown, LinkUp, MemoryNetwork, MemoryTransport
from fedelect.runtime.transport.base import WAITING_LIMIT


def test_a_neighbour_that_floods_loses_its_own_frames_and_nobody_elses() -> None:
    inbox = Inbox()
    big = Frame(1, bytes(FRAME_LIMIT))
    assert inbox.offer(big)
    assert not inbox.offer(big)  # with what a frame costs, two do not fit
    assert inbox.offer(Frame(2, b"small"))
    assert inbox.dropped == 1
    assert inbox.get(0.0) is big
    assert inbox.offer(big)  # there is room again


def test_empty_frames_are_not_free() -> None:
    inbox = Inbox()
    taken = 0
    while inbox.offer(Frame(1, b"")):
        taken += 1
    assert taken == WAITING_LIMIT // 256


def test_a_frame_over_the_limit_is_dropped() -> None:
    assert not Inbox().offer(Frame(1, bytes(FRAME_LIMIT + 1)))


def test_waiting_ends_without_an_event() -> None:
    assert Inbox().get(0.01) is None


def test_links_in_memory_come_up_go_down_and_carry_frames_between_neighbours_only() -> None:
    network = MemoryNetwork()
    boxes = [Inbox() for _ in range(3)]
    links = [MemoryTransport(network, n, frozenset(there)) for n, there in enumerate(({1}, {0, 2}, {1}))]
    for link, box in zip(links, boxes, strict=True):
        link.start(box)
    assert [boxes[1].get(0.0), boxes[1].get(0.0)] == [LinkUp(0), LinkUp(2)]
    links[0].send(1, b"hello")
    links[0].send(2, b"not for a stranger")
    network.carry(0, 2, b"nor so")
    assert boxes[1].get(0.0) == Frame(0, b"hello")
    assert boxes[2].get(0.0) == LinkUp(1) and boxes[2].get(0.0) is None
    assert boxes[0].get(0.0) == LinkUp(1)
    links[1].close()
    links[1].close()
    assert boxes[0].get(0.0) == LinkDown(1)


def test_of_a_link_that_flaps_only_the_last_state_waits() -> None:
    inbox = Inbox()
    for _ in range(1000):
        inbox.put(LinkUp(1))
        inbox.put(LinkDown(1))
    inbox.put(LinkUp(2))
    assert [inbox.get(0.0) for _ in range(3)] == [LinkDown(1), LinkUp(2), None]
    inbox.put(LinkUp(1))
    assert inbox.get(0.0) == LinkUp(1)


def test_frames_of_neighbours_come_in_turn_and_commands_and_links_before_them() -> None:
    inbox = Inbox()
    for turn in range(5):
        inbox.offer(Frame(1, bytes((turn,))))
    inbox.offer(Frame(2, b"x"))
    inbox.offer(Frame(3, b"y"))
    inbox.put("command")
    inbox.put(LinkUp(3))
    assert [inbox.get(0.0), inbox.get(0.0)] == ["command", LinkUp(3)]
    assert [inbox.get(0.0) for _ in range(4)] == [Frame(1, b"\0"), Frame(2, b"x"), Frame(3, b"y"), Frame(1, b"\1")]
    assert [inbox.get(0.0) for _ in range(3)] == [Frame(1, bytes((turn,))) for turn in (2, 3, 4)]
    assert inbox.get(0.0) is None
