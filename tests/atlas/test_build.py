"""Building an atlas: every cohort, checkable, resumable, the same on any number of cores."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.atlas.made_up import built, plan, trained
from tests.worlds import digits, tiny

from fedelect.analytics import survey
from fedelect.atlas import AtlasPlan, build_atlas, cohort_ranks, load_atlas
from fedelect.atlas import build as build_module
from fedelect.errors import ConfigurationError, FeedbackError, RunLockedError, RunMismatchError
from fedelect.federation import Job, StackedEngine, initial_model, train
from fedelect.records import PartStore
from fedelect.records.lock import FolderLock
from fedelect.scenario import build_scenario, preset

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("upload_probability", [1.0, 0.8])
def test_every_entry_is_what_its_job_trains(upload_probability: float) -> None:
    atlas = trained(upload_probability)
    world = build_scenario(tiny(upload_probability=upload_probability), digits())
    assert (atlas.seeds, atlas.cohorts, atlas.fresh.shape) == (2, 15, (6, 6, 5))
    for rank in range(15):
        cohort = atlas.cohort(rank)
        for seed in range(2):
            (training,) = train(world, [Job(cohort=cohort, seed=7, trial=seed, slot=1)])
            assert np.array_equal(atlas.opinions(rank, seed), survey(world, training.model))
    for place, rank in enumerate(atlas.contenders.tolist()):
        (training,) = train(world, [Job(cohort=atlas.cohort(rank), seed=7, trial=2 + 5, slot=1)])
        assert np.array_equal(atlas.fresh[5, :, place] / atlas.test_sizes, survey(world, training.model))
    assert np.array_equal(atlas.untrained, survey(world, initial_model(world)))


def test_some_entries_of_a_larger_world_are_what_the_same_engine_trains_alone(tmp_path: Path) -> None:
    config = msgspec.structs.replace(preset("digits"), clients=12, budget=3, rounds_per_slot=1)
    atlas = built(plan(config, seeds=1, contenders=2, fresh=4), tmp_path / "a.npz", engine="auto")
    world, engine = build_scenario(config, digits()), StackedEngine()
    assert atlas.engine == engine.name and atlas.cohorts == 220
    for cohort in [(0, 1, 2), (3, 7, 11), (9, 10, 11)]:
        (training,) = engine.train(world, [Job(cohort=cohort, seed=7, trial=0, slot=1)])
        rank = int(cohort_ranks(cohort, clients=12))
        assert np.array_equal(atlas.opinions(rank, 0), survey(world, training.model))


def test_workers_build_the_same_atlas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "CHUNK", 4)
    told: list[tuple[int, int]] = []
    atlas = built(plan(), tmp_path / "a.npz", workers=2, progress=lambda *of: told.append(of))
    assert atlas.digest == trained().digest
    assert told[0] == (0, 60) and told[-1] == (60, 60) and told == sorted(told)


def test_a_build_that_was_stopped_trains_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "CHUNK", 4)

    def stop(finished: int, total: int) -> None:
        if finished >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(plan(), tmp_path / "a.npz", progress=stop)
    parts = sorted((tmp_path / "a.npz.parts").glob("*.part"))
    assert len(parts) == 6 and not (tmp_path / "a.npz").exists()
    parts[0].write_bytes(parts[0].read_bytes()[:-1] + b"?")  # damaged: trained again
    told: list[int] = []
    atlas = built(plan(), tmp_path / "a.npz", progress=lambda finished, total: told.append(finished))
    assert told[:3] == [0, 19, 23]  # 15 of the first seed and 8 of the second, less 4
    assert atlas.digest == trained().digest
    assert not (tmp_path / "a.npz.parts").exists()


KILLED = """
import sys
from pathlib import Path
from tests.atlas.made_up import built, plan
from fedelect.atlas import build
build.CHUNK = 1

def wait(finished, total):
    if finished == 3:
        print(finished, flush=True)
        sys.stdin.read()

