"""A run spread over processes or a Ray cluster is the run of one process, whatever is killed on the way."""

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.worlds import digits, plan, tiny

from fedelect._processes import Failed
from fedelect.errors import ConfigurationError, MissingExtraError, RunError
from fedelect.federation import PlainEngine, versions_of
from fedelect.loop import FrameworkName
from fedelect.records import SlotRecord, read_run, sorted_records
from fedelect.selectors import RandomCohort, SelectorSpec
from fedelect.simulator import Plan, executors, ray_cluster
from fedelect.simulator import simulate as simulate_into
from fedelect.simulator.run import deal
from fedelect.simulator.shard import Shard, WorkerCheck

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0  # against a test that hangs; nothing waits that long
WORKER = "fedelect._processes"
RAY_PROCESSES = ("ray::", "raylet", "gcs_server")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")


def processes() -> dict[int, tuple[int, str]]:
    """By number of each living process: its parent, and its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if state not in "ZX":
                found[int(entry.name)] = (int(parent), command)
    return found


def descendants(ancestor: int, *words: str) -> set[int]:
    """The living descendants of a process whose command lines hold one of the words."""
    living = processes()
    family, grown = {ancestor}, True
    while grown:
        more = {number for number, (parent, _) in living.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return {number for number in family - {ancestor} if any(word in living[number][1] for word in words)}


def wait_until(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, f"waited too long for: {what}"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _nobody_is_left_behind() -> Iterator[None]:
    yield
    wait_until(lambda: not descendants(os.getpid(), WORKER, *RAY_PROCESSES), "the end of all workers")


@pytest.fixture(autouse=True)
def _one_slot_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come after every slot, so that there is a middle of a run even where slots take milliseconds."""
    monkeypatch.setattr(executors, "SLICE_S", 0.0)
    monkeypatch.setattr(ray_cluster, "SLICE_S", 0.0)


def work(framework: FrameworkName = "fa", *, slots: int = 8, trials: int = 3, opinion: str = "accuracy") -> Plan:
    names = {"fa": ("quick-init-ucb", "random"), "da": ("bp-ucb", "peers:loss=0.1")}[framework]
    config = msgspec.structs.replace(tiny(start="warm", redraw_every=2), opinion=opinion)
    return plan(*names, framework=framework, slots=slots, trials=trials, config=config)


def records(folder: Path) -> list[SlotRecord]:
    run = read_run(folder)
    assert run.complete
    return sorted_records(run)


def simulate(of: Plan, folder: Path, **options: Any) -> None:
    """With the plain engine, which is loaded soonest, unless told otherwise."""
    engine = options.pop("engine", "plain")
    if isinstance(engine, str):
        of, engine = dataclasses.replace(of, engine=engine), None
    simulate_into(of, digits(), folder, engine=engine, **options)


def in_one_process(of: Plan, folder: Path, **options: Any) -> list[SlotRecord]:
    simulate(of, folder, workers=1, **options)
    return records(folder)


@pytest.mark.parametrize("framework", ["fa", "da"])
def test_two_workers_record_what_one_process_records(tmp_path: Path, framework: FrameworkName) -> None:
    seen: set[int] = set()
    told: list[tuple[int, int]] = []

    def progress(finished: int, total: int) -> None:
        seen.update(descendants(os.getpid(), WORKER))
        told.append((finished, total))

    simulate(work(framework), tmp_path / "two", workers=2, progress=progress, engine=None)
    assert len(seen) == 2
    assert told[0] == (0, 48) and told[-1] == (48, 48) and told == sorted(told)
    assert records(tmp_path / "two") == in_one_process(work(framework), tmp_path / "one", engine=None)
    told.clear()
    simulate(work(framework), tmp_path / "two", workers=2, progress=progress, engine=None)
    assert told == [(48, 48)]


class Stop(Exception):
    pass


def stop_at(share: float) -> Callable[[int, int], None]:
    def progress(finished: int, total: int) -> None:
        if finished >= share * total:
            raise Stop

    return progress


