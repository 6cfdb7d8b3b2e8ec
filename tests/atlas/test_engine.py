"""A run on the atlas is the run that trains what the atlas holds."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.atlas.made_up import alike, made_up, trained
from tests.worlds import digits
from tests.worlds import plan as run_plan

from fedelect.atlas import Atlas, AtlasEngine, draw_training_seed, load_atlas, save_atlas, table_truth
from fedelect.errors import ConfigurationError
from fedelect.federation import Job, PlainEngine, Training, make_engine
from fedelect.loop import FrameworkName
from fedelect.measurement import KnowsOpinions, opinions_on
from fedelect.records import RunRecords, read_run, sorted_records
from fedelect.scenario import Scenario
from fedelect.simulator import Plan, simulate

PLAIN = PlainEngine()
SELECTORS: dict[FrameworkName, tuple[str, ...]] = {
    "fa": ("quick-init-ucb", "subset-ucb", "random"),
    "da": ("bp-ucb", "peers", "round-robin"),
}


class TrainsWhatTheAtlasDraws:
    """Trains, for each slot, the training seed that a run on the atlas would look up."""

    name = "trains what the atlas draws"
    initial_model = PLAIN.initial_model
    scores = PLAIN.scores

    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        return PLAIN.train(scenario, [self.looked_up(job) for job in jobs])

    def looked_up(self, job: Job) -> Job:
        seed = draw_training_seed(self.atlas, seed=job.seed, trial=job.trial, slot=job.slot)
        return dataclasses.replace(job, seed=self.atlas.seed, trial=seed, slot=1)


def plan(framework: FrameworkName, atlas: Atlas, **changes: Any) -> Plan:
    selectors = changes.pop("selectors", SELECTORS[framework])
    fields: dict[str, Any] = {"slots": 20, "trials": 3, "seed": 5}
    return run_plan(*selectors, framework=framework, config=atlas.config, **fields | changes)


def run_on(atlas: Atlas, framework: FrameworkName, folder: Path, **options: Any) -> RunRecords:
    given: dict[str, Any] = {"workers": 1}
    simulate(plan(framework, atlas), atlas, folder, **given | options)
    return read_run(folder)


@pytest.mark.parametrize("upload_probability", [1.0, 0.8])
@pytest.mark.parametrize("framework", ["fa", "da"])
def test_a_run_on_the_atlas_equals_one_that_trains(
    tmp_path: Path, framework: FrameworkName, upload_probability: float
) -> None:
    atlas = trained(upload_probability)
    looked_up = run_on(atlas, framework, tmp_path / "atlas")
    engine = TrainsWhatTheAtlasDraws(atlas)
    simulate(plan(framework, atlas), digits(), tmp_path / "trained", engine=engine, workers=1)
    assert sorted_records(looked_up) == sorted_records(read_run(tmp_path / "trained"))


def test_of_a_table_only_those_asked_give_opinions() -> None:
    atlas = trained()
    engine, model = AtlasEngine(atlas), np.array([3.0, 0.0])
    asked = [np.array([0, 4]), np.array([], dtype=np.int64)]
    some, nobody = opinions_on(atlas.world, [model, model], engine=engine, clients=asked)
    assert some[[0, 4]].tolist() == atlas.opinions(3, 0)[[0, 4]].tolist()
    assert np.isnan(some[[1, 2, 3, 5]]).all() and np.isnan(nobody).all()


def test_the_header_is_that_of_a_run_that_trains_but_for_engine_and_data(tmp_path: Path) -> None:
    atlas = trained()
    header = run_on(atlas, "fa", tmp_path / "atlas").header
    simulate(plan("fa", atlas, engine="plain"), digits(), tmp_path / "trained", workers=1)
    other = read_run(tmp_path / "trained").header
    assert (header.engine, header.data_digest) == ("atlas", atlas.digest)
    truth = table_truth(atlas)
    assert header.optimum is not None and header.optimum.cohort == atlas.cohort(truth.best)
    assert (header.optimum.smallest_gap, header.optimum.largest_gap) == (truth.smallest_gap, truth.largest_gap)
    same = ("engine", "data_digest", "provenance", "optimum")
    changes = {name: getattr(other, name) for name in same}
    assert msgspec.structs.replace(header, **changes) == other


def test_all_selectors_of_a_trial_draw_the_same_seed_and_trials_draw_their_own() -> None:
    atlas = trained()
    job = Job(cohort=(0, 1), seed=3, trial=0, slot=1)
    engine = AtlasEngine(atlas)
    places = [
        [tuple(one.model.tolist()) for one in engine.train(atlas.world, [job, dataclasses.replace(job, slot=slot)])]
        for slot in range(1, 40)
    ]
    assert all(place[0] == places[0][0] for place in places)
    assert {place[1][1] for place in places} == {0.0, 1.0}
    drawn = [draw_training_seed(atlas, seed=3, trial=trial, slot=slot) for trial in range(40) for slot in range(100)]
    assert abs(np.mean(drawn) - 0.5) < 0.03
    assert engine.train(atlas.world, []) == []


def test_the_stream_of_a_seed_is_named_by_the_runs_seed_the_trial_and_the_slot() -> None:
    """Written out from docs/ATLAS.md and `fedelect.seeds.Draws`; with two seeds to draw from, one bit decides."""
    atlas, slots = trained(), range(1, 41)

    def engine_draws(seed: int, trial: int) -> list[int]:
        jobs = [Job(cohort=(0, 1), seed=seed, trial=trial, slot=slot) for slot in slots]
        return [int(one.model[1]) for one in AtlasEngine(atlas).train(atlas.world, jobs)]

    def written_out(seed: int, trial: int, slot: int) -> int:
        return hashlib.blake2b(repr((seed, "atlas", trial, slot)).encode() + bytes(8)).digest()[0] & 1

    for seed, trial in ((3, 0), (3, 1), (4, 0)):
        assert engine_draws(seed, trial) == [written_out(seed, trial, slot) for slot in slots]
    assert engine_draws(3, 0) != engine_draws(3, 1)
    assert engine_draws(3, 0) != engine_draws(4, 0)


def test_workers_and_interruptions_change_nothing(tmp_path: Path) -> None:
    atlas = trained()
    whole = run_on(atlas, "fa", tmp_path / "one")

    class Stop(Exception):
        pass

    def stop(finished: int, total: int) -> None:
        if finished > 40:
            raise Stop

    with pytest.raises(Stop):
        run_on(atlas, "fa", tmp_path / "two", progress=stop)
    resumed = run_on(atlas, "fa", tmp_path / "two", workers=2)
    assert sorted_records(resumed) == sorted_records(whole)


def test_a_saved_atlas_needs_neither_data_nor_the_opinion_function(tmp_path: Path) -> None:
    atlas = made_up(
        alike(np.linspace(0.2, 0.9, 15)[np.newaxis]), alike(np.full((4, 1), 0.5)), [3], opinion="not_there:opinion"
    )
    save_atlas(atlas, tmp_path / "a.npz")
    again = load_atlas(tmp_path / "a.npz")
    simulate(plan("fa", again, selectors=("fixed:cohort=4,5",)), again, tmp_path / "run", workers=2)
    run = read_run(tmp_path / "run")
    assert run.header.untrained == pytest.approx((0.1,) * 3)
    assert all(record.reward == pytest.approx(0.9, abs=1e-6) for record in run.records)
    assert table_truth(again).optimum.mean == pytest.approx(0.9, abs=1e-6)


def test_an_atlas_is_not_trained_again_nor_used_for_another_scenario(tmp_path: Path) -> None:
    atlas = trained()
    with pytest.raises(ConfigurationError, match="has been trained already"):
        simulate(plan("fa", atlas, engine="plain"), atlas, tmp_path / "run", workers=1)
    says = (
        r"built for the scenario 'tiny', not for 'other', which is asked for \(name, channel differ\); give the atlas "
        r"of that scenario, or the scenario in place of the atlas"
    )
    with pytest.raises(ConfigurationError, match=says):
        other = msgspec.structs.replace(trained(1.0).config, name="other")
        simulate(run_plan(config=other), atlas, tmp_path / "run", workers=1)
    with pytest.raises(ConfigurationError, match="knows opinions, not scores"):
        AtlasEngine(atlas).scores(atlas.world, [])


def test_the_seam_tells_who_knows_opinions() -> None:
    assert isinstance(AtlasEngine(trained()), KnowsOpinions)
    for name in ("plain", "auto"):
        assert not isinstance(make_engine(name, trained().config), KnowsOpinions)
