"""Blocks: what is played, kept, read again and refused."""

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.worlds import digits, tiny

from fedelect.atlas import shipped_atlases
from fedelect.errors import ConfigurationError, RunError, RunMismatchError
from fedelect.records import mean_opinion, read_run
from fedelect.scenario import ScenarioConfig
from fedelect.simulator import Plan, simulate, specify_selectors
from paper.blocks import read_block, write_block
from paper.catalogue import PRESETS
from paper.measurements import Context, keep_measurement, read_measurement
from paper.measurements.losses import Losses, RoundLosses
from paper.player import play_block
from paper.runner import ResultStore, ResultStoreOnFile, estimate_seconds, order_tasks, play, seconds_for_a_slot
from paper.series import RunRequest, Series, World

SMALL = World(clients=6, budget=2, upload_probability=0.8)
QUICK = Series(selector="quick-init-ucb", world=SMALL)
BP = Series(selector="bp-ucb", framework="da", world=SMALL)


def store(folder: Path, *, base: ScenarioConfig | None = None, block: int = 2) -> ResultStore:
    return ResultStore(folder=folder, base=base or tiny(), source=digits(), seed=3, block=block)


@pytest.mark.parametrize("series", [QUICK, BP, Series(selector="random", world=SMALL)])
def test_blocks_hold_the_cohorts_and_opinions_of_a_run_with_the_same_seed(series: Series, tmp_path: Path) -> None:
    request = RunRequest(series=series, trials=4, slots=6)
    loose = msgspec.structs.replace(tiny().beliefs, rounds=1, coupling_scale=1.0)  # messages that do not settle
    base = msgspec.structs.replace(tiny(), beliefs=loose)
    kept = store(tmp_path / "kept", base=base)
    for task in kept.tasks([request]):
        play_block(task, digits())
    curves = kept.curves(request)
    assert curves is not None and curves.trials.tolist() == [0, 1, 2, 3]

    plan = Plan(
        config=SMALL.config(base),
        framework=series.framework,
        selectors=specify_selectors([series.selector]),
        slots=6,
        trials=4,
        seed=3,
    )
    simulate(plan, digits(), tmp_path / "run", workers=1)
    run = read_run(tmp_path / "run")
    shares, residuals = np.zeros((6, 6)), np.zeros(6)
    for record in run.records:
        assert curves.cohorts[record.trial, record.slot - 1].tolist() == list(record.cohort)
        assert curves.opinions[record.trial, record.slot - 1] == mean_opinion(record)
        if record.beliefs is not None:
            beliefs = np.array(record.beliefs, dtype=np.float64)
            shares[record.slot - 1] += beliefs / beliefs.sum() / 4
            assert record.exchange is not None and record.exchange.residual is not None
            residuals[record.slot - 1] = max(residuals[record.slot - 1], record.exchange.residual)
    assert run.header.untrained is not None and curves.untrained == run.header.untrained[0]
    if series is BP:
        assert curves.beliefs == pytest.approx(shares, abs=1e-6)
        assert curves.residuals is not None and curves.residuals == pytest.approx(residuals, rel=1e-6)
        assert len({record.exchange.residual for record in run.records if record.exchange is not None}) > 6
    else:
        assert curves.beliefs is None


def test_a_block_that_was_stopped_goes_on_from_its_save_and_ends_the_same(tmp_path: Path) -> None:
    (task,) = store(tmp_path / "whole").tasks([RunRequest(series=BP, trials=2, slots=7)])
    play_block(task, digits())
    whole = read_block(task.path)

    (again,) = store(tmp_path / "stopped").tasks([RunRequest(series=BP, trials=2, slots=7)])
    told: list[int] = []

    def stop_after_four(played: int) -> None:
        told.append(played)
        if len(told) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_block(again, digits(), report=stop_after_four, save_every_s=0.0)
    assert again.path.with_suffix(".parts").exists() and not again.path.exists()
    told.clear()
    play_block(again, digits(), report=told.append)
    assert told[0] == 3 * 2  # the fourth slot was played, but not saved, when it was stopped
    resumed = read_block(again.path)
    for name in ("cohorts", "opinions", "belief_sums", "belief_squares", "residuals"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name))
    assert not again.path.with_suffix(".parts").exists()