@pytest.mark.parametrize("checkpoint_every_s", [0.0, 1e9])
def test_a_run_is_resumed_with_any_number_of_workers(tmp_path: Path, checkpoint_every_s: float) -> None:
    often: dict[str, Any] = {"checkpoint_every_s": checkpoint_every_s}
    for count, share in ((3, 0.2), (2, 0.4), (1, 0.6)):
        with pytest.raises(Stop):
            simulate(work(), tmp_path / "run", workers=count, progress=stop_at(share), **often)
        assert not read_run(tmp_path / "run").complete
    simulate(work(), tmp_path / "run", workers=2, **often)
    assert records(tmp_path / "run") == in_one_process(work(), tmp_path / "one")


def test_trials_that_are_behind_catch_up_within_a_shard() -> None:
    of = work(slots=6, trials=2)

    def shard(trials: list[int], saves: dict[int, Any]) -> Shard:
        return Shard(of, digits(), trials, saves, engine=PlainEngine())

    ahead = shard([1], {})
    played = [record for _ in range(4) for record in ahead.advance().records]
    both = shard([0, 1], {save.trial: save for save in ahead.save()})
    slots = []
    while not both.finished:
        answer = both.advance()
        slots.append(sorted({(record.trial, record.slot) for record in answer.records}))
        played += answer.records
    assert slots == [[(0, 1)], [(0, 2)], [(0, 3)], [(0, 4)], [(0, 5), (1, 5)], [(0, 6), (1, 6)]]
    undisturbed = shard([0, 1], {}).advance(at_least_s=PATIENCE_S)
    assert undisturbed.finished and undisturbed.saves == both.save()
    key = lambda record: (record.selector, record.trial, record.slot)  # noqa: E731
    assert sorted(played, key=key) == sorted(undisturbed.records, key=key)


@pytest.mark.parametrize("checkpoint_every_s", [0.0, 1e9])
def test_the_shard_of_a_killed_worker_is_run_again(tmp_path: Path, checkpoint_every_s: float) -> None:
    seen: set[int] = set()
    killed: set[int] = set()
    told: list[int] = []

    def progress(finished: int, total: int) -> None:
        told.append(finished)
        now = descendants(os.getpid(), WORKER)
        seen.update(now)
        if not killed and finished >= total / 4:
            killed.add(max(now))
            os.kill(max(now), signal.SIGKILL)

    options: dict[str, Any] = {"workers": 2, "checkpoint_every_s": checkpoint_every_s}
    simulate(work(slots=20), tmp_path / "killed", progress=progress, **options)
    assert len(seen) == 3 and len(killed) == 1 and told == sorted(told)
    assert records(tmp_path / "killed") == in_one_process(work(slots=20), tmp_path / "one")


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a module of the user's own that can be imported; returns its name."""
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))

    def write(text: str) -> str:
        (tmp_path / "modules").mkdir(exist_ok=True)
        name = f"own_{tmp_path.name.translate(str.maketrans('-[].', '____'))}"
        (tmp_path / "modules" / f"{name}.py").write_text(text)
        return name

    return write


SELECTOR = """
from fedelect.errors import FeedbackError
from fedelect.selectors import AbstractSelector

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__("odd")

def odd(self):
    raise Odd(1, 2)

class Mine(AbstractSelector):
    def _choose(self, slot, available):
        {what}
        return (1, 2), ()
"""


@pytest.mark.parametrize(
    ("what", "kind", "says"),
    [
        ('raise FeedbackError("it went wrong")', "FeedbackError", "it went wrong"),
        ("1 / 0", "SelectorError", "ZeroDivisionError: division by zero"),
        ("type(self).state = odd", "RunError", "Odd in a worker: odd; run with one worker to see where"),
    ],
)
def test_an_exception_in_a_worker_is_the_users(
    tmp_path: Path, own_module: Callable[[str], str], what: str, kind: str, says: str
) -> None:
    module = own_module(SELECTOR.format(what=what))
    with pytest.raises(Exception) as caught:
        simulate(plan(f"{module}:Mine"), tmp_path / "run", workers=2)
    assert type(caught.value).__name__ == kind and says in str(caught.value)
    assert f"{module}.py" in "".join(caught.value.__notes__)


