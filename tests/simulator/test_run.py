"""A simulated run cannot be lost, and does not depend on how often it was interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.worlds import digits, plan, tiny

from fedelect.errors import ConfigurationError, RunMismatchError
from fedelect.records import RunRecords, library_versions, read_run, sorted_records
from fedelect.scenario import Dataset
from fedelect.simulator import Plan
from fedelect.simulator import simulate as simulate_into

ROOT = Path(__file__).parents[2]


def simulate(work: Plan, dataset: Dataset, folder: Path, **options: Any) -> RunRecords:
    simulate_into(work, dataset, folder, **{"workers": 1} | options)
    return read_run(folder)


def test_every_slot_of_every_trial_of_every_selector_is_recorded(tmp_path: Path) -> None:
    run = simulate(plan("quick-init-ucb", "subset-ucb", "random"), digits(), tmp_path / "run", command="fedelect ...")
    assert run.complete and len(run.records) == 3 * 2 * 8
    assert run.header.groups == {"iid": (0, 1), "skewed": (2, 3, 4, 5)}
    assert run.header.untrained is not None and len(run.header.untrained) == 2
    assert run.header.provenance.command == "fedelect ..."
    assert read_run(tmp_path / "run") == run


def test_one_seed_fixes_everything_and_another_changes_it(tmp_path: Path) -> None:
    one, two, other = (
        simulate(plan(seed=seed), digits(), tmp_path / name) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert sorted_records(one) == sorted_records(two)
    assert sorted_records(one) != sorted_records(other)


def test_a_trial_is_the_same_whatever_else_is_simulated(tmp_path: Path) -> None:
    many = simulate(plan("quick-init-ucb", "random", trials=3), digits(), tmp_path / "many")
    few = simulate(plan("quick-init-ucb", trials=1), digits(), tmp_path / "few")
    kept = [r for r in sorted_records(many) if r.selector == "quick-init-ucb" and r.trial == 0]
    assert kept == sorted_records(few)


def test_data_is_redrawn_every_so_many_trials(tmp_path: Path) -> None:
    run = simulate(plan("fixed:cohort=0,1", trials=4, slots=1, config=tiny(redraw_every=2)), digits(), tmp_path / "run")
    untrained = run.header.untrained
    assert untrained is not None
    assert untrained[0] == untrained[1] and untrained[2] == untrained[3] and untrained[0] != untrained[2]


class Stop(Exception):
    pass


@pytest.mark.parametrize("start", ["cold", "warm"])
@pytest.mark.parametrize("checkpoint_every_s", [0.0, 1e9])
def test_an_interrupted_run_ends_with_the_same_records(tmp_path: Path, start: str, checkpoint_every_s: float) -> None:
    work = plan("quick-init-ucb", "random", config=tiny(start=start))
    undisturbed = simulate(work, digits(), tmp_path / "undisturbed")

    def stop_after(slots: int) -> None:
        def progress(finished: int, total: int) -> None:
            if finished >= slots * 4:
                raise Stop

        with pytest.raises(Stop):
            simulate(work, digits(), tmp_path / "run", progress=progress, checkpoint_every_s=checkpoint_every_s)

    stop_after(3)
    stop_after(5)
    resumed = simulate(work, digits(), tmp_path / "run", checkpoint_every_s=checkpoint_every_s)
    assert sorted_records(resumed) == sorted_records(undisturbed)


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    simulate(plan(), digits(), tmp_path / "run")
    before = (tmp_path / "run" / "slots.jsonl").read_bytes()
    told: list[tuple[int, int]] = []
    simulate(plan(), digits(), tmp_path / "run", progress=lambda finished, total: told.append((finished, total)))
    assert told == [(32, 32)]
    assert (tmp_path / "run" / "slots.jsonl").read_bytes() == before


def test_another_configuration_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    simulate(plan(), digits(), tmp_path / "run")
    with pytest.raises(RunMismatchError, match="seed"):
        simulate(plan(seed=2), digits(), tmp_path / "run")


def test_other_data_under_the_same_name_is_refused(tmp_path: Path) -> None:
    simulate(plan(), digits(), tmp_path / "run")
    data = digits()
    other = Dataset(data.inputs[::-1], data.labels[::-1], data.test_inputs, data.test_labels, data.name)
    with pytest.raises(RunMismatchError, match="data_digest"):
        simulate(plan(), other, tmp_path / "run")


def test_a_run_begun_with_other_versions_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(finished: int, total: int) -> None:
        if finished:
            raise Stop

    with pytest.raises(Stop):
        simulate(plan(), digits(), tmp_path / "run", progress=stop)
    monkeypatch.setattr("fedelect.records.provenance.__version__", "99.0")
    with pytest.raises(RunMismatchError, match=r"fedelect 0\.\d\.\d -> 99\.0"):
        simulate(plan(), digits(), tmp_path / "run")
    monkeypatch.undo()
    monkeypatch.setattr("fedelect.simulator.run.versions_of", lambda _: library_versions("torch"))
    with pytest.raises(RunMismatchError, match=r"numba .* -> missing, torch missing -> "):
        simulate(plan(), digits(), tmp_path / "run")


def test_the_header_holds_the_parameters_in_force(tmp_path: Path) -> None:
    run = simulate(plan("quick-init-ucb", "random", slots=1), digits(), tmp_path / "run")
    assert [entry.parameters for entry in run.header.selectors] == [{"exploration": 0.01}, {"cohorts": None}]


CHILD = """
import sys
from pathlib import Path
from fedelect.simulator import simulate
from tests.worlds import digits, plan, tiny
folder, framework, share = sys.argv[1:]
names = {"fa": ("quick-init-ucb", "subset-ucb", "random"), "da": ("bp-ucb", "peers:loss=0.1", "random")}[framework]
slots = {"fa": 30, "da": 12}[framework]
work = plan(*names, framework=framework, slots=slots, config=tiny(start="warm"))

