"""The example with real peers: SuperLink, six SuperNodes and six peers as processes, TLS everywhere, end to end."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from flwr.app import ConfigRecord
from tests.flower.engine_kit import EXAMPLE, by_slot, loopback
from tests.flower.server_view import Fields, Received, complaints, stored_leaks
from tests.leaks import peer_secrets

from fedelect.datasets import load_dataset
from fedelect.runtime.identity import member_names
from fedelect.runtime.roster import read_roster
from fedelect.scenario import parse_scenario
from fedelect.simulator import Plan, simulate, specify_selectors

DEADLINE_S = 2400.0  # some minutes on a machine that has nothing else to do
SLOTS, SEED = 4, 3  # three slots of cold start, and one by the value of sets
TRAINING: Fields = {"arrays": {"model": "float64 [65, 10] numpy.ndarray"}, "metrics": {"num-examples": int}}
pytestmark = pytest.mark.integration


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    for command in ("openssl", "ssh-keygen"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed; the example makes its keys with it")
    pytest.importorskip("cryptography", reason="the extra `peer` is not installed")
    folder = tmp_path / "out"
    yield folder
    until = time.monotonic() + 240
    while left := processes_of(folder):
        assert time.monotonic() < until, f"left behind: {left}"
        time.sleep(0.5)


def processes_of(folder: Path) -> list[str]:
    """The processes that belong to the example: by Flower's home, or a peer's folder on their command line."""
    flower = [loopback.command_of(pid) for pid in loopback.family(folder / "flower" / "home")]
    everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    peers = [loopback.command_of(pid) for pid in everybody if pid != os.getpid()]
    return [*filter(None, flower), *(command for command in peers if str(folder / "fed") in command)]


def test_the_example_elects_as_the_simulator_does_and_the_server_sees_certificates_only(
    out: Path, tmp_path: Path
) -> None:
    command = [sys.executable, str(EXAMPLE / "elect.py"), "--out", str(out), "--witness"]
    options = ["--slots", str(SLOTS), "--seed", str(SEED)]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "finished:completed" in done.stdout and str(out / "report.html") in done.stdout
    assert (out / "report.html").stat().st_size > 10_000
    check_same_as_the_simulator(out, tmp_path / "ours")
    check_nothing_leaked(out)
    secrets = peer_secrets(out / "fed" / name for name in member_names(6))
    assert "election: of 6 clients asked" in done.stdout  # the server's log is part of it
    assert stored_leaks(out / "server", done.stdout, secrets) == []


def check_same_as_the_simulator(out: Path, ours: Path) -> None:
    config = parse_scenario((out / "scenario.toml").read_text(encoding="utf-8"))
    assert (config.clients, config.budget) == (6, 2)
    selectors = specify_selectors(["bp-gp"])
    plan = Plan(config=config, framework="da", selectors=selectors, slots=SLOTS, trials=1, seed=SEED, engine="plain")
    simulate(plan, load_dataset(config.data.source), ours, workers=1)
    for mine, theirs, known in zip(by_slot(ours), by_slot(out / "run"), by_slot(out / "server"), strict=True):
        assert theirs.status == known.status == "done"
        assert theirs.cohort == known.cohort == mine.cohort
        assert (theirs.opinions, theirs.beliefs, theirs.indices) == (mine.opinions, mine.beliefs, mine.indices)
        assert known.opinions is None and known.beliefs is None and known.reward is None and known.indices == ()


def check_nothing_leaked(out: Path) -> None:
    received = []
    for file in sorted((out / "witness").iterdir()):
        kind = file.name.split(".", 1)[1].rsplit(".", 1)[0]
        error = file.read_text() if file.suffix == ".error" else None
        received.append(Received(kind, b"" if error is not None else file.read_bytes(), error))
    roster = read_roster(out / "fed" / "server")
    secrets = peer_secrets(out / "fed" / name for name in member_names(6))
    assert len(received) == 6 * (SLOTS + 1) + 2 * SLOTS
    assert secrets["opinion"] and secrets["belief"] and secrets["index"]  # under bp-gp means tell nothing
    assert complaints(received, secrets, roster.config(), TRAINING) == []
    answers = [message.records["fedelect"] for message in received if message.kind != "train"]
    shown = [answer["certificates"] for answer in answers if isinstance(answer, ConfigRecord)]
    assert [len(one) for one in shown if isinstance(one, list)] == [1] * 6 * (SLOTS + 1)  # each client, in each slot
    assert sorted(path.name for path in (out / "fed" / "server").iterdir()) == ["roster.json"]  # and no key
