"""Links up and down by a clock that is handed in."""

import math

from fedelect.runtime.transport import LinkWatch


def watch() -> LinkWatch:
    made = LinkWatch([1, 4, 7], first_s=10.0, grace_s=1.0)
    made.start(100.0)
    return made


def test_who_never_comes_up_is_lost_after_the_first_wait_and_said_so_once() -> None:
    links = watch()
    assert not links.changed(4, True, 101.0)
    assert links.news(101.0) == ((4, True),) and not links.told_all_up
    assert links.missing() == (1, 7) and links.due_s == 110.0
    assert links.lost(109.9) == ()
    assert links.lost(110.0) == (1, 7)
    assert links.lost(200.0) == () and links.due_s == math.inf


def test_a_link_that_was_up_is_lost_after_its_grace_unless_it_comes_back_before() -> None:
    links = watch()
    for neighbour in (1, 4, 7):
        links.changed(neighbour, True, 101.0)
    assert links.due_s < 101.0  # there is something to tell
    assert links.news(101.0) == ((1, True), (4, True), (7, True))
    assert links.told_all_up and links.due_s == math.inf
    links.changed(4, False, 120.0)
    links.changed(7, False, 120.5)
    assert links.news(120.5) == ((4, False), (7, False))
    assert links.due_s == 121.0 and links.up == {1}
    assert not links.changed(4, True, 120.9)  # it was never said to be lost
    assert links.lost(121.4) == ()
    assert links.lost(121.5) == (7,)
    assert links.changed(7, True, 130.0)
    assert links.news(130.0) == ((4, True), (7, True)) and links.told_all_up


def test_a_link_that_flaps_is_told_of_once_in_the_quiet_time_and_then_as_it_is() -> None:
    links = LinkWatch([1, 4], first_s=10.0, grace_s=1.0, quiet_s=0.5)
    links.start(100.0)
    told: list[tuple[int, bool]] = []
    for step in range(201):  # up and down, 50 times a second
        now = 100.0 + step / 50
        assert not links.changed(4, step % 2 == 0, now)
        told += links.news(now)
    assert 2 <= len(told) <= 9
    told += links.news(105.0)
    assert told[-1] == (4, True) and links.lost(105.0) == ()
    links.changed(4, False, 106.0)
    assert links.news(106.0) == ((4, False),)
    links.changed(4, True, 106.2)
    assert links.news(106.2) == () and links.due_s == 106.5
    assert links.news(106.5) == ((4, True),)


def test_what_is_known_already_is_no_news() -> None:
    links = watch()
    assert not links.changed(1, False, 101.0)
    assert links.lost(105.0) == () and links.due_s == 110.0  # and shortens no wait
    links.changed(1, True, 101.0)
    assert links.news(101.0) == ((1, True),)
    links.changed(1, True, 102.0)
    assert links.news(102.0) == ()


def test_who_was_up_before_the_start_is_not_waited_for() -> None:
    links = LinkWatch([1, 4], first_s=10.0, grace_s=1.0)
    assert links.due_s == math.inf
    links.changed(1, True, 99.0)
    links.start(100.0)
    assert links.lost(110.0) == (4,)
