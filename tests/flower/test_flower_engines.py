"""Flower's own engines: the simulation engine, and a deployment with TLS in which processes are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.flower.engine_kit import EXAMPLE, ROOT, by_slot, loopback, wait_until

from fedelect.datasets import load_dataset
from fedelect.records import read_run, to_array
from fedelect.rules import cold_start_groups
from fedelect.simulator import Plan, simulate, specify_selectors

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_process_left_behind")]


def finished_slots(folder: Path) -> int:
    return len(read_run(folder).records) if (folder / "run.json").exists() else 0


def run_simulated(module: str, folder: Path, home: Path) -> None:
    """Run `main(folder)` of a module of these tests, which plays an app on the simulation engine."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    code = f"from tests.flower.{module} import main; main({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=home.parent, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_on_the_simulation_engine_nodes_report_properties_and_more_of_them_train_later(tmp_path: Path) -> None:
    from tests.flower.chosen_by_region import CLIENTS, budget

    run_simulated("chosen_by_region", tmp_path / "flower", tmp_path / "home")
    rows = by_slot(tmp_path / "flower")
    assert [len(row.cohort) for row in rows] == [budget(row.slot) for row in rows] == [1, 1, 2, 2]
    for row in rows:
        assert row.available == CLIENTS // 2 and all(client % 2 for client in row.cohort)
        assert row.opinions is not None and row.opinions.count(0.5) == CLIENTS


def test_flowers_simulation_engine_chooses_the_cohorts_that_our_simulator_does(tmp_path: Path) -> None:
    from tests.flower.same_streams import CONFIG, EXPLORATION, SEED, SLOTS

    run_simulated("same_streams", tmp_path / "flower", tmp_path / "home")
    plan = Plan(
        config=CONFIG,
        framework="fa",
        selectors=specify_selectors([f"quick-init-ucb:exploration={EXPLORATION}"]),
        slots=SLOTS,
        trials=1,
        seed=SEED,
        engine="plain",
    )
    simulate(plan, load_dataset("digits"), tmp_path / "ours", workers=1)
    ours, theirs = by_slot(tmp_path / "ours"), by_slot(tmp_path / "flower")
    assert SLOTS - len(cold_start_groups(CONFIG.clients, CONFIG.budget, 0)) >= 12
    assert [row.cohort for row in theirs] == [row.cohort for row in ours]
    assert len({row.cohort for row in ours[4:]}) > 5  # it does choose
    for one, other in zip(ours, theirs, strict=True):
        assert one.opinions is not None and other.opinions is not None
        assert np.abs(to_array(one.opinions) - to_array(other.opinions)).max() <= 1e-6
    assert read_run(tmp_path / "flower").header.client_names == tuple(map(str, range(20)))


def test_the_example_runs_on_the_simulation_engine_and_is_shown_as_any_run(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(EXAMPLE / "simulate.py"),
        "--out",
        str(tmp_path / "run"),
        "slots=6",
        "rounds-per-slot=2",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "finished:completed" in done.stdout and "slot 6 of 6: elected" in done.stdout
    run = read_run(tmp_path / "run")
    assert run.complete and (run.header.clients, run.header.budget) == (20, 5)
    for words in (("show",), ("report",)):
        shown = subprocess.run(
            [sys.executable, "-m", "fedelect", *words, tmp_path / "run"], capture_output=True, text=True, timeout=120
        )
        assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "run" / "report.html").exists()


def test_a_deployment_survives_killed_nodes_and_a_killed_server(tmp_path: Path) -> None:
    """TLS, node authentication, four SuperNodes: one killed in mid-slot, one restarted, then the ServerApp killed."""
    out, slots = tmp_path / "run", 4
    settings: dict[str, object] = {
        "clients": 4,
        "budget": 2,
        "rounds-per-slot": 1,
        "slots": slots,
        "timeout": 240.0,
        "wait": 240.0,
        "pause": 3.0,
        "run-folder": str(out),
    }
    with loopback.Loopback(tmp_path / "flower", simulation=False, tls=True) as link:
        for number in range(4):
            link.start_node(number, 4)
        first = link.run(EXAMPLE, settings)
        wait_until(lambda: finished_slots(out) >= 1, deadline_s=400)
        # In mid-slot 2 a member of its cohort, the second cold-start group, dies for good; a client of the first
        # group is restarted.
        restarted = by_slot(out)[0].cohort[0]
        members = {number: node for number, node in link.nodes.items() if number not in by_slot(out)[0].cohort}
        victim = member_at_work(members, deadline_s=120)
        link.kill_node(victim)
        link.stop_node(restarted)
        link.start_node(restarted, 4)
        wait_until(lambda: finished_slots(out) >= 2, deadline_s=400)
        kept = (out / "slots.jsonl").read_bytes()
        assert link.superlink is not None
        (server,) = running("flwr-serverapp", link.superlink.pid)
        os.kill(server, signal.SIGKILL)
        second = link.run(EXAMPLE, settings | {"wait": 10.0})  # one client will not come
        assert second != first
        assert link.wait(second, deadline_s=600) == "finished:completed", link.log(second)[-3000:]
    run = read_run(out)
    rows = by_slot(out)
    assert run.complete and (out / "slots.jsonl").read_bytes().startswith(kept)
    assert run.header.client_names == tuple(f"client-{number}" for number in range(4))
    struck = rows[1]
    assert struck.status == "done" and victim in struck.cohort
    assert struck.arrivals[struck.cohort.index(victim)] == 0
    assert all(row.opinions is not None and row.opinions[victim] is None for row in rows[1:])
    assert any(row.opinions is not None and row.opinions[restarted] is not None for row in rows[2:])  # back by the end
    assert all(victim not in row.cohort for row in rows[2:])


def running(command: str, below: int) -> list[int]:
    return [pid for pid in loopback.descendants(below) if command in loopback.command_of(pid)]


def member_at_work(nodes: dict[int, subprocess.Popen[bytes]], *, deadline_s: float) -> int:
    """The number of a node that is training: its client process is running."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [number for number, node in nodes.items() if running("flwr-clientapp", node.pid)]
        return bool(found)

    wait_until(look, deadline_s=deadline_s)
    return found[0]