OPINION = """
import os, signal, sys, threading
import numpy as np

def opinion(scores, labels):
    if np.any(scores) and "pytest" not in sys.modules:  # a trained model, in a worker
        {what}
    return 0.5
"""


@pytest.mark.integration
def test_a_worker_that_dies_again_and_again_ends_the_run(tmp_path: Path, own_module: Callable[[str], str]) -> None:
    module = own_module(OPINION.format(what="os.kill(os.getpid(), signal.SIGKILL)"))
    with pytest.raises(RunError, match=r"lost 4 times in a row .* killed by signal 9 .* give the same command again"):
        simulate(work(trials=2, opinion=f"{module}:opinion"), tmp_path / "run", workers=2)


def test_ones_own_selector_works_in_a_worker_and_may_print(tmp_path: Path, own_module: Callable[[str], str]) -> None:
    module = own_module(SELECTOR.format(what="print('choosing', flush=True)"))
    simulate(plan(f"{module}:Mine", slots=2), tmp_path / "run", workers=2)
    assert {record.cohort for record in records(tmp_path / "run")} == {(1, 2)}


CHILD = """
import sys, time
from pathlib import Path
from fedelect.simulator import executors
from tests.simulator.test_workers import simulate, work
folder, count, opinion, until = sys.argv[1:]
executors.SLICE_S = 0.0
plan = work(slots=30, opinion=opinion)

def progress(finished, total):
    if finished >= int(until):
        print("here", flush=True)
        sys.stdin.read()  # until it is killed

simulate(plan, Path(folder), checkpoint_every_s=0.0, workers=int(count), progress=progress)
"""


