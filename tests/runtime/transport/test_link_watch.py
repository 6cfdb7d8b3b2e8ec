"""Links up and down by a clock that is handed in."""

import math

from fedelect.runtime.transport import LinkWatch


def watch() -> LinkWatch:
    made = LinkWatch([1, 4, 7], first_s=10.0, grace_s=1.0)
    made.start(100.0)
    return made


def test_who_never_comes_up_is_lost_after_the_first_wait_and_said_so_once() -> None:
    links = watch()
    assert not links.update(4, True, 101.0)
    assert links.unreported_changes(101.0) == ((4, True),) and not links.all_reported_up
    assert links.missing() == (1, 7) and links.due_s == 110.0
    assert links.take_lost(109.9) == ()
    assert links.take_lost(110.0) == (1, 7)
    assert links.take_lost(200.0) == () and links.due_s == math.inf


def test_a_link_that_was_up_is_lost_after_its_grace_unless_it_comes_back_before() -> None:
    links = watch()
    for neighbour in (1, 4, 7):
        links.update(neighbour, True, 101.0)
    assert links.due_s < 101.0  # there is something to tell
    assert links.unreported_changes(101.0) == ((1, True), (4, True), (7, True))
    assert links.all_reported_up and links.due_s == math.inf
    links.update(4, False, 120.0)
    links.update(7, False, 120.5)
    assert links.unreported_changes(120.5) == ((4, False), (7, False))
    assert links.due_s == 121.0 and links.up == {1}
    assert not links.update(4, True, 120.9)  # it was never said to be lost
    assert links.take_lost(121.4) == ()
    assert links.take_lost(121.5) == (7,)
    assert links.update(7, True, 130.0)
    assert links.unreported_changes(130.0) == ((4, True), (7, True)) and links.all_reported_up


def test_a_link_that_flaps_is_told_of_once_in_the_quiet_time_and_then_as_it_is() -> None:
    links = LinkWatch([1, 4], first_s=10.0, grace_s=1.0, quiet_s=0.5)
    links.start(100.0)
    told: list[tuple[int, bool]] = []
    for step in range(201):  # up and down, 50 times a second
        now = 100.0 + step / 50
        assert not links.update(4, step % 2 == 0, now)
        told += links.unreported_changes(now)
    assert 2 <= len(told) <= 9
    told += links.unreported_changes(105.0)
    assert told[-1] == (4, True) and links.take_lost(105.0) == ()
    links.update(4, False, 106.0)
    assert links.unreported_changes(106.0) == ((4, False),)
    links.update(4, True, 106.2)
    assert links.unreported_changes(106.2) == () and links.due_s == 106.5
    assert links.unreported_changes(106.5) == ((4, True),)


def test_what_is_known_already_is_no_news() -> None:
    links = watch()
    assert not links.update(1, False, 101.0)
    assert links.take_lost(105.0) == () and links.due_s == 110.0  # and shortens no wait
    links.update(1, True, 101.0)
    assert links.unreported_changes(101.0) == ((1, True),)
    links.update(1, True, 102.0)
    assert links.unreported_changes(102.0) == ()


def test_who_was_up_before_the_start_is_not_waited_for() -> None:
    links = LinkWatch([1, 4], first_s=10.0, grace_s=1.0)
    assert links.due_s == math.inf
    links.update(1, True, 99.0)
    links.start(100.0)
    assert links.take_lost(110.0) == (4,)
