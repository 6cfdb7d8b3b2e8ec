"""Very long runs in a small world elect what the selectors themselves elect; and parts that are gone on from."""

import dataclasses
import functools
import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedelect.atlas import Atlas, load_atlas, table_truth
from fedelect.seeds import derive, rank_key, stream
from fedelect.selectors import BpUcb, QuickInitUcb
from fedelect.vocabulary import Cohort
from paper.measurements.regret import long_play
from paper.measurements.regret.long_play import Selector, _rivals, feedback_on, long_elections

SMALL_WORLD = Path(__file__).parents[2] / "paper/results/trained/measurements/small-world.npz"


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return load_atlas(SMALL_WORLD)


def make(seed: int, *, kind: type[Selector], exploration: float) -> Selector:
    return kind(clients=6, budget=2, exploration=exploration, seed=seed)


def asked_and_told(atlas: Atlas, selector: Selector, *, trial: int, slots: int, seed: int) -> list[int]:
    """Cohort numbers by the selector itself."""
    seeds = stream(seed, "regret", trial).integers(atlas.seeds, size=slots).tolist()
    told = functools.cache(functools.partial(feedback_on, atlas, selector))
    ranks: dict[Cohort, int] = {cohort: rank for rank, cohort in enumerate(itertools.combinations(range(6), 2))}
    elected = []
    for slot in range(slots):
        selection = selector.ask()
        elected.append(ranks[selection.cohort])
        selector.tell(selection, told(elected[-1], seeds[slot]))
    return elected


@pytest.mark.parametrize("trial", [0, 3])
@pytest.mark.parametrize("kind", [QuickInitUcb, BpUcb])
def test_a_long_run_elects_whom_the_selector_elects_in_every_slot(
    kind: type[Selector], trial: int, atlas: Atlas
) -> None:
    slots, own = 3000, functools.partial(make, kind=kind, exploration=2.0**0.5)
    elected = long_elections(atlas, own, trial=trial, slots=slots, seed=1)
    itself = own(derive(1, "selection", trial))
    assert elected.tolist() == asked_and_told(atlas, itself, trial=trial, slots=slots, seed=1)
    assert set(elected.tolist()) == set(range(15))


@pytest.mark.parametrize("kind", [QuickInitUcb, BpUcb])
def test_ties_are_drawn_as_the_selector_draws_them(
    kind: type[Selector], atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With equal opinions of everybody on everything, and no coupling, indices are level all the time."""
    config = atlas.config
    uncoupled = msgspec.structs.replace(config, beliefs=msgspec.structs.replace(config.beliefs, coupling_scale=0.0))
    alike = dataclasses.replace(
        atlas,
        table=np.full(atlas.table.shape, 0.5, dtype=np.float32),
        world=dataclasses.replace(atlas.world, config=uncoupled),
    )
    drawn: list[int] = []

    def noted(seed: int, slot: int, client: int) -> object:
        drawn.append(slot)
        return rank_key(seed, slot, client)

    monkeypatch.setattr(long_play, "rank_key", noted)
    own = functools.partial(make, kind=kind, exploration=1.0)
    elected = long_elections(alike, own, trial=0, slots=400, seed=2)
    itself = own(derive(2, "selection", 0))
    assert elected.tolist() == asked_and_told(alike, itself, trial=0, slots=400, seed=2)
    assert len(set(drawn)) > 100 or kind is QuickInitUcb  # the ties of BP-UCB are a matter of these keys


def test_of_level_arms_with_equal_pulls_only_the_highest_mean_is_drawn() -> None:
    means, pulls = [0.5, 0.5, 0.4999, 0.7], [3, 3, 3, 2]
    assert _rivals([0, 1, 2, 3], means, pulls) == [3, 0, 1]


def test_a_run_shorter_than_the_cold_start_is_the_selectors_own(atlas: Atlas) -> None:
    own = functools.partial(make, kind=BpUcb, exploration=1.0)
    elected = long_elections(atlas, own, trial=0, slots=2, seed=1)
    assert elected.tolist() == asked_and_told(atlas, own(derive(1, "selection", 0)), trial=0, slots=2, seed=1)


def test_regret_of_a_long_run_grows_ever_more_slowly(atlas: Atlas) -> None:
    truth = table_truth(atlas)
    own = functools.partial(make, kind=QuickInitUcb, exploration=2.0**0.5)
    losses = (truth.optimum.mean - truth.values)[long_elections(atlas, own, trial=0, slots=20_000, seed=1)]
    assert losses[-5000:].sum() < 0.5 * losses[:5000].sum()
