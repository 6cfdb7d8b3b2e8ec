"""Clients that fail are left out for a growing time, forgiven on success, and never block a slot."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.backoff import LONGEST_PAUSE, FailureBackoff
from fedelect.errors import StateError

EVERYBODY = range(10)


def test_a_failing_client_is_left_out_for_a_growing_capped_number_of_slots() -> None:
    backoff, slot, pauses = FailureBackoff(), 1, []
    for _ in range(8):
        backoff.record(slot, failed=[3], succeeded=[])
        first = next(after for after in range(slot + 1, 200) if 3 in backoff.filter(EVERYBODY, after, needed=5))
        pauses.append(first - slot - 1)
        slot = first
    assert pauses == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE, LONGEST_PAUSE]


def test_success_forgives() -> None:
    backoff = FailureBackoff()
    for slot in (1, 3):
        backoff.record(slot, failed=[3], succeeded=[1])
    assert backoff.list_left_out(4) == [3]
    backoff.record(4, failed=[], succeeded=[3])
    assert backoff.list_left_out(5) == []
    backoff.record(6, failed=[3], succeeded=[])
    assert backoff.list_left_out(7) == [3] and backoff.list_left_out(8) == []


@given(st.lists(st.lists(st.integers(0, 9), max_size=10, unique=True), max_size=30), st.integers(1, 10))
def test_there_are_always_enough_if_enough_are_available(failures: list[list[int]], needed: int) -> None:
    backoff = FailureBackoff()
    for slot, failed in enumerate(failures, start=1):
        backoff.record(slot, failed=failed, succeeded=[one for one in EVERYBODY if one not in failed])
        usable = backoff.filter(EVERYBODY, slot + 1, needed=needed)
        assert len(usable) >= needed and usable == sorted(set(usable))
        assert set(EVERYBODY) - set(backoff.list_left_out(slot + 1)) <= set(usable)


def test_who_failed_longest_ago_returns_first() -> None:
    backoff = FailureBackoff()
    for slot, client in enumerate((5, 2, 8), start=1):
        backoff.record(slot, failed=[client] * 6, succeeded=[])
    assert backoff.filter([2, 5, 8], 4, needed=2) == [2, 5]


def test_a_restored_list_goes_on_exactly() -> None:
    backoff, twin = FailureBackoff(), FailureBackoff()
    backoff.record(2, failed=[1, 4], succeeded=[])
    twin.restore(json.loads(json.dumps(backoff.state())))
    for one in (backoff, twin):
        one.record(5, failed=[4], succeeded=[])
    assert twin.state() == backoff.state() and twin.list_left_out(7) == backoff.list_left_out(7) == [4]


@pytest.mark.parametrize("state", [{}, {"clients": [[1, 2]]}, {"clients": [["a", 1, 1, 1]]}])
def test_a_damaged_list_is_refused(state: dict[str, list[list[int]]]) -> None:
    with pytest.raises(StateError, match="damaged"):
        FailureBackoff().restore(state)
