"""What a peer must not forget."""

import os
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fedelect.errors import RunLockedError, StateError
from fedelect.protocol import FRAME_LIMIT, CertificateChain
from fedelect.protocol.statements import SignedValue
from fedelect.runtime.journal import JOURNAL_NAME, MARK_NAME, Journal, _Mark


def value(slot: int) -> SignedValue:
    return SignedValue(bytes(32), slot, bytes(32), 0, 0.25, 0.5, bytes(16), b"s" * 64)


def filled(folder: Path) -> bytes:
    journal = Journal(folder)
    journal.keep_records([value(1)])
    journal.keep_opinion(1, 0.1)
    journal.keep_records([value(2)])
    journal.close()
    journal.close()
    return (folder / JOURNAL_NAME).read_bytes()


def test_records_and_opinions_come_back_in_order_to_the_bit(tmp_path: Path) -> None:
    filled(tmp_path)
    again = Journal(tmp_path)
    assert again.records == [value(1), value(2)] and again.opinions == {1: 0.1}
    again.close()


def first_two_of(content: bytes) -> int:
    """Where the first two entries of `filled` end: two records of one size, and 30 bytes of opinion."""
    return len(content) - (len(content) - 30) // 2


def leave(folder: Path, content: bytes, marked: int) -> None:
    """A journal with this content, of which `marked` bytes were known to be on disk."""
    (folder / JOURNAL_NAME).write_bytes(content)
    (folder / MARK_NAME).unlink(missing_ok=True)
    mark = _Mark(folder / MARK_NAME)
    mark.set(marked)
    mark.close()


def test_whatever_a_crash_leaves_of_the_last_entry_is_cut_off_and_the_rest_stays(tmp_path: Path) -> None:
    content = filled(tmp_path)
    first_two = first_two_of(content)
    for length in (*range(first_two, first_two + 15), *range(first_two + 15, len(content), 11)):
        leave(tmp_path, content[:length], first_two)
        torn = Journal(tmp_path)
        assert torn.records == [value(1)] and torn.opinions == {1: 0.1}
        torn.keep_records([value(3)])
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
    leave(tmp_path, b"", 0)
    Journal(tmp_path).close()  # the lock was given back


def test_a_journal_that_is_gone_or_cut_is_refused_for_a_peer_that_has_run_before_knows_it(tmp_path: Path) -> None:
    content = filled(tmp_path)
    first_two = first_two_of(content)
    for length in (0, 1, first_two - 30, first_two, first_two + 5, len(content) - 1):
        assert refused(tmp_path, content[:length]), f"{length} bytes"
    (tmp_path / JOURNAL_NAME).unlink()
    with pytest.raises(StateError, match=rf"journal is gone, but {len(content)} were written.*fresh key"):
        Journal(tmp_path)
    assert not (tmp_path / JOURNAL_NAME).exists()
    (tmp_path / JOURNAL_NAME).write_bytes(content)
    Journal(tmp_path).close()


def test_zeros_in_the_place_of_entries_that_were_on_disk_are_refused(tmp_path: Path) -> None:
    content = filled(tmp_path)
    for zeros in (1, 4, 100, len(content) - first_two_of(content), len(content)):
        assert refused(tmp_path, content[:-zeros] + bytes(zeros)), f"{zeros} zeros"


def test_the_mark_survives_a_torn_write_of_itself_and_other_damage_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    mark = (tmp_path / MARK_NAME).read_bytes()
    size = len(mark) // 2
    for place in range(2):
        torn = mark[: place * size] + b"x" * size + mark[(place + 1) * size :]
        (tmp_path / MARK_NAME).write_bytes(torn)
        again = Journal(tmp_path)  # the other place has this length, or the one before
        assert again.records == [value(1), value(2)]
        again.close()
    (tmp_path / MARK_NAME).write_bytes(b"x" * 2 * size)
    with pytest.raises(StateError, match=r"journal\.mark is damaged"):
        Journal(tmp_path)