built(plan(), Path(sys.argv[1]), workers=int(sys.argv[2]), progress=wait)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_build_that_was_killed_goes_on(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "a.npz"
    command = [sys.executable, "-c", KILLED, str(out), str(workers)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"3\n"
        process.kill()
    assert len(list(out.with_name("a.npz.parts").glob("*.part"))) == 3 and not out.exists()
    monkeypatch.setattr(build_module, "CHUNK", 1)
    told: list[int] = []
    atlas = built(plan(), out, progress=lambda finished, total: told.append(finished))
    assert told[1] == 3
    assert atlas.digest == trained().digest


def test_an_atlas_that_is_there_is_returned_and_another_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    built(plan(), out)
    told: list[int] = []
    again = built(plan(), out, progress=lambda finished, total: told.append(finished))
    assert again.digest == trained().digest and not told
    with pytest.raises(RunMismatchError, match="seeds differ"):
        built(plan(seeds=3), out)


def left_behind(out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts that are still there when a build dies after it has written the atlas."""
    with monkeypatch.context() as patch:
        patch.setattr(PartStore, "discard", PartStore.close)
        built(plan(), out)
    parts = out.with_name(out.name + ".parts")
    assert out.exists() and list(parts.glob("*.part"))
    return parts


def test_parts_left_beside_a_finished_atlas_are_removed_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.npz"
    parts = left_behind(out, monkeypatch)
    monkeypatch.setattr(build_module, "versions_of", lambda engine: {"fedelect": "later"})
    built(plan(), out)
    assert not parts.exists()
    parts.mkdir()
    (parts / "lock").touch()  # the build died again, amid the removal
    assert built(plan(), out).digest == trained().digest and not parts.exists()


@pytest.mark.parametrize("of", ["another plan", "nobody knows what", "a process at work"])
def test_parts_that_may_be_wanted_stay_beside_a_finished_atlas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    out = tmp_path / "a.npz"
    parts = left_behind(out, monkeypatch)
    held = FolderLock(parts / "lock") if of == "a process at work" else None
    if of == "another plan":
        begun = msgspec.json.decode((parts / "plan.json").read_bytes())
        (parts / "plan.json").write_bytes(msgspec.json.encode(begun | {"seed": 8}))
    if of == "nobody knows what":
        (parts / "plan.json").unlink()
    there = sorted(parts.glob("*.part"))
    assert built(plan(), out).digest == trained().digest
    assert sorted(parts.glob("*.part")) == there
    if held is not None:
        held.release()
    FolderLock(parts / "lock").release()  # nobody holds it


def test_parts_of_another_atlas_are_not_mixed_in(tmp_path: Path) -> None:
    def stop(finished: int, total: int) -> None:
        if finished:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(plan(), tmp_path / "a.npz", progress=stop)
    with pytest.raises(RunMismatchError, match=r"scenario, seed differ"):
        built(plan(tiny(upload_probability=1.0), seed=8), tmp_path / "a.npz")
    (tmp_path / "a.npz.parts/plan.json").unlink()  # now nothing says of which they are
    with pytest.raises(RunMismatchError, match=r"plan\.json, which says of which, is gone; remove the folder"):
        built(plan(seed=8), tmp_path / "a.npz")


def test_what_is_not_the_builds_own_is_not_removed_with_its_parts(tmp_path: Path) -> None:
    parts = tmp_path / "a.npz.parts"
    parts.mkdir()
    (parts / "thesis.txt").write_text("mine")
    built(plan(), tmp_path / "a.npz")
    assert [path.name for path in parts.iterdir()] == ["thesis.txt"]


def test_one_process_builds_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "a.npz.parts").mkdir()
    lock = FolderLock(tmp_path / "a.npz.parts" / "lock")
    with pytest.raises(RunLockedError, match="being written"):
        built(plan(), tmp_path / "a.npz")
    lock.release()


def test_scenarios_that_have_no_atlas_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match='start: got "warm"; an atlas needs "cold"'):
        plan(tiny(start="warm"))
    with pytest.raises(ConfigurationError, match="redraw_every: got 2"):
        plan(tiny(redraw_every=2))
    wrong: list[dict[str, Any]] = [{"seeds": 0}, {"contenders": 0}, {"fresh": 3}, {"seed": -1}]
    for change in wrong:
        with pytest.raises(ConfigurationError, match=f"{next(iter(change))}: got"):
            plan(**change)


def test_too_many_cohorts_are_refused_with_their_number_and_the_time_they_would_take(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there are 15 cohorts of 2 out of 6 .*60 trainings .*minutes; raise"):
        built(plan(), tmp_path / "a.npz", limit=14)
    many = msgspec.structs.replace(tiny(), clients=40, budget=20)
    with pytest.raises(ConfigurationError, match=r"137,846,528,820 cohorts .* (days|years)"):
        built(plan(many), tmp_path / "a.npz")
    most = msgspec.structs.replace(tiny(), clients=100, budget=50)
    with pytest.raises(ConfigurationError, match=r"more than 10\^29 cohorts .* years"):
        built(plan(most), tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_opinions_of_ones_own_are_kept_as_32_bit_floats(tmp_path: Path) -> None:
    config = msgspec.structs.replace(tiny(), opinion="tests.atlas.test_build:a_third")
    atlas = built(plan(config), tmp_path / "a.npz")
    assert not atlas.counted
    assert (load_atlas(tmp_path / "a.npz").table == np.float32(1 / 3)).all()


def a_third(scores: object, labels: object) -> float:
    return 1 / 3


def test_models_on_which_nobody_has_an_opinion_are_told(tmp_path: Path) -> None:
    config = msgspec.structs.replace(tiny(), opinion="tests.worlds:silent")
    with pytest.raises(ConfigurationError, match="nobody has an opinion on 30 of 30 models"):
        built(plan(config), tmp_path / "a.npz")


def test_an_atlas_ends_in_npz(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ends in \.npz"):
        built(plan(), tmp_path / "atlas")


def broken(scores: object, labels: object) -> float:
    raise ValueError("not today")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_in_a_worker_is_raised_here(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "CHUNK", 4)
    config = msgspec.structs.replace(tiny(), opinion="tests.atlas.test_build:broken")
    with pytest.raises(FeedbackError, match="not today"):
        build_atlas(AtlasPlan(config=config), digits(), tmp_path / "a.npz", engine="plain", workers=workers)
