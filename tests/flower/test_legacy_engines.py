"""GoalDirected of Flower's older API with its real engines: simulation, ServerApp, SecAgg+, start_server over gRPC."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.flower.engine_kit import by_slot

APP = Path(__file__).parent / "apps/legacy_app/app.py"
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def begin(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, **QUIET, "FLWR_HOME": str(home / "home"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, str(APP), *arguments],
        env=environment,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def own_address() -> str:
    """A loopback address that only this process uses, so that nobody takes the port before the server binds it."""
    high, low = divmod(os.getpid() % 2**16, 2**8)
    with socket.socket() as free:
        free.bind((f"127.77.{high}.{max(low, 1)}", 0))
        host, port = free.getsockname()
    return f"{host}:{port}"


def check(run: Path, said: str, *, updates_seen: list[int] | None = None) -> None:
    """Four slots by three of five clients; client 3 fails when it is first elected, and is left out of the next."""
    records = by_slot(run)
    assert [record.status for record in records] == ["done"] * 4, said
    assert [line for line in said.splitlines() if line.startswith("slot ")] == [f"slot {slot}" for slot in range(1, 5)]
    first = next(record for record in records if 3 in record.cohort)
    assert first.failed == (3,) and records[first.slot].left_out == (3,)
    gains = [
        sum(0.1 + 0.01 * client for client in members) / len(members)
        for members in ([client for client in record.cohort if client != 3] for record in records)
    ]
    found = [record.mean_opinion for record in records]
    assert found == pytest.approx([sum(gains[: slot + 1]) for slot in range(4)], abs=2e-3)  # SecAgg+ rounds
    seen = [int(line.split()[-1]) for line in said.splitlines() if line.startswith("different updates:")]
    expected = [len(record.cohort) - (3 in record.cohort) for record in records]
    assert seen == (expected if updates_seen is None else updates_seen)


@pytest.mark.integration
@pytest.mark.parametrize("engine", ["simulation", "app"])
def test_the_elected_train_in_simulation(tmp_path: Path, engine: str) -> None:
    process = begin(tmp_path, engine, str(tmp_path / "run"))
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    check(tmp_path / "run", said)


@pytest.mark.integration
def test_secure_aggregation_with_an_elected_cohort_shows_the_server_one_sum(tmp_path: Path) -> None:
    process = begin(tmp_path, "secure", str(tmp_path / "run"))
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    check(tmp_path / "run", said, updates_seen=[1, 1, 1, 1])


@pytest.mark.integration
def test_the_elected_train_with_a_server_and_clients_over_grpc(tmp_path: Path) -> None:
    address = own_address()
    server = begin(tmp_path, "server", str(tmp_path / "run"), address)
    clients = [begin(tmp_path, "client", str(number), address) for number in range(5)]
    try:
        said, _ = server.communicate(timeout=240)
        for client in clients:
            client.communicate(timeout=60)
    finally:
        for process in (server, *clients):
            process.kill()
    assert server.returncode == 0, said
    check(tmp_path / "run", said)
    assert {name for record in by_slot(tmp_path / "run") for _, name in record.joined} == {
        f"site-{number}" for number in range(5)
    }
