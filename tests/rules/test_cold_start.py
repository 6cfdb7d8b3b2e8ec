"""Every client is tried once before any index is used."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedelect.rules import ColdStart, cold_start_groups
from fedelect.seeds import stream


@given(st.integers(1, 40), st.data())
def test_the_groups_cover_all_clients_and_only_the_last_repeats_any(clients: int, data: st.DataObject) -> None:
    budget = data.draw(st.integers(1, clients))
    groups = cold_start_groups(clients, budget, seed=data.draw(st.integers(0, 1000)))
    assert groups.shape == (-(-clients // budget), budget)
    assert all(len(set(group)) == budget for group in groups.tolist())
    assert set(groups.ravel().tolist()) == set(range(clients))
    assert len(set(groups[:-1].ravel().tolist())) == groups[:-1].size


@given(st.integers(1, 12), st.data())
def test_whoever_is_there_everybody_present_gets_tried(clients: int, data: st.DataObject) -> None:
    budget = data.draw(st.integers(1, clients))
    cold = ColdStart(clients, budget, seed=5)
    tried: set[int] = set()
    for slot in range(1, 30):
        there = data.draw(st.sets(st.integers(0, clients - 1), min_size=budget))
        mask = np.isin(np.arange(clients), list(there))
        cohort = cold.next_cohort(slot, mask)
        if cohort is None:
            assert there <= tried
            continue
        assert set(cohort) <= there and len(cohort) == budget and set(cohort) - tried
        groups = [cold.group(number) for number in range(-(-clients // budget))]
        if cohort not in groups:
            assert not any(set(group) <= there and set(group) - tried for group in groups)
            assert len(set(cohort) - tried) == min(budget, len(there - tried))
        if data.draw(st.booleans()):
            assert cold.group_number(cohort) == (groups.index(cohort) if cohort in groups else -1)
            cold.mark_tried(cohort)
            tried |= set(cohort)


def test_every_client_is_equally_likely_to_fill_up_the_last_group() -> None:
    counts = np.zeros(7)
    for seed in range(2100):
        groups = cold_start_groups(7, 3, seed)
        repeated, times = np.unique(groups, return_counts=True)
        counts[repeated[times == 2]] += 1
    assert ((counts - 600) ** 2 / 600).sum() < 22.5  # 6 degrees of freedom, p = 0.001


def test_improvised_groups_take_every_client_equally_often() -> None:
    """One client of each of two groups is absent, drawn evenly, so no group is whole: whom to try is improvised."""
    fresh, added = np.zeros(8), np.zeros(8)
    for seed in range(4000):
        cold = ColdStart(8, 4, seed)
        here = np.ones(8, dtype=np.bool_)
        for number in range(2):
            here[cold.group(number)[stream(seed, "absent", number).integers(4)]] = False
        first = cold.next_cohort(1, here)
        assert first is not None
        fresh[list(first)] += 1
        cold.mark_tried(first)
        second = cold.next_cohort(2, here)
        assert second is not None
        added[list(set(second) & set(first))] += 1
    for counts in (fresh, added):
        expected = counts.mean()
        assert ((counts - expected) ** 2 / expected).sum() < 24.3  # 7 degrees of freedom, p = 0.001
