"""What is known of a client only grows; votes add up; a neighbour that says nothing is not waited for."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.election_kit import BLIND, config, statement, value, vote

from fedelect.protocol.gossip import Ballots, Entry, alike, join
from fedelect.protocol.open_slot import Attendance
from fedelect.protocol.proofs import TwoValues
from fedelect.protocol.statements import SignedValue, Vote

SHARED = config()
NUMBERS = (0.0, 0.25, 1.0, math.nan)
VALUES = [value(SHARED, 3, belief=number) for number in NUMBERS]
entries: st.SearchStrategy[Entry] = st.sampled_from([*VALUES, TwoValues(VALUES[0], VALUES[1])])


@given(entries, entries, entries)
def test_joining_is_a_semilattice(a: Entry, b: Entry, c: Entry) -> None:
    assert alike(join(a, a), a)
    assert alike(join(a, b), join(b, a))
    assert alike(join(join(a, b), c), join(a, join(b, c)))
    assert alike(join(join(a, b), b), join(a, b))


def test_two_different_values_prove_misbehaviour_for_good() -> None:
    proof = join(VALUES[0], VALUES[1])
    assert proof == TwoValues(VALUES[0], VALUES[1])
    assert join(proof, VALUES[0]) is proof
    assert join(VALUES[2], proof) is proof


def test_values_are_equal_bit_by_bit_whatever_their_signature() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    assert value(SHARED, 1, math.nan) == value(SHARED, 1, float("nan"))
    assert value(SHARED, 1, other_nan) != value(SHARED, 1, math.nan)
    assert value(SHARED, 1, 0.0) != value(SHARED, 1, -0.0)
    assert SignedValue(SHARED.digest, 1, SHARED.digest, 1, math.nan, 0.5, BLIND, b"other") == value(SHARED, 1)
    assert len({value(SHARED, 1), value(SHARED, 1)}) == 1
    assert value(SHARED, 1) != 7


@pytest.mark.parametrize(("mean", "belief"), [(-0.1, 0.5), (1.1, 0.5), (math.inf, 0.5), (0.5, -0.1), (0.5, 1.1)])
def test_values_out_of_range_have_a_fault(mean: float, belief: float) -> None:
    assert value(SHARED, 1, mean, belief).fault() is not None
    assert value(SHARED, 1, math.nan, math.nan).fault() is None
    assert value(SHARED, 1, 1.0, 0.0).fault() is None


def test_votes_add_up_to_a_certificate_and_two_of_one_client_prove_a_lie() -> None:
    ballots = Ballots([1, 2], 3)
    one, other = statement(SHARED), statement(SHARED, cohort=(1, 2))
    assert ballots.learn([vote(one, 0), vote(one, 1)], source=1) == ([vote(one, 0), vote(one, 1)], [])
    assert ballots.certificate() is None
    assert ballots.learn([vote(one, 0)]) == ([], [])
    fresh, proofs = ballots.learn([vote(other, 1), vote(statement(SHARED, cohort=(2, 3)), 1)])
    assert fresh == [vote(other, 1)]  # a third vote would prove no more
    assert [proof.client for proof in proofs] == [1]
    assert ballots.filter_new([vote(other, 1), vote(one, 3)]) == [vote(one, 3)]
    assert (ballots.most(), ballots.voters()) == (2, (0, 1))
    ballots.learn([vote(one, 3)])
    found = ballots.certificate()
    assert found is not None and found.statement == one
    assert [client for client, _ in found.signatures] == [0, 1, 3]
    assert ballots.unacknowledged(1) == (vote(other, 1), vote(one, 3))
    assert ballots.missing_at(1, [vote(one, 0), vote(one, 3)]) == (vote(one, 3),)


def test_what_a_neighbour_shows_takes_room_only_as_far_as_it_is_kept() -> None:
    ballots = Ballots([1, 2], 3)
    kept = [vote(statement(SHARED, hashed=bytes([number]) * 32), client) for client in (0, 3) for number in (1, 2)]
    ballots.learn(kept)
    flood = [Vote(statement(SHARED, hashed=number.to_bytes(32, "big")), 3, b"") for number in range(500)]
    ballots.learn([*flood, *kept[1:]], source=1)
    assert ballots.unacknowledged(1) == (kept[0],)
    assert ballots.unacknowledged(2) == tuple(kept)
    assert ballots._shown == {1: {(one.client, one.statement.identity) for one in kept[1:]}, 2: set()}


def test_a_silent_neighbour_is_given_up_before_one_that_sends_other_messages() -> None:
    attendance = Attendance([1, 2, 3], silent_intervals=2, limit=6)
    for tick in range(1, 8):
        attendance.hear(1)
        attendance.hear(3)
        attendance.tick([1, 2])
        assert attendance.has_gone(2) == (tick >= 2)
        assert attendance.has_gone(1) == (tick >= 6)  # it speaks, but does not deliver
        assert not attendance.has_gone(3)
    attendance.hear(1)
    assert attendance.has_gone(1)  # for the slot
    patient = Attendance([1], silent_intervals=2, limit=None)
    for _ in range(100):
        patient.hear(1)
        patient.tick([1])
    assert not patient.has_gone(1)  # where the clock ends each phase
    back = Attendance([1], silent_intervals=2, limit=6)
    back.tick([1])
    back.tick([1])
    assert back.has_gone(1)
    back.hear(1)  # it was only slow
    assert not back.has_gone(1)
