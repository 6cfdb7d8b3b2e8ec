"""Equal turns by shuffled cycles, and the selector that is recommended for a setting."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds import tiny

import fedelect
from fedelect import Feedback
from fedelect.errors import ConfigurationError
from fedelect.selectors import BpGp, LossGp, QuickInitUcb, SelectorSpec, SetGp, ShuffledCycle, SoundCycle, recommended


def play(selector: ShuffledCycle, slots: int, available: Any = None) -> np.ndarray[Any, Any]:
    cohorts = []
    for slot in range(slots):
        selection = selector.ask(available)
        cohorts.append(selection.cohort)
        if slot % 3 == 2:
            selector.abandon(selection)
        else:
            selector.tell(selection, Feedback())
    return np.array(cohorts)


@settings(max_examples=50, deadline=None)
@given(clients=st.integers(1, 30), share=st.floats(0.01, 1.0), seed=st.integers(0, 1000))
def test_everybody_trains_equally_often(clients: int, share: float, seed: int) -> None:
    budget = max(1, int(share * clients))
    cohorts = play(ShuffledCycle(clients=clients, budget=budget, seed=seed), 3 * clients)
    counts = np.bincount(cohorts.ravel(), minlength=clients)
    assert counts.max() - counts.min() <= 1 + (clients % budget != 0)
    assert counts.sum() == budget * 3 * clients


def test_one_cycle_has_everybody_once_and_the_next_has_another_order() -> None:
    cohorts = play(ShuffledCycle(clients=20, budget=5, seed=3), 8)
    assert sorted(cohorts[:4].ravel()) == sorted(cohorts[4:].ravel()) == list(range(20))
    assert {tuple(cohort) for cohort in cohorts[:4]} != {tuple(cohort) for cohort in cohorts[4:]}


def test_who_was_away_is_not_made_to_catch_up() -> None:
    selector = ShuffledCycle(clients=6, budget=2, seed=1)
    play(selector, 30, available=[0, 1, 2, 3])
    counts = np.bincount(play(selector, 12).ravel(), minlength=6)
    assert counts.max() - counts.min() <= 2


def test_turns_are_equal_among_those_available() -> None:
    counts = np.bincount(play(ShuffledCycle(clients=10, budget=3, seed=2), 40, available=[1, 4, 5, 7, 9]).ravel())
    assert set(np.flatnonzero(counts)) == {1, 4, 5, 7, 9}
    present = counts[counts > 0]
    assert present.max() - present.min() <= 2


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ({}, SoundCycle),
        ({"framework": "da"}, ShuffledCycle),
        ({"signals": ()}, ShuffledCycle),
        ({"start": "cold"}, SetGp),
        ({"start": "cold", "signals": ("opinions", "loss")}, LossGp),
        ({"start": "cold", "clients": 100}, QuickInitUcb),
        ({"start": "cold", "framework": "da"}, BpGp),
    ],
)
def test_what_is_recommended_follows_from_the_setting(setting: dict[str, Any], kind: type) -> None:
    assert type(recommended(**{"clients": 20, "budget": 5, "seed": 1} | setting)) is kind


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got 'fa' and 'hot'"):
        recommended(clients=20, budget=5, seed=1, start="hot")  # type: ignore[arg-type]


@pytest.mark.parametrize(("start", "kind"), [("warm", "SoundCycle"), ("cold", "SetGp")])
def test_auto_is_the_recommended_selector_of_the_scenario(start: Any, kind: str) -> None:
    run = fedelect.simulate(tiny(start=start), slots=2, progress=False, workers=1)
    assert [(entry.label, entry.kind) for entry in run.header.selectors] == [("auto", kind), ("random", "RandomCohort")]


def test_auto_takes_no_parameters() -> None:
    with pytest.raises(ConfigurationError, match="unknown parameter 'start'"):
        SelectorSpec.parse("auto:start=cold")
