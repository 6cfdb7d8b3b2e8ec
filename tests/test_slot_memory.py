"""What the simulator remembers of a replica: as the rules it is made of say, and restored exactly."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import tiny

from fedelect.backoff import FailureBackoff
from fedelect.errors import StateError
from fedelect.scenario import Availability, ScenarioConfig, change_scenario
from fedelect.slot_memory import SlotMemory

CLIENTS, BUDGET, SLOTS = 6, 2, 12

configs = st.builds(
    lambda start, tables: change_scenario(tiny(start=start), tables),
    st.sampled_from(["cold", "warm"]),
    st.fixed_dictionaries(
        {},
        optional={
            "availability": st.sampled_from([{"kind": "random"}, {"kind": "on-off", "mean_on": 2.0}]),
            "survey": st.just({"asked": 3}),
        },
    ),
)
failures = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=SLOTS, max_size=SLOTS)


@given(configs, failures)
def test_those_that_can_be_elected_are_those_there_but_for_the_rule_on_failures(
    config: ScenarioConfig, fails: list[tuple[bool, bool]]
) -> None:
    memory, backoff = SlotMemory(config, trial=2), FailureBackoff()
    availability = Availability(config.availability, CLIENTS, seed=7, trial=2)
    for slot, lost in enumerate(fails, start=1):
        mask = availability.at(slot)
        there = list(range(CLIENTS)) if mask is None else np.flatnonzero(mask).tolist()
        expected = backoff.filter(there, slot, needed=BUDGET)
        presence = memory.find_present(slot, seed=7)
        usable = list(range(CLIENTS)) if presence.usable is None else presence.usable.tolist()
        assert usable == expected and presence.left_out == tuple(sorted(set(there) - set(expected)))
        if len(usable) >= BUDGET:
            cohort = tuple(usable[-BUDGET:])
            memory.record_training(slot, cohort, np.array(lost))
            failed = [client for client, has_failed in zip(cohort, lost, strict=True) if has_failed]
            backoff.record(slot, failed=failed, succeeded=[client for client in cohort if client not in failed])


def go_on(memory: SlotMemory, fails: list[tuple[bool, bool]], first: int) -> list[Any]:
    seen: list[Any] = []
    for slot, lost in enumerate(fails, start=first):
        presence = memory.find_present(slot, seed=7)
        usable = list(range(CLIENTS)) if presence.usable is None else presence.usable.tolist()
        seen.append((usable, presence.left_out))
        if len(usable) >= BUDGET:
            memory.record_training(slot, tuple(usable[:BUDGET]), np.array(lost))
            opinions = np.where(np.arange(CLIENTS) % 3 == slot % 3, np.nan, 0.1 + 0.05 * slot / np.arange(1, 7))
            mean = memory.average_opinion(opinions, np.arange(0, CLIENTS, 2))
            seen.append((mean, memory.find_reward(mean)))
    return seen


@given(configs, failures, st.integers(0, SLOTS))
def test_a_restored_memory_goes_on_exactly(config: ScenarioConfig, fails: list[tuple[bool, bool]], cut: int) -> None:
    whole = SlotMemory(config, trial=0)
    go_on(whole, fails[:cut], 1)
    restored = SlotMemory(config, trial=0)
    restored.restore(json.loads(json.dumps(whole.state())))
    assert restored.state() == whole.state()
    assert go_on(restored, fails[cut:], cut + 1) == go_on(whole, fails[cut:], cut + 1)


@pytest.mark.parametrize("state", [{}, {"backoff": {"clients": []}}, {"backoff": {}, "gain": {}, "average": None}])
def test_a_damaged_memory_is_refused(state: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="is damaged"):
        SlotMemory(change_scenario(tiny(), {"survey": {"asked": 3}}), trial=0).restore(state)
