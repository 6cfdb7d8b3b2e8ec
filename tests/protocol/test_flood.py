"""How values spread: rounds end when all have spoken, late values need more signatures, frozen is frozen."""

from collections.abc import Sequence

import pytest
from tests.protocol.election_kit import SIGNERS, config, value

from fedelect.protocol.flood import Flood
from fedelect.protocol.gossip import Entry, Relayed
from fedelect.protocol.proofs import TwoValues

SHARED = config()
VALUES = [value(SHARED, 3, belief=number) for number in (0.0, 0.25, 1.0)]
ME = 7


def never(neighbour: int) -> bool:
    return False


def pass_on(entry: Entry) -> tuple[int, bytes]:
    return ME, b"signed by me"


def make_flood(neighbours: Sequence[int], rounds: int, windows: int = 1) -> Flood:
    return Flood(neighbours, windows=windows, window_rounds=rounds // windows, pass_on=pass_on)


def relayed(entry: Entry, *relays: int) -> Relayed:
    return Relayed(entry, tuple((relay, SIGNERS[relay].sign(b"relay")) for relay in relays))


def plain(*entries: Entry) -> list[Relayed]:
    return [Relayed(entry) for entry in entries]


def enter(flood: Flood, number: int) -> None:
    """Bring the flood into this round, with the messages that it takes."""
    flood.begun = True
    while flood.round < number:
        for neighbour in flood.missing():
            flood.learn([], source=neighbour, round_number=flood.round)
        assert flood.advance(never)


def test_a_round_ends_when_every_neighbour_has_sent_it_or_has_gone() -> None:
    flood = make_flood([1, 2], 2)
    assert not flood.advance(never)  # its own value is not in yet
    flood.begun = True
    assert flood.advance(never) and flood.round == 1
    assert flood.missing() == (1, 2)
    flood.learn([], source=1, round_number=2)
    assert not flood.advance(never)
    assert flood.advance(lambda neighbour: neighbour == 2) and flood.round == 2
    assert flood.advance(lambda neighbour: neighbour == 2) and flood.frozen
    assert not flood.advance(never)
    assert flood.missing() == ()


def test_a_message_holds_what_its_receiver_has_not_shown_to_have() -> None:
    flood = make_flood([1, 2], 3)
    mine, theirs = plain(value(SHARED, 0), value(SHARED, 1))
    flood.learn([mine])
    flood.begun = True
    flood.advance(never)
    assert flood.open_round(1) == (mine,)
    flood.learn([theirs], source=1, round_number=1)
    assert flood.open_round(1) == (mine,)  # round 1 of 1 does not show that it has ours
    assert set(flood.open_round(2)) == {mine, theirs}
    flood.learn([], source=1, round_number=2)  # round 2 does: it waited for our round 1
    assert flood.open_round(1) == ()
    assert flood.repeat(1) == (mine,)  # unless it had given us up
    flood.learn([mine], source=1)
    assert flood.repeat(1) == ()


def test_two_values_are_both_passed_on_and_a_third_is_no_news() -> None:
    flood = make_flood([1, 2], 3)
    flood.learn(plain(VALUES[0]), source=1)
    assert flood.filter_new(plain(VALUES[0])) == []
    assert flood.filter_new(plain(VALUES[1])) == plain(VALUES[1])
    proof = TwoValues(VALUES[0], VALUES[1])
    assert flood.learn(plain(VALUES[1]), source=2) == [proof]
    assert flood.entries == {3: proof} and flood.frozen_values() == {3: None}
    assert flood.open_round(1) == (Relayed(VALUES[1]),) and flood.open_round(2) == (Relayed(VALUES[0]),)
    assert flood.filter_new(plain(VALUES[2], proof)) == []


def test_a_frozen_map_takes_nothing_in_but_still_catches_lies() -> None:
    flood = make_flood([1], 0)
    flood.learn(plain(VALUES[0]))
    flood.begun = True
    assert flood.advance(never) and flood.frozen
    assert flood.learn(plain(value(SHARED, 1)), source=1) == []
    assert flood.learn(plain(VALUES[1]), source=1) == [TwoValues(VALUES[0], VALUES[1])]
    assert flood.filter_new(plain(VALUES[2])) == []  # a third would prove no more
    assert flood.learn([relayed(value(SHARED, 2), 0, 4, 5)], source=1) == []
    assert flood.frozen_values() == {3: VALUES[0]}


@pytest.mark.parametrize("number", range(1, 7))
def test_in_window_w_a_value_counts_only_with_w_signatures(number: int) -> None:
    for relays in range(4):
        flood = make_flood([1, 2], 6, windows=3)
        enter(flood, number)
        window = (number + 1) // 2
        assert flood.window == window
        one = relayed(VALUES[0], *(0, 2, 4)[:relays])
        assert flood.filter_new([one]) == [one]
        assert flood.learn([one], source=1) == []
        assert flood.frozen_values() == ({3: VALUES[0]} if 1 + relays >= window else {})


def test_what_came_too_late_counts_when_it_comes_again_with_enough_signatures() -> None:
    flood = make_flood([1, 2], 6, windows=3)
    enter(flood, 3)
    late, good = relayed(VALUES[0]), relayed(VALUES[0], 5)
    flood.learn([late], source=1)
    assert flood.entries == {} and flood.filter_new([late]) == [] and flood.filter_new([good]) == [good]
    assert flood.learn([good], source=2) == []
    assert flood.frozen_values() == {3: VALUES[0]}


def test_two_values_of_which_one_is_late_prove_a_lie_that_the_map_does_not_show_yet() -> None:
    in_time, late = relayed(VALUES[0], 5), relayed(VALUES[1])
    cases = (
        (in_time, late, TwoValues(VALUES[0], VALUES[1])),
        (late, in_time, TwoValues(VALUES[1], VALUES[0])),
    )
    for first, second, found in cases:
        flood = make_flood([1, 2], 6, windows=3)
        enter(flood, 3)
        assert flood.learn([first], source=1) == []
        assert flood.learn([second], source=2) == [found]
        assert flood.frozen_values() == {3: VALUES[0]}  # the others would not all know
        proof = TwoValues(VALUES[0], VALUES[1])
        assert flood.learn([relayed(proof)], source=1) == []
        assert flood.frozen_values() == {3: VALUES[0]}
        flood.learn([relayed(proof, 5)], source=1)  # known already, but now in time
        assert flood.frozen_values() == {3: None}


def test_what_was_taken_in_is_passed_on_signed_in_the_next_window_and_only_then() -> None:
    flood = make_flood([1, 2, 4], 6, windows=3)
    mine = Relayed(value(SHARED, ME))
    flood.learn([mine], own=True)
    enter(flood, 2)
    flood.learn([relayed(VALUES[0])], source=1)
    flood.open_round(2), flood.open_round(4)
    assert Relayed(VALUES[0]) in flood.repeat(2)
    flood.learn([relayed(VALUES[0])], source=4, round_number=2)
    enter(flood, 3)
    signed = Relayed(VALUES[0], ((ME, b"signed by me"),))
    assert signed in flood.open_round(2) and mine in flood.open_round(2)  # its own value it has signed already
    assert signed not in flood.open_round(1) and signed not in flood.open_round(4)  # they have shown it
    other = value(SHARED, 2)
    flood.learn([relayed(other, 0)], source=1)
    enter(flood, 5)
    both = Relayed(other, ((0, SIGNERS[0].sign(b"relay")), (ME, b"signed by me")))
    assert both in flood.open_round(2) and signed in flood.repeat(2)
    enter(flood, 6)
    flood.learn([relayed(value(SHARED, 5), 0, 2)], source=1)
    enter(flood, 7)
    assert flood.frozen and Relayed(value(SHARED, 5), relayed(VALUES[0], 0, 2).signatures) in flood.repeat(2)


def test_a_neighbour_that_ended_a_window_by_the_clock_gets_signed_what_it_may_have_got_too_late() -> None:
    flood = make_flood([1, 2], 4, windows=2)
    enter(flood, 1)
    flood.learn([relayed(VALUES[0])], source=1)
    enter(flood, 2)
    assert flood.open_round(2) == (Relayed(VALUES[0]),)
    flood.learn([], source=2, round_number=3)  # it need not have waited for our round 2
    enter(flood, 3)
    assert flood.open_round(2) == (Relayed(VALUES[0], ((ME, b"signed by me"),)),)


def test_the_clock_ends_a_window_for_whoever_is_missing_in_it() -> None:
    flood = make_flood([1, 2], 6, windows=3)
    flood.end_windows(1)  # before its own value is in
    assert flood.window == 2 and flood.round == 0
    flood.learn([relayed(VALUES[0])], source=1)
    assert flood.entries == {}
    flood.begun = True
    assert flood.advance(never) and flood.round == 3 and flood.window == 2
    assert not flood.advance(never)
    flood.learn([], source=1, round_number=3)
    flood.learn([], source=2, round_number=3)
    assert flood.advance(never) and flood.round == 4
    flood.end_windows(1)
    assert not flood.advance(never)
    flood.end_windows(9)
    assert flood.advance(never) and flood.frozen