def in_a_parent(
    folder: Path, count: int, opinion: str = "accuracy", *, until: int = 10**9
) -> "subprocess.Popen[bytes]":
    """A parent that says so and waits when this many slots are on record."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in (str(ROOT), *sys.path) if path)}
    command = [sys.executable, "-c", CHILD, str(folder), str(count), opinion, str(until)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def kill_parent(child: "subprocess.Popen[bytes]") -> None:
    """kill -9 a parent of two workers, which must end."""
    orphans = descendants(child.pid, WORKER)
    child.kill()
    assert child.wait() == -signal.SIGKILL and len(orphans) == 2
    wait_until(lambda: not orphans & set(processes()), "the end of orphaned workers")


@pytest.mark.integration
def test_kill_9_of_the_parent_ends_its_workers_and_the_run_goes_on(tmp_path: Path) -> None:
    with in_a_parent(tmp_path / "run", 2, until=20) as child:
        assert child.stdout is not None and child.stdout.readline() == b"here\n"
        kill_parent(child)
    recorded = len(read_run(tmp_path / "run").records)
    assert 20 <= recorded < 180
    with in_a_parent(tmp_path / "run", 3) as child:
        assert child.wait() == 0
    assert records(tmp_path / "run") == in_one_process(work(slots=30), tmp_path / "one")


@pytest.mark.integration
def test_orphaned_workers_end_even_in_the_middle_of_a_slot(tmp_path: Path, own_module: Callable[[str], str]) -> None:
    reached = tmp_path / "reached"
    module = own_module(OPINION.format(what=f"open({str(reached)!r}, 'w').close(); threading.Event().wait()"))
    with in_a_parent(tmp_path / "run", 2, f"{module}:opinion") as child:
        wait_until(reached.exists, "a worker in the middle of a slot")
        kill_parent(child)


@pytest.mark.integration
def test_ctrl_c_ends_the_workers_and_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedelect", "run", "digits", "--trials", "2", "--workers", "2"]
    command += ["--slots", "300000"]  # more than can be played before Ctrl-C comes
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.Popen(
        [*command, "--out", "run"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    slots = tmp_path / "run" / "slots.jsonl"
    wait_until(lambda: child.poll() is not None or (slots.exists() and slots.stat().st_size > 0), "records")
    family = descendants(child.pid, WORKER)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, err) == (130, b"") and b"give the same command again" in out
    assert len(family) == 2 and not family & set(processes())
    assert not read_run(tmp_path / "run").complete


def test_trials_are_dealt_evenly() -> None:
    for places in range(1, 9):
        dealt = deal(range(7), places)
        assert [trial for shard in dealt for trial in shard] == list(range(7))
        assert {len(shard) for shard in dealt} <= {7 // min(places, 7), -(-7 // min(places, 7))}


def test_workers_that_cannot_be_had_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="workers must be at least 1, got 0"):
        simulate(work(), tmp_path / "run", workers=0)
    with pytest.raises(ConfigurationError, match="give the engine's name"):
        simulate(work(), tmp_path / "run", workers=2, engine=PlainEngine())

    class Mine(RandomCohort):  # type: ignore[misc]
        """A class that other processes cannot import."""

    specs = (SelectorSpec.of(Mine),)
    by_hand = Plan(config=tiny(), framework="fa", selectors=specs, slots=2, trials=2, seed=1)
    with pytest.raises(ConfigurationError, match=r"workers cannot import 'Mine'.*put it into a module"):
        simulate(by_hand, tmp_path / "run", workers=2)
    assert not (tmp_path / "run").exists()
    simulate(by_hand, tmp_path / "run")
    assert len(records(tmp_path / "run")) == 4


def test_a_worker_with_other_versions_or_another_engine_is_refused() -> None:
    for check, says in (
        (WorkerCheck("plain", {"fedelect": "0.0.0"}, ()), "other versions .* install the same versions"),
        (WorkerCheck("other", versions_of("other"), ()), "install the same extras"),
    ):
        plan = dataclasses.replace(work(), engine="plain")
        answer = pickle.loads(pickle.dumps(Shard(plan, digits(), [0], {}, check=check))).play(0.0, False)
        assert isinstance(answer, Failed)
        with pytest.raises(ConfigurationError, match=says):
            raise answer.error


def test_a_missing_extra_survives_the_way_from_a_worker() -> None:
    error = MissingExtraError("--ray", "ray")
    error.add_note("there")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.__notes__ == ["there"]


def test_without_ray_the_install_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"--ray needs .* pip install 'fedelect\[ray\]'"):
        simulate(work(), tmp_path / "run", ray_address="local")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path, address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(ConfigurationError, match=f"no Ray cluster to use at '{address}': .* give HOST:PORT"):
        simulate(work(), tmp_path / "run", ray_address=address)


@pytest.mark.integration  # a Ray takes 20 s to start and stop on a busy machine
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # some versions of Ray leave files and processes unclosed
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.xdist_group("ray")
def test_a_local_ray_with_a_killed_actor_records_what_one_process_records(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    seen: set[int] = set()
    killed: set[int] = set()

    def progress(finished: int, total: int) -> None:
        if finished and not killed:
            wait_until(lambda: len(descendants(os.getpid(), "ray::RayShard")) == 2, "both actors")
        now = descendants(os.getpid(), "ray::RayShard")
        seen.update(now)
        if not killed and len(now) == 2 and finished >= total / 4:
            killed.add(max(now))
            os.kill(max(now), signal.SIGKILL)

    options: dict[str, Any] = {"ray_address": "local", "workers": 2, "checkpoint_every_s": 0.0}
    simulate(work(slots=40), tmp_path / "ray", progress=progress, **options)
    assert len(killed) == 1 and len(seen) == 3
    assert records(tmp_path / "ray") == in_one_process(work(slots=40), tmp_path / "one")