def test_a_save_of_another_block_or_a_torn_one_is_not_gone_on_from(tmp_path: Path) -> None:
    (task,) = store(tmp_path).tasks([RunRequest(series=QUICK, trials=2, slots=5)])
    part = task.path.with_suffix(".parts") / "save.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"\x93torn")
    told: list[int] = []
    play_block(task, digits(), report=told.append)
    assert told[0] == 0
    whole = read_block(task.path)
    task.path.unlink()

    def stop_after_three(played: int) -> None:
        told.append(played)
        if len(told) == 4:
            raise KeyboardInterrupt

    (other,) = dataclasses.replace(store(tmp_path), seed=4).tasks([RunRequest(series=QUICK, trials=2, slots=5)])
    told.clear()
    with pytest.raises(KeyboardInterrupt):
        play_block(other, digits(), report=stop_after_three, save_every_s=0.0)
    assert part.exists()  # the save of a run with another seed, in the same place
    told.clear()
    play_block(task, digits(), report=told.append)
    assert told[0] == 0 and np.array_equal(read_block(task.path).opinions, whole.opinions)


def test_a_long_block_serves_a_short_demand_and_a_short_one_is_missing_for_a_long_demand(tmp_path: Path) -> None:
    kept = store(tmp_path)
    long, short = RunRequest(series=QUICK, trials=2, slots=6), RunRequest(series=QUICK, trials=2, slots=4)
    (task,) = kept.missing([short], also=[long])
    assert task.slots == 6  # made long enough for what will be wanted
    play_block(dataclasses.replace(task, slots=4), digits())
    assert kept.missing([short]) == [] and kept.missing([long]) == [task]
    assert kept.missing([short], also=[long]) == []  # what is wanted now is there
    assert kept.curves(long) is None
    play_block(task, digits())
    six, four = kept.curves(long), kept.curves(short)
    assert six is not None and four is not None
    assert np.array_equal(six.cohorts[:, :4], four.cohorts) and four.opinions.shape == (2, 4)


def test_trials_of_a_block_beyond_the_demand_are_left_out(tmp_path: Path) -> None:
    kept = store(tmp_path)
    request = RunRequest(series=QUICK, trials=3, slots=3)
    play(kept.missing([request]), digits(), workers=1)
    curves = kept.curves(request)
    assert curves is not None and curves.trials.tolist() == [0, 1, 2]


def test_first_blocks_come_first_so_that_series_grow_side_by_side(tmp_path: Path) -> None:
    requests = [RunRequest(series=QUICK, trials=4, slots=3), RunRequest(series=BP, trials=4, slots=3)]
    order = [(task.series, task.first_trial) for task in store(tmp_path).tasks(requests)]
    assert order == [(QUICK, 0), (BP, 0), (QUICK, 2), (BP, 2)]


def test_results_of_another_scenario_or_seed_are_refused_by_name(tmp_path: Path) -> None:
    kept = store(tmp_path)
    request = RunRequest(series=QUICK, trials=2, slots=3)
    play(kept.missing([request]), digits(), workers=1)
    changed = msgspec.structs.replace(tiny(), rounds_per_slot=3)
    with pytest.raises(RunMismatchError, match="another scenario"):
        store(tmp_path, base=changed).curves(request)
    with pytest.raises(RunMismatchError, match="another seed"):
        dataclasses.replace(kept, seed=4).curves(request)


@pytest.mark.parametrize("field", ["selector", "framework", "data_digest"])
def test_results_of_something_else_are_refused_by_name(field: str, tmp_path: Path) -> None:
    kept = store(tmp_path)
    request = RunRequest(series=QUICK, trials=2, slots=3)
    (task,) = kept.missing([request])
    play([task], digits(), workers=1)
    block = read_block(task.path)
    other = {"selector": "random", "framework": "da", "data_digest": "0" * 32}[field]
    write_block(task.path, dataclasses.replace(block, key=msgspec.structs.replace(block.key, **{field: other})))
    with pytest.raises(RunMismatchError, match=f"another {field}"):
        kept.curves(request)


def test_a_block_in_the_place_of_another_or_cut_short_is_refused(tmp_path: Path) -> None:
    kept = store(tmp_path)
    request = RunRequest(series=QUICK, trials=4, slots=3)
    first, second = kept.missing([request])
    play([first], digits(), workers=1)
    second.path.write_bytes(first.path.read_bytes())
    with pytest.raises(RunMismatchError, match=r"trials-002-003.* 2 trials from 0 on"):
        kept.curves(request)
    second.path.unlink()
    block = read_block(first.path)
    write_block(first.path, dataclasses.replace(block, cohorts=block.cohorts[:1], opinions=block.opinions[:1]))
    with pytest.raises(RunMismatchError, match="1 trials from 0 on"):
        kept.missing([request])


