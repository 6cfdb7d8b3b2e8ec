"""The worlds of the comparison, and the atlases of them that come with fedelect."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from benchmarks.selector_report.worlds import REPORTING, SETTINGS, SMALL, TUNING
from tests.worlds import digits

from fedelect.analytics import survey
from fedelect.atlas import cohorts_at, load_atlas
from fedelect.atlas.table import encode_losses
from fedelect.bench import TUNED, default_specs, name_missing_signals, shipped_worlds
from fedelect.federation import Job, MeasuresLosses, make_engine
from fedelect.scenario import build_scenario
from fedelect.selectors import SelectorSpec, selector_classes

ROOT = Path(__file__).parents[2]
TRIED = json.loads((ROOT / "benchmarks/results/selector_tuning.json").read_text())


def test_no_world_serves_for_tuning_and_for_reporting() -> None:
    names = [world.name for world in (*TUNING, *REPORTING)]
    assert len(set(names)) == len(names)
    assert not {world.config.seed for world in TUNING} & {world.config.seed for world in REPORTING}


def test_the_small_reporting_worlds_come_with_fedelect_in_their_order() -> None:
    plans = {world.name: world.plan for world in REPORTING}
    assert list(shipped_worlds()) == [name for name, plan in plans.items() if plan and plan.cohorts <= SMALL]


@pytest.mark.parametrize("name", shipped_worlds())
def test_a_shipped_atlas_is_that_of_its_world_and_says_what_training_says(name: str) -> None:
    path = shipped_worlds()[name]
    (world,) = [world for world in REPORTING if world.name == name]
    atlas = load_atlas(path)
    assert path.stat().st_size < 400_000
    assert msgspec.to_builtins(atlas.config) == msgspec.to_builtins(world.config)
    assert atlas.losses is not None and world.plan is not None
    assert (atlas.seeds, atlas.losses.shape[1]) == (world.plan.seeds, world.plan.losses)
    scenario, engine = build_scenario(atlas.config, digits()), make_engine("auto", atlas.config)
    assert isinstance(engine, MeasuresLosses)
    for rank in (0, atlas.cohorts // 2, atlas.cohorts - 1):
        cohort = tuple(cohorts_at(rank, clients=scenario.clients, budget=scenario.budget).tolist())
        for seed in (0, atlas.seeds - 1):
            (training,) = engine.train(scenario, [Job(cohort=cohort, seed=1, trial=seed, slot=1)])
            assert np.abs(survey(scenario, training.model) - atlas.opinions(rank, seed)).max() < 0.05  # other versions
        (training,) = engine.train(scenario, [Job(cohort=cohort, seed=1, trial=0, slot=1)])
        losses = encode_losses(np.stack(engine.losses(scenario, training.model)))
        assert atlas.client_losses(rank, 0) == pytest.approx(losses.astype(np.float64), rel=0.05)


def test_every_selector_had_its_chance_in_tuning_and_plays_what_came_out() -> None:
    for name, text in TUNED.items():
        assert TRIED[name][0]["text"] == text
    ours = {"set-gp", "loss-gp", "bp-gp"}  # which play their defaults, whatever their own grids say
    untuned = {"active-fl", "fedcor", "divfl", "clustered-by-size", "clustered-by-similarity", "s-fedavg", "greedyfed"}
    untuned |= {"best-channel", "e3cs", "fair-ucb", "favor", "pyramid-fl"}
    untuned |= {"sound-cycle"}  # all of which came later and play their defaults
    assert selector_classes().keys() - TRIED.keys() <= {"fixed", "cycle", "round-robin", *ours, *untuned}
    for name, rows in TRIED.items():
        gaps = [row["running"] for row in rows]
        assert len(rows) <= SETTINGS and gaps == sorted(gaps)
        if name not in {*TUNED, *ours} and gaps[0] < gaps[-1]:  # then its default is what tuning prefers
            first, default = (
                SelectorSpec.parse(text).build(clients=20, budget=5, seed=1) for text in (rows[0]["text"], name)
            )
            assert first.parameters == default.parameters


def test_default_specs_are_each_selector_as_tuned_and_in_full_with_its_default_too() -> None:
    short, full = default_specs(clients=20, budget=5), default_specs(clients=20, budget=5, full=True)
    assert {text.partition(":")[0] for text in short} == selector_classes().keys() - {
        "fixed",
        *name_missing_signals(losses=True),
    }
    assert set(TUNED.values()) <= set(short) <= set(full)
    assert {"oort", "client-ucb", "fedcs"} <= set(full) - set(short)
    without = default_specs(clients=20, budget=5, full=True, losses=False)
    by_loss = {"oort", "power-of-choice", "loss-gp", "active-fl", "fedcor", "pyramid-fl"}
    assert {text.partition(":")[0] for text in set(full) - set(without)} == by_loss
    assert {"fedcs:candidates=6", "power-of-choice:candidates=5"} <= set(default_specs(clients=6, budget=2))
    assert {"fedcs:candidates=9", "power-of-choice:candidates=9"} <= set(default_specs(clients=20, budget=9))
    for text in full:
        SelectorSpec.parse(text).build(clients=20, budget=5, seed=1)


def test_losses_are_kept_to_about_one_and_a_half_percent() -> None:
    losses = np.exp(np.random.default_rng(1).uniform(-7, 7, 10_000))
    kept = encode_losses(losses)
    assert kept.dtype == np.float16
    assert np.abs(kept.astype(np.float64) / losses - 1).max() < 0.0162
    assert encode_losses(np.zeros(2)).tolist() == [0.0, 0.0]
