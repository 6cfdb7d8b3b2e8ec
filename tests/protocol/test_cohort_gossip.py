"""Merging partial maps, and the cohort that follows from a complete one."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.equations.cold_start import ColdStart
from fedelect.equations.indices import elect
from fedelect.errors import AvailabilityError
from fedelect.protocol import Claim, CohortGossip, Entry, PeerConfig, Verdict, decide, merge

numbers = st.sampled_from([0.0, 0.25, 1.0, math.nan])
entries: st.SearchStrategy[Entry] = st.builds(Claim, numbers, numbers) | st.just(Verdict.EXCLUDED)
maps = st.dictionaries(st.integers(0, 4), entries)


@given(maps, maps, maps)
def test_merging_is_a_semilattice(a: dict[int, Entry], b: dict[int, Entry], c: dict[int, Entry]) -> None:
    assert merge(a, a) == a
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, {}) == a
    # ... and never forgets: merging again what is in it changes nothing.
    assert merge(merge(a, b), b) == merge(a, b)


def test_two_different_claims_exclude_a_client_for_good() -> None:
    one, other = {3: Claim(0.5, 0.25)}, {3: Claim(0.5, 0.26)}
    excluded = merge(one, other)
    assert excluded == {3: Verdict.EXCLUDED}
    assert merge(excluded, one) == excluded


def test_claims_are_equal_bit_by_bit() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    assert Claim(math.nan, 0.5) == Claim(float("nan"), 0.5)
    assert Claim(other_nan, 0.5) != Claim(math.nan, 0.5)
    assert Claim(0.0, 0.5) != Claim(-0.0, 0.5)
    assert Claim.of(other_nan, -0.0) == Claim.of(math.nan, 0.0)
    assert len({Claim(math.nan, 0.5), Claim(float("nan"), 0.5)}) == 1
    assert Claim(0.5, 0.5) != (0.5, 0.5)


@pytest.mark.parametrize(
    "claim",
    [
        Claim(-0.1, 0.5),
        Claim(1.1, 0.5),
        Claim(math.inf, 0.5),
        Claim(0.5, -0.1),
        Claim(0.5, math.inf),
    ],
)
def test_claims_out_of_range_have_a_fault(claim: Claim) -> None:
    assert claim.fault() is not None
    assert Claim(math.nan, math.nan).fault() is None
    assert Claim(1.0, 17.0).fault() is None


def test_gossip_knows_what_changed_and_what_each_neighbour_has_shown() -> None:
    gossip = CohortGossip([1, 2])
    own, other = Claim(0.1, 0.2), Claim(0.3, 0.4)
    assert gossip.learn({0: own}) == {0: own}
    assert gossip.learn({1: other, 0: own}, source=1) == {1: other}
    assert gossip.learn({1: other}, source=1) == {}
    assert gossip.unshown(1) == {}
    assert gossip.unshown(2) == {0: own, 1: other}
    assert gossip.unshown(2, {1: other}) == {1: other}
    assert gossip.unknown(4) == (2, 3)


def test_an_exclusion_is_news_to_a_neighbour_that_showed_a_claim() -> None:
    gossip = CohortGossip([1, 2])
    gossip.learn({5: Claim(0.1, 0.2)}, source=1)
    assert gossip.learn({5: Claim(0.1, 0.3)}, source=2) == {5: Verdict.EXCLUDED}
    assert gossip.unshown(1) == {5: Verdict.EXCLUDED}
    assert gossip.unshown(2) == {5: Verdict.EXCLUDED}


CONFIG = PeerConfig(clients=6, budget=2, exploration=0.3, seed=11)


def tried(*clients: int) -> ColdStart:
    cold_start = ColdStart(CONFIG.clients, CONFIG.budget, CONFIG.seed)
    cold_start.mark_tried(clients)
    return cold_start


def claims() -> dict[int, Entry]:
    return {n: Claim(math.nan if n == 2 else n / 10, math.nan if n == 4 else 1.0 - n / 7) for n in range(6)}


def test_a_decision_is_the_election_from_means_pulls_and_beliefs() -> None:
    pulls = np.array([1, 3, 2, 1, 5, 1])
    got = decide(claims(), pulls=pulls, cold_start=tried(*range(6)), config=CONFIG, slot=9)
    expected = elect(
        np.array([0.0, 0.1, math.nan, 0.3, 0.4, 0.5]),
        pulls,
        np.array([1.0, 1.0 - 1 / 7, 1.0 - 2 / 7, 1.0 - 3 / 7, math.nan, 1.0 - 5 / 7]),
        slot=9,
        budget=2,
        exploration=0.3,
        tie_seed=11,
    )
    assert got == expected
    assert len(got.indices) == 2


def test_while_some_client_is_untried_the_next_cold_start_group_is_elected() -> None:
    cold_start = ColdStart(6, 2, 11)
    first, second = cold_start.group(0), cold_start.group(1)
    pulls = np.zeros(6, dtype=np.int64)
    assert decide(claims(), pulls=pulls, cold_start=cold_start, config=CONFIG, slot=1) == (first, ())
    assert decide(claims(), pulls=pulls, cold_start=tried(*first), config=CONFIG, slot=2) == (second, ())


def test_excluded_clients_are_not_elected_even_if_untried() -> None:
    values = claims() | {5: Verdict.EXCLUDED, 4: Verdict.EXCLUDED}
    pulls = np.array([1, 1, 1, 1, 1, 0])
    got = decide(values, pulls=pulls, cold_start=tried(0, 1, 2, 3, 4), config=CONFIG, slot=9)
    assert not set(got.cohort) & {4, 5}
    assert len(got.indices) == 2


def test_available_clients_restrict_the_election() -> None:
    pulls = np.ones(6, dtype=np.int64)
    got = decide(claims(), pulls=pulls, cold_start=tried(*range(6)), config=CONFIG, slot=9, available=[0, 1, 2])
    assert set(got.cohort) <= {0, 1, 2}


def test_fewer_than_k_values_elect_nobody() -> None:
    values: dict[int, Entry] = dict.fromkeys(range(6), Verdict.EXCLUDED)
    values[3] = Claim(0.5, 0.5)
    with pytest.raises(AvailabilityError, match="1 of 6 clients can be elected but a cohort takes 2"):
        decide(values, pulls=np.ones(6, dtype=np.int64), cold_start=tried(*range(6)), config=CONFIG, slot=2)
