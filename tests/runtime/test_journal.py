"""What a peer must not forget."""

from pathlib import Path

import pytest

from fedelect.errors import RunLockedError, StateError
from fedelect.protocol import SignedValue
from fedelect.runtime.journal import JOURNAL_NAME, Journal


def value(slot: int) -> SignedValue:
    return SignedValue(bytes(32), slot, bytes(32), 0, 0.25, 0.5, bytes(16), b"s" * 64)


def filled(folder: Path) -> bytes:
    journal = Journal(folder)
    journal.keep_record(value(1))
    journal.keep_opinion(1, 0.1)
    journal.keep_record(value(2))
    journal.close()
    journal.close()
    return (folder / JOURNAL_NAME).read_bytes()


def test_records_and_opinions_come_back_in_order_to_the_bit(tmp_path: Path) -> None:
    filled(tmp_path)
    again = Journal(tmp_path)
    assert again.records == [value(1), value(2)] and again.opinions == {1: 0.1}
    again.close()


def test_whatever_a_crash_leaves_of_the_last_entry_is_cut_off_and_the_rest_stays(tmp_path: Path) -> None:
    content = filled(tmp_path)
    first_two = len(content) - (len(content) - 25) // 2  # two records of one size, and 25 bytes of opinion
    for length in range(first_two, len(content), 11):
        (tmp_path / JOURNAL_NAME).write_bytes(content[:length])
        torn = Journal(tmp_path)
        assert torn.records == [value(1)] and torn.opinions == {1: 0.1}
        torn.keep_record(value(3))
        torn.close()
        whole = Journal(tmp_path)
        assert whole.records == [value(1), value(3)]
        whole.close()


def test_damage_before_the_last_entry_is_refused_for_a_peer_that_forgot_might_vote_twice(tmp_path: Path) -> None:
    content = bytearray(filled(tmp_path))
    content[20] ^= 1
    (tmp_path / JOURNAL_NAME).write_bytes(content)
    with pytest.raises(StateError, match=r"damaged at byte 0.*fresh key"):
        Journal(tmp_path)
    (tmp_path / JOURNAL_NAME).write_bytes(b"")
    Journal(tmp_path).close()  # the lock was given back


def test_two_processes_cannot_run_one_peer(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(RunLockedError):
        Journal(tmp_path)
    journal.close()