def test_a_damaged_or_foreign_file_is_refused_with_its_name(tmp_path: Path) -> None:
    kept = store(tmp_path)
    request = RunRequest(series=QUICK, trials=2, slots=3)
    (task,) = kept.missing([request])
    play([task], digits(), workers=1)
    content = task.path.read_bytes()
    block = read_block(task.path)
    for broken in (b"", content[:-40], b"not a block"):
        task.path.write_bytes(broken)
        with pytest.raises(RunError, match=r"trials-000-001.*delete the file"):
            kept.curves(request)
    write_block(task.path, dataclasses.replace(block, opinions=block.opinions + 1.0))
    with pytest.raises(RunError, match="out of range"):
        kept.curves(request)


def test_blocks_of_different_engines_are_not_mixed(tmp_path: Path) -> None:
    kept = store(tmp_path)
    request = RunRequest(series=QUICK, trials=4, slots=3)
    tasks = kept.missing([request])
    play(tasks, digits(), workers=1)
    block = read_block(tasks[1].path)
    write_block(tasks[1].path, dataclasses.replace(block, key=msgspec.structs.replace(block.key, engine="plain")))
    with pytest.raises(RunMismatchError, match="different engines"):
        kept.curves(request)


def test_a_warm_start_cannot_be_kept() -> None:
    with pytest.raises(ConfigurationError, match="cold start"):
        SMALL.config(tiny(start="warm"))


def test_the_estimate_grows_with_cohort_and_arrivals_and_shrinks_with_workers(tmp_path: Path) -> None:
    kept = store(tmp_path)
    slot_s = seconds_for_a_slot(kept)
    assert 0.0 < slot_s < 10.0
    worlds = (
        World(clients=6, budget=2),
        World(clients=6, budget=4),
        World(clients=6, budget=2, upload_probability=0.5),
    )
    plain, double, half = (
        estimate_seconds(
            kept.tasks([RunRequest(series=Series(selector="random", world=world), trials=4, slots=10)]),
            1.0,
            base=tiny(),
            workers=1,
        )
        for world in worlds
    )
    assert (plain, double, half) == (40.0, 80.0, 20.0)
    tasks = kept.tasks([RunRequest(series=QUICK, trials=4, slots=10)])
    assert estimate_seconds(tasks, 1.0, base=tiny(), workers=2) == pytest.approx(16.0)


def test_the_experiments_come_one_after_the_other_each_with_first_blocks_first(tmp_path: Path) -> None:
    quick, bp = RunRequest(series=QUICK, trials=4, slots=3), RunRequest(series=BP, trials=4, slots=3)
    tasks = order_tasks(store(tmp_path).tasks([quick, bp]), [[bp], [quick, bp]])
    assert [(task.series, task.first_trial) for task in tasks] == [(BP, 0), (BP, 2), (QUICK, 0), (QUICK, 2)]


def test_a_measurement_of_another_size_seed_or_scenario_is_refused(tmp_path: Path) -> None:
    kept = store(tmp_path)
    value = Losses(losses={2: [RoundLosses(objective=[1.0, 0.5], selected=[0.9, 0.4])]})
    keep_measurement(kept, PRESETS["quick"], "losses", value)
    assert read_measurement(kept, PRESETS["quick"], "losses", Losses) == value
    with pytest.raises(RunMismatchError, match=r"losses\.json was made with another trials"):
        read_measurement(kept, PRESETS["paper"], "losses", Losses)
    with pytest.raises(RunMismatchError, match="another seed"):
        read_measurement(dataclasses.replace(kept, seed=4), PRESETS["quick"], "losses", Losses)
    on_file = ResultStoreOnFile(folder=tmp_path, base=tiny(), known_digest="0" * 32, seed=3)
    with pytest.raises(RunMismatchError, match="another data_digest"):
        read_measurement(on_file, PRESETS["quick"], "losses", Losses)
    changed = store(tmp_path, base=msgspec.structs.replace(tiny(), rounds_per_slot=3))
    with pytest.raises(RunMismatchError, match="another scenario"):
        read_measurement(changed, PRESETS["quick"], "losses", Losses)


def test_an_atlas_of_another_scenario_is_refused(tmp_path: Path) -> None:
    context = Context(store=store(tmp_path), preset=PRESETS["quick"], atlas=shipped_atlases()["paper"])
    with pytest.raises(ConfigurationError, match="an atlas of another scenario"):
        context.atlas_path()