def test_a_journal_whose_mark_is_gone_or_empty_is_refused_for_nobody_knows_what_it_lost(tmp_path: Path) -> None:
    content = filled(tmp_path)
    (tmp_path / MARK_NAME).write_bytes(b"")
    for kept in (len(content), first_two_of(content)):
        assert refused(tmp_path, content[:kept])
    (tmp_path / MARK_NAME).unlink()
    with pytest.raises(StateError, match=r"journal has \d+ bytes, but journal\.mark, .*is gone or empty; restore"):
        Journal(tmp_path)
    assert not (tmp_path / MARK_NAME).exists()
    (tmp_path / JOURNAL_NAME).unlink()
    Journal(tmp_path).close()  # a new peer


def test_the_owner_alone_can_read_what_holds_opinions(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        filled(tmp_path)
    finally:
        os.umask(before)
    (tmp_path / JOURNAL_NAME).chmod(0o644)
    Journal(tmp_path).close()
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in (JOURNAL_NAME, MARK_NAME)} == {0o600}


def test_a_flipped_bit_anywhere_is_refused_and_nothing_is_cut_off(tmp_path: Path) -> None:
    content = filled(tmp_path)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        assert refused(tmp_path, bytes(damaged)), f"byte {place}"


def test_what_the_file_had_room_for_but_never_got_is_cut_off(tmp_path: Path) -> None:
    content = filled(tmp_path)
    for tail in (bytes(3), bytes(300), content[-40:-20] + bytes(20), content[:20] + bytes(len(content) // 2 - 35)):
        (tmp_path / JOURNAL_NAME).write_bytes(content + tail)
        kept = Journal(tmp_path)
        assert kept.records == [value(1), value(2)]
        kept.close()
        assert (tmp_path / JOURNAL_NAME).read_bytes() == content


def test_a_wrong_length_is_damage_not_a_torn_tail(tmp_path: Path) -> None:
    content = filled(tmp_path)
    for bit in range(32):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert refused(tmp_path, bytes(damaged)), f"bit {bit}"
    assert refused(tmp_path, struct.pack("<II", FRAME_LIMIT + 100, 7) + b"R and so on")


def refused(folder: Path, content: bytes) -> bool:
    """Whether a journal like this is refused, and left as it is."""
    (folder / JOURNAL_NAME).write_bytes(content)
    try:
        Journal(folder).close()
    except StateError:
        return (folder / JOURNAL_NAME).read_bytes() == content
    return False


def test_records_that_are_kept_together_take_one_forced_write_and_come_back_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.keep_records([value(1)])
    before = (tmp_path / JOURNAL_NAME).read_bytes()
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    journal.keep_records([value(slot) for slot in range(2, 200)])
    journal.keep_records([])
    journal.close()
    assert len(forced) == 2  # the journal, then its mark
    content = (tmp_path / JOURNAL_NAME).read_bytes()
    again = Journal(tmp_path)
    assert again.records == [value(slot) for slot in range(1, 200)]
    again.close()
    hole = content[:8192] + bytes(4096) + content[12288:]  # a page of it never got to the disk
    for torn in (content[:-1], content[: len(content) // 2], hole):
        leave(tmp_path, torn, len(before))
        Journal(tmp_path).close()
        assert (tmp_path / JOURNAL_NAME).read_bytes() == before


def test_what_the_last_claim_was_built_on_is_settled_without_verifying_history_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for slot in (1, 3):
        journal.keep_opinion(slot, 0.5)
    journal.keep_records([value(4)])

    class History:
        certificates = tuple(SimpleNamespace(slot=slot, cohort=(0,)) for slot in (1, 3, 4, 5))
        slot = 5

    rewards = journal.rewards(0, cast("CertificateChain", History()))
    journal.close()
    assert not rewards.give(3, 1.0)  # the claim in slot 4 was on top of it
    assert rewards.give(4, 0.0) and rewards.give(5, 1.0)
    assert rewards.claim(cast("CertificateChain", History())) == 0.5
    assert not rewards.give(5, 0.0)


def test_two_processes_cannot_run_one_peer(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(RunLockedError):
        Journal(tmp_path)
    journal.close()
