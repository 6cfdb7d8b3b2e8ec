"""The cohort that follows from a frozen map."""

import math

import numpy as np
import pytest
from tests.protocol.election_kit import config, value

from fedelect.errors import AvailabilityError
from fedelect.protocol.election import elect_cohort
from fedelect.protocol.statements import SignedValue
from fedelect.rules import CohortStatistics, ColdStart, elect

RING = tuple((n, (n + 1) % 6) for n in range(6))
CONFIG = config(6, RING, exploration=0.3, seed=11)


def values() -> dict[int, SignedValue | None]:
    return {n: value(CONFIG, n, math.nan if n == 2 else n / 10, math.nan if n == 4 else 1.0 - n / 7) for n in range(6)}


def test_a_decision_is_the_election_from_means_pulls_and_beliefs() -> None:
    pulls = np.array([1, 3, 2, 1, 5, 1])
    got = elect_cohort(values(), pulls=pulls, config=CONFIG, slot=9)
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


@pytest.mark.parametrize("rule", ["bp-ucb", "bp-gp"])
def test_a_decision_does_not_depend_on_the_blinds(rule: str) -> None:
    shared = config(6, RING, rule=rule, seed=11)
    sets = CohortStatistics(2, forgetting=1.0, memory=96)
    for first in range(5):
        sets.add_reward((first, first + 1), first / 7, 0.0)
    played = (sets, tuple(range(6)))
    decisions = set()
    for number in range(4):
        blinded = {n: value(shared, n, belief=n / 6, blind=bytes([number, n]) * 8) for n in range(6)}
        decisions.add(elect_cohort(blinded, pulls=np.ones(6, dtype=np.int64), config=shared, slot=9, played=played))
    assert len(decisions) == 1


def test_while_some_client_is_untried_the_next_cold_start_group_is_elected() -> None:
    cold_start = ColdStart(6, 2, 11)
    first, second = cold_start.group(0), cold_start.group(1)
    pulls = np.zeros(6, dtype=np.int64)
    assert elect_cohort(values(), pulls=pulls, config=CONFIG, slot=1) == (first, ())
    pulls[list(first)] = 1
    assert elect_cohort(values(), pulls=pulls, config=CONFIG, slot=2) == (second, ())


def test_proven_and_silent_clients_are_not_elected_even_if_untried() -> None:
    known = values() | {5: None}
    del known[4]
    pulls = np.array([1, 1, 1, 1, 1, 0])
    got = elect_cohort(known, pulls=pulls, config=CONFIG, slot=9)
    assert not set(got.cohort) & {4, 5}
    assert len(got.indices) == 2


def test_available_clients_restrict_the_election_but_all_values_count() -> None:
    pulls = np.ones(6, dtype=np.int64)
    got = elect_cohort(values(), pulls=pulls, config=CONFIG, slot=9, available=[0, 1, 2])
    assert set(got.cohort) <= {0, 1, 2}
    everybody = elect_cohort(values(), pulls=pulls, config=CONFIG, slot=9)
    assert got != everybody


def test_fewer_than_k_values_elect_nobody() -> None:
    known: dict[int, SignedValue | None] = dict.fromkeys(range(6))
    known[3] = value(CONFIG, 3, 0.5)
    with pytest.raises(AvailabilityError, match="1 of 6 clients can be elected but a cohort takes 2"):
        elect_cohort(known, pulls=np.ones(6, dtype=np.int64), config=CONFIG, slot=2)
