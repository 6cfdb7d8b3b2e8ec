"""Who is there, and whom a survey asks: drawn from named streams, the same for all selectors of a trial."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fedelect.errors import ConfigurationError
from fedelect.scenario import (
    Availability,
    AvailabilityConfig,
    SurveyConfig,
    draw_survey,
    most_available,
    parse_scenario,
)
from fedelect.seeds import stream

Kind = Literal["always", "random", "on-off", "day-night"]

kinds = st.sampled_from(("always", "random", "on-off", "day-night"))
tables = st.builds(
    AvailabilityConfig,
    kind=kinds,
    probability=st.floats(0.0, 1.0),
    mean_on=st.floats(1.0, 20.0),
    mean_off=st.floats(1.0, 20.0),
    period=st.floats(1.0, 30.0),
    day_share=st.floats(0.0, 1.0),
    joins_share=st.floats(0.0, 1.0),
    joins_slot=st.integers(1, 12),
)


def masks(config: AvailabilityConfig, clients: int, slots: int, seed: int = 1, trial: int = 0) -> np.ndarray[Any, Any]:
    """(slots, N), slot after slot."""
    availability = Availability(config, clients, seed=seed, trial=trial)
    found = [availability.at(slot) for slot in range(1, slots + 1)]
    return np.array([np.ones(clients, dtype=np.bool_) if mask is None else mask for mask in found])


def test_without_the_table_or_under_always_all_clients_are_there() -> None:
    assert Availability(UNSET, 5, seed=1, trial=0).at(3) is None
    assert Availability(AvailabilityConfig(), 5, seed=1, trial=0).at(3) is None


@given(tables, st.integers(1, 30), st.permutations(range(1, 13)))
def test_a_slot_does_not_depend_on_which_slots_were_asked_for_before(
    config: AvailabilityConfig, clients: int, order: list[int]
) -> None:
    in_order = masks(config, clients, 12)
    availability = Availability(config, clients, seed=1, trial=0)
    for slot in order:
        mask = availability.at(slot)
        assert np.array_equal(np.ones(clients, dtype=np.bool_) if mask is None else mask, in_order[slot - 1])


@given(tables, st.integers(1, 30))
def test_no_more_clients_are_there_than_is_known_beforehand(config: AvailabilityConfig, clients: int) -> None:
    assert masks(config, clients, 20).sum(axis=1).max() <= most_available(config, clients, slots=20)


def test_trials_and_seeds_have_draws_of_their_own() -> None:
    config = AvailabilityConfig(kind="random")
    first = masks(config, 50, 4)
    assert not np.array_equal(first, masks(config, 50, 4, trial=1))
    assert not np.array_equal(first, masks(config, 50, 4, seed=2))


def test_each_client_is_there_with_the_given_probability_in_each_slot() -> None:
    there = masks(AvailabilityConfig(kind="random", probability=0.3), 400, 200)
    assert there.mean() == pytest.approx(0.3, abs=0.01)
    assert np.corrcoef(there[1:].ravel(), there[:-1].ravel())[0, 1] == pytest.approx(0.0, abs=0.02)


def test_an_on_off_world_is_the_chain_that_its_definition_says() -> None:
    config = AvailabilityConfig(kind="on-off", mean_on=4.0, mean_off=2.5)
    expected = []
    for client in range(7):
        there = False
        for slot in range(1, 31):
            luck = stream(1, "availability", 0, slot).random(7)[client]
            stays, comes = 1 - 1 / 4, 1 / 2.5
            there = luck < (4 / 6.5 if slot == 1 else stays if there else comes)
            expected.append(there)
    assert masks(config, 7, 30).T.ravel().tolist() == expected


def test_spells_of_an_on_off_world_last_as_long_as_they_should_on_average() -> None:
    there = masks(AvailabilityConfig(kind="on-off", mean_on=8.0, mean_off=3.0), 300, 500)
    ends, begins = there[:-1] & ~there[1:], ~there[:-1] & there[1:]
    assert there[:-1].sum() / ends.sum() == pytest.approx(8.0, rel=0.05)
    assert (~there[:-1]).sum() / begins.sum() == pytest.approx(3.0, rel=0.05)
    assert there[0].mean() == pytest.approx(8 / 11, abs=0.06)


def test_by_day_a_client_is_there_for_its_share_of_each_period_and_days_are_spread() -> None:
    there = masks(AvailabilityConfig(kind="day-night", period=12.0, day_share=0.25), 48, 36)
    assert (there.sum(axis=1) == 12).all() and (there.sum(axis=0) == 9).all()
    assert np.array_equal(there[:12], there[12:24])
    for client in range(48):  # one spell a period
        assert np.count_nonzero(there[:12, client] & ~np.roll(there[:12, client], 1)) == 1


@pytest.mark.parametrize("kind", ["always", "random", "on-off", "day-night"])
def test_clients_that_join_are_away_until_their_slot_and_as_the_others_then(kind: Kind) -> None:
    late = masks(AvailabilityConfig(kind=kind, joins_share=0.3, joins_slot=6), 40, 10)
    early = masks(AvailabilityConfig(kind=kind), 40, 10)
    assert np.array_equal(late[5:], early[5:])
    newcomers = ~late[:5].any(axis=0)
    assert newcomers.sum() >= 12 and np.array_equal(late[:5, ~newcomers], early[:5, ~newcomers])


@pytest.mark.parametrize(
    ("table", "most"),
    [
        (AvailabilityConfig(), 20),
        (AvailabilityConfig(kind="random", probability=0.0), 0),
        (AvailabilityConfig(kind="random", probability=0.01), 20),
        (AvailabilityConfig(kind="day-night", period=10.0, day_share=0.2), 4),
        (AvailabilityConfig(joins_share=0.9, joins_slot=51), 2),
        (AvailabilityConfig(joins_share=0.9, joins_slot=50), 20),
    ],
)
def test_the_most_that_can_be_there_is_known_where_it_can_be(table: AvailabilityConfig, most: int) -> None:
    assert most_available(table, 20, slots=50) == most


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[availability]\nkind = "never"', r'availability\.kind: got \'never\'; allowed: "always", "random", "on-off"'),
        ("[availability]\nprobability = 1.5", r"availability\.probability: got 1\.5; allowed: a number in \[0, 1\]"),
        ("[availability]\nmean_off = 0.5", r"availability\.mean_off: got 0\.5; allowed: a number of slots >= 1"),
        ("[availability]\njoin_slot = 3", r'availability\.join_slot: got an unknown key \(did you mean "joins_slot"'),
        ("[survey]\nasked = 0", r"survey\.asked: got 0; allowed: a whole number >= 1, or a share"),
        ("[survey]\nasked = 1.5", r"survey\.asked: got 1\.5; allowed: a whole number >= 1, or a share"),
    ],
)
def test_what_is_not_allowed_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        parse_scenario(text)


def test_without_the_table_all_that_are_there_are_asked_and_answer() -> None:
    sample = draw_survey(UNSET, (0, 2), np.array([1, 0, 1, 1], dtype=bool), clients=4, seed=1, trial=0, slot=1)
    assert [part.tolist() for part in sample] == [[0, 2, 3]] * 3


@given(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.booleans(), min_size=n, max_size=n))),
    st.integers(1, 50) | st.floats(0.01, 1.0),
    st.floats(0.0, 1.0),
    st.integers(1, 9),
)
def test_a_survey_asks_so_many_that_are_there_and_the_elected(
    there: tuple[int, list[bool]], asked: int | float, answers: float, slot: int
) -> None:
    clients, flags = there
    present = np.array(flags)
    cohort = tuple(np.flatnonzero(present)[:2].tolist())
    config = SurveyConfig(asked=asked, answers=answers)
    sample = draw_survey(config, cohort, present, clients=clients, seed=1, trial=0, slot=slot)
    alone = draw_survey(config, (), present, clients=clients, seed=1, trial=0, slot=slot)
    count = int(present.sum())
    size = min(count, asked) if isinstance(asked, int) else int(np.ceil(asked * count))
    assert alone.asked.size == size and present[sample.asked].all()
    assert set(sample.asked) == set(alone.asked) | set(cohort)
    assert set(sample.counted) == set(alone.answering)  # who is elected changes nothing in the sample
    assert set(sample.counted) <= set(sample.answering) <= set(sample.asked)


def test_every_client_is_asked_and_answers_equally_often() -> None:
    config = SurveyConfig(asked=0.2, answers=0.5)
    samples = [draw_survey(config, (), None, clients=20, seed=1, trial=0, slot=slot) for slot in range(1, 2001)]
    asked = np.bincount(np.concatenate([sample.asked for sample in samples]), minlength=20)
    answered = np.bincount(np.concatenate([sample.answering for sample in samples]), minlength=20)
    assert asked / 2000 == pytest.approx(np.full(20, 0.2), abs=0.03)
    assert answered / asked == pytest.approx(np.full(20, 0.5), abs=0.08)