def progress(finished, total):
    if finished >= float(share) * total:
        print("here", flush=True)
        sys.stdin.read()  # until it is killed

simulate(work, digits(), Path(folder), checkpoint_every_s=0.0, workers=1, progress=progress)
"""


def in_another_process(folder: Path, framework: str, *, until: float = 2.0) -> subprocess.Popen[bytes]:
    """A run that says so and waits when this share of it is on record; above 1, it goes on to the end."""
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, str(folder), framework, str(until)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.integration  # six processes, of which four are killed
@pytest.mark.parametrize("framework", ["fa", "da"])
def test_a_run_killed_again_and_again_ends_with_the_records_of_an_undisturbed_one(
    tmp_path: Path, framework: str
) -> None:
    with in_another_process(tmp_path / "undisturbed", framework) as child:
        assert child.wait() == 0
    for share in (0.1, 0.35, 0.7, 0.9):
        with in_another_process(tmp_path / "killed", framework, until=share) as child:
            assert child.stdout is not None and child.stdout.readline() == b"here\n"
            child.kill()
            assert child.wait() == -signal.SIGKILL
        slots = tmp_path / "killed/slots.jsonl"
        slots.write_bytes(slots.read_bytes()[:-7])  # as if in the middle of a line
    with in_another_process(tmp_path / "killed", framework) as child:
        assert child.wait() == 0
    assert records(tmp_path / "killed") == records(tmp_path / "undisturbed")


def records(folder: Path) -> list[object]:
    run: RunRecords = read_run(folder)
    assert run.complete
    return list(sorted_records(run))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"slots": 0}, "slots must be at least 1"),
        ({"trials": 0}, "trials must be at least 1"),
    ],
)
def test_an_impossible_plan_is_refused(change: dict[str, int], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        plan(**change)  # type: ignore[arg-type]


def test_a_selector_named_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'random' is named twice"):
        plan("random", "random")


def test_a_plan_without_selectors_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no selector"):
        Plan(config=tiny(), framework="fa", selectors=(), slots=1, trials=1, seed=1)


@pytest.mark.parametrize("name", ["no_such_module:f", "tests.worlds:nothing", "tests.worlds:not_a_function"])
def test_an_opinion_that_cannot_be_had_is_named(tmp_path: Path, name: str) -> None:
    config = msgspec.structs.replace(tiny(), opinion=name)
    with pytest.raises(ConfigurationError, match="opinion"):
        simulate(plan(config=config), digits(), tmp_path / "run")


def test_ones_own_opinion_function_is_used(tmp_path: Path) -> None:
    config = msgspec.structs.replace(tiny(), opinion="tests.worlds:half")
    run = simulate(plan(config=config, slots=2), digits(), tmp_path / "run")
    assert {record.reward for record in run.records} == {0.5}
