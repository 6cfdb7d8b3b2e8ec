"""Token buckets: how fast a neighbour is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.protocol import FRAME_LIMIT
from fedelect.runtime.transport import Inbox
from fedelect.runtime.transport.base import READ_BURST, READ_RATE, REFUSED_COST
from fedelect.runtime.transport.pace import Pace


def test_a_burst_is_free_and_what_is_more_waits_for_the_rate() -> None:
    pace = Pace(rate=10.0, burst=100.0, debt=1000.0)
    assert pace.charge(100.0, 5.0) == 0.0
    assert pace.charge(20.0, 5.0) == 2.0
    assert pace.charge(0.0, 6.0) == 1.0
    assert pace.charge(0.0, 7.0) == 0.0
    assert pace.charge(100.0, 107.0) == 0.0  # full again, and no fuller
    assert pace.charge(1.0, 107.0) == 0.1


def test_a_debt_beyond_the_largest_is_forgiven_and_a_clock_that_goes_back_gives_nothing() -> None:
    pace = Pace(rate=10.0, burst=100.0, debt=50.0)
    assert pace.charge(1e9, 5.0) == 5.0
    assert pace.charge(0.0, 1.0) == 5.0
    assert pace.charge(0.0, 6.0) == 4.0


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 200.0)), max_size=60))
def test_a_reader_that_waits_as_told_takes_no_more_than_burst_and_rate_allow(steps: list[tuple[float, float]]) -> None:
    pace, now, taken, last = Pace(rate=10.0, burst=100.0, debt=1e9), 0.0, 0.0, 0.0
    for pause, cost in steps:
        now += pause
        assert taken - last <= 100.0 + 10.0 * now + 1e-6  # all but the last frame, which may be in debt
        now += pace.charge(cost, now)
        taken, last = taken + cost, cost


def test_a_neighbour_that_is_refused_is_read_more_slowly_and_no_other_is() -> None:
    inbox = Inbox(clock=lambda: 0.0)
    free = int(READ_BURST) // REFUSED_COST
    assert [inbox.charge(1, REFUSED_COST) for _ in range(free)] == [0.0] * free
    assert inbox.charge(1, REFUSED_COST) == pytest.approx(REFUSED_COST / READ_RATE)
    assert inbox.charge(2, REFUSED_COST) == 0.0
    for _ in range(10_000):
        longest = inbox.charge(1, REFUSED_COST)
    assert longest == FRAME_LIMIT / READ_RATE  # it is heard again
